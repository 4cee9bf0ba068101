"""Reads functions and says what their free things are: one walk over statements, every use a vote.

Names are followed in order, fields of `self` are one thing for the whole class, arguments and parameters of functions
of the same file are one thing. Nothing is decided here: see `things.kind_of`.
"""

from __future__ import annotations

import ast

from torchcopylint.base.recursion import deep_recursion
from torchcopylint.verify.slicing.source import FunctionNode
from torchcopylint.verify.slicing.things import Thing, find, unify
from torchcopylint.verify.slicing.walk import Walk
from torchcopylint.verify.slicing.world import World


class Inference(World):
    """What is known of the things in the functions and classes of a file, once all of it was read."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__(tree)
        self._walked: set[int] = set()
        top = Walk(self, self.globals, None)
        top.first = self.locals.setdefault(0, {})
        with deep_recursion():
            top.body([node for node in tree.body if not isinstance(node, FunctionNode | ast.ClassDef)])
            for function in self.functions.values():
                self._walk(function, None)
            for name, node in self.classes.items():
                for method in node.body:
                    if isinstance(method, FunctionNode):
                        self._walk(method, name)

        for name in self.classes:
            for base in self.bases_of(name):
                self._share(self.self_of(name), self.self_of(base))

    def _share(self, derived: Thing, base: Thing) -> None:
        """The fields of an object are one, whichever of its classes sets them."""
        for name, thing in base.attributes.items():
            own = derived.attributes.get(name)
            if own is None:
                derived.attributes[name] = thing
            elif find(own) is not find(thing) and not (find(own).made and find(thing).made):
                unify(own, thing)

    def _walk(self, function: FunctionNode, class_name: str | None) -> None:
        """Read a function once."""
        if id(function) in self._walked:
            return
        self._walked.add(id(function))
        given, result = self.signature(function, class_name)
        walk = Walk(self, dict(given), result, self.globals)
        walk.first = self.locals.setdefault(id(function), {})
        walk.body(function.body)
