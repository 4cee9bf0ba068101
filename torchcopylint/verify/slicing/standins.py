"""Which helpers a script needs, and what is put into their texts, under one setting."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from torchcopylint.verify.slicing.conditions import Wanted
from torchcopylint.verify.slicing.helpers import HELPERS, NEEDS
from torchcopylint.verify.slicing.sizes import Setting
from torchcopylint.verify.slicing.source import walked

_LAYERS = frozenset(
    ["conv", "fc", "linear", "layer", "bn", "norm", "encoder", "decoder", "embedding", "classifier", "backbone"]
)
"""The last words of names under which a base class from elsewhere is taken to have a layer."""
_PLACEHOLDER = re.compile(r"\b(?:SIZE|SAMPLE|LAYER_NAMES|WANTED|TRUTHS|LEAST)\b")
"""What is put into the text of a helper in these places differs from script to script."""

_CALLED = '        if self.standin_name.endswith("numpy"):\n'
_MAKES_LAYERS = """\
        if self.standin_name.rpartition(".")[2][:1].isupper():
            return LayerElsewhere()
"""
"""What `Anything` does before `_CALLED` where what is made by a class from elsewhere has to be a layer."""

_DRIVING = ("\ndef change(", "\ndef use_later(", "\ndef backpropagate(")
"""Helpers that do what a program would: their statements are looked at as its own are. They come last."""

_TRAINED = "self.weight = torch.nn.Parameter(torch.ones(()))"
"""The parameter of a layer that stands in."""


def layers_guessed(nodes: Iterable[ast.AST]) -> set[str]:
    """The fields of classes whose base stands in that become layers because of their names, and of nothing else."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "ModuleElsewhere" for base in node.bases):
            own = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            fields = [
                part
                for part in walked(node)
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
            ]
            own |= {part.attr for part in fields if isinstance(part.ctx, ast.Store)}
            found |= {part.attr for part in fields if part.attr not in own and _is_layer(part.attr)}
    return found


def _is_layer(name: str) -> bool:
    """Whether `ModuleElsewhere` makes a layer for a name."""
    return not name.startswith("_") and name.rstrip("0123456789_").rpartition("_")[2] in _LAYERS


def rows_of_helpers(text: str) -> int:
    """How many rows of what stands before all that is a user's are not looked at: what stands in, and nothing else."""
    found = [text.find(start) for start in _DRIVING if start in text]
    return text.count("\n", 0, min(found, default=len(text))) + 1


def helpers(names: Iterable[str], setting: Setting, options: Wanted) -> str:
    """The text of the helpers with these names and of what they need, in a fixed order.

    `options` is what those of the command line should be.
    """
    wanted = set(names)
    if setting.layers and "Anything" in wanted:
        wanted.add("LayerElsewhere")
    for name in tuple(wanted):
        wanted.update(NEEDS.get(name, ()))
    told = {
        "SIZE": str(setting.size),
        "SAMPLE": ", ".join(map(str, setting.sample)),
        "LAYER_NAMES": f"frozenset({sorted(_LAYERS)})",
        "WANTED": repr(options.values),
        "TRUTHS": repr(options.truths),
        "LEAST": repr(options.least),
    }
    # All at once: what is put in has names of the user's, which may look like these.
    texts = [text for name, text in HELPERS.items() if name in wanted]
    if setting.frozen:
        texts = [text.replace(_TRAINED, f"{_TRAINED[:-1]}, requires_grad=False)") for text in texts]
    if setting.layers:
        texts = [text.replace(_CALLED, f"{_MAKES_LAYERS}{_CALLED}") for text in texts]
    return _PLACEHOLDER.sub(lambda found: told[found[0]], "\n".join(texts))
