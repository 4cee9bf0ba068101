"""A sum of models that begins as one of them: `total = models[0]`, which is set to zero before all of them are added.

With the sum, the one that it is has been set to zero as well: what it had is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ModulePaired
from torchcopylint.flow.model import Sure
from torchcopylint.flow.storages import mixing
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

FORM = "zeroed"
_ITSELF = frozenset({"to", "cuda", "cpu", "float", "train", "eval"})
"""Methods of a module that return it."""
_ZEROS = frozenset({"torch.zeros_like", "torch.zeros"})
_GOING_THROUGH = frozenset({"zip", "enumerate", "list", "tqdm"})


def found(m: Machine) -> Iterator[ModulePaired]:
    """The names and fields that hold an entry of a list, all parameters of which are zero when it is gone through."""
    zeroed = _zeroed(m) if m.unit.kind in ("function", "module") else {}
    bound: list[t.Bind | t.StoreAttribute] = [*m.index.of(t.Bind), *m.index.of(t.StoreAttribute)]
    for event in bound if zeroed else ():
        entry = m.unit.definitions[event.value] if event.value >= 0 else None
        while isinstance(entry, t.Invoke) and entry.name in _ITSELF and entry.base >= 0:
            entry = m.unit.definitions[entry.base]
        if not isinstance(entry, t.Item) or not all(isinstance(part, int) for part in entry.subscript):
            continue
        name = event.name if isinstance(event, t.Bind) else f"{naming.text_of(m, event.base)}.{event.name}"
        several = naming.text_of(m, entry.base)
        sites = [site for site in zeroed.get(name, ()) if site > event.site]
        again = [site for site in _gone_through(m, several) if sites and site > sites[0]] if several else []
        if again:
            source = naming.text_of(m, entry.out) or f"{several}[...]"
            yield ModulePaired(again[0], name, source, event.site, FORM, Sure.LIKELY)


def _zeroed(m: Machine) -> dict[str, list[int]]:
    """Where all parameters of what a name or field holds are set to zero."""
    found: dict[str, list[int]] = {}
    targets = [(event.base, event.site) for event in m.index.of(t.Invoke) if event.name == "zero_"]
    for store in m.index.stores.get("data", ()):
        made = m.unit.definitions[store.value] if store.value >= 0 else None
        if isinstance(made, t.Call | t.Invoke) and m.dotted_of(made) in _ZEROS:
            targets.append((store.base, store.site))
    for register, site in targets:
        for whole in mixing.origins(m, register):
            if "parameters" in whole.name:
                found.setdefault(naming.text_of(m, whole.base), []).append(site)
    return {name: sorted(sites) for name, sites in found.items() if name}


def _gone_through(m: Machine, several: str) -> Iterator[int]:
    """Where a loop goes through all of a list, alone or beside others."""
    for event in m.index.of(t.Iterate):
        over = m.unit.definitions[event.iterable] if event.iterable >= 0 else None
        passes = isinstance(over, t.Call) and naming.text_of(m, over.function).rpartition(".")[2] in _GOING_THROUGH
        given = [one.register for one in over.arguments] if passes and isinstance(over, t.Call) else [event.iterable]
        if any(naming.text_of(m, register) == several for register in given):
            yield event.site
