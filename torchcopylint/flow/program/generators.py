"""Generators of parameters: `model.parameters()` can be gone through once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import GeneratorReused
from torchcopylint.flow.model import ANY_ELEMENT, Kind, Value
from torchcopylint.flow.tapes import exclusion, uses
from torchcopylint.flow.values import naming
from torchcopylint.flow.values.state import kind_of

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


class Started(NamedTuple):
    """What the register of a `for` loop's iterable holds besides the generator, once the loop has begun: what was
    found out then."""

    fact: GeneratorReused | None


CONSUMING = frozenset(
    [
        "torch.nn.utils.clip_grad_norm_",
        "torch.nn.utils.clip_grad_norm",
        "torch.nn.utils.clip_grad_value_",
        "torch.nn.utils.parameters_to_vector",
        "torch.nn.utils.vector_to_parameters",
        "torch.nn.utils.get_total_norm",
    ]
)
"""Functions that go through what they are given first (or second, of the last but one)."""


def note_made(m: Machine, iterator: Value, site: int) -> None:
    """A generator was made."""
    m.holding.generators[iterator.refs[0] | 1] = site
    m.state.put(_key(iterator.refs[0]), None)


def note_expression(m: Machine, event: t.Collect) -> None:
    """A generator expression hands out parameters, as `(p for p in model.parameters() if p.requires_grad)` does."""
    value, made = m.value(event.container), m.unit.definitions[event.container]
    lazy = isinstance(made, t.Make) and made.kind == "iterator" and len(value.refs) == 1
    if not lazy or kind_of(m.value(event.item), m.state) is not Kind.PARAMETER:
        return
    if value.refs[0] | 1 not in m.holding.generators:
        note_made(m, value, made.site if made is not None else event.site)


def note_bound(m: Machine, register: int, value: Value) -> None:
    """A name is bound: what an arm of the expression has just made nobody has gone through, whatever became of the one
    that the same arm made on an earlier turn of a loop. `params = model.parameters() if train else None`."""
    made = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(made, t.Load) or not made.name.startswith("%") or not is_generator(m, value):
        return
    site = m.holding.generators[value.refs[0] | 1]
    if any(bind.value >= 0 and _site_of(m, bind.value) == site for bind in m.index.binds.get(made.name, ())):
        m.state.put(_key(value.refs[0]), None)


def _site_of(m: Machine, register: int) -> int:
    event = m.unit.definitions[register]
    return event.site if event is not None else -1


def is_generator(m: Machine, value: Value) -> bool:
    """Whether a value is a generator of parameters."""
    return bool(m.holding.generators) and len(value.refs) == 1 and value.refs[0] | 1 in m.holding.generators


def start_loop(m: Machine, register: int, value: Value, site: int) -> None:
    """A `for` loop takes an element: at its first turn it begins to go through the iterable."""
    if isinstance(value.const, Started):
        if value.const.fact is not None:
            m.fact(value.const.fact)
    elif m.holding.generators or value.root.__class__ is tuple:
        fact = note_taken(m, value, site)
        if fact is not None or is_generator(m, value):
            m.set(register, value._replace(const=Started(fact)))


def note_taken(m: Machine, value: Value, site: int) -> GeneratorReused | None:
    """Something goes through a value to its end. Returns the fact if there is nothing left in it."""
    fact = _of_other_method(m, value, site) or _taken_again(m, value, site)
    if fact is not None:
        m.fact(fact)
    return fact


def _taken_again(m: Machine, value: Value, site: int) -> GeneratorReused | None:
    if not is_generator(m, value):
        return None
    ref = value.refs[0]
    taken = m.state.get(_key(ref))
    before = taken if isinstance(taken, frozenset) else frozenset[int]()
    met = frozenset(one for one in before if not exclusion.exclude(m, one, site))
    made = m.holding.generators[ref | 1]
    again = min(met, default=site) != site or (not _is_any_element(value) and _comes_round(m, made, site))
    if met and value.root is not None and again:
        fact = GeneratorReused(site, naming.key_text(m, value.root), made, min(met), True)
    else:
        fact = None
    m.state.put(_key(ref), before | {site})
    if m.unit.name == "__init__":
        for key in m.state.holders.get(ref, ()):
            if isinstance(key, tuple) and m.state.object(key[0]).owner == "self" and ref in m.state.refs_of(key):
                m.world.used_up.setdefault(m.unit.owner, {}).setdefault(key[1][1:], (made, site))
    return fact


def _is_any_element(value: Value) -> bool:
    """Whether a value is an element at a place that nobody knows: another one on each turn of a loop."""
    return isinstance(value.root, tuple) and value.root[1] == ANY_ELEMENT


def _comes_round(m: Machine, made: int, site: int) -> bool:
    """Whether a loop comes back to a site without making the generator anew; a `for` loop at the site is not that."""
    around = uses.loops_around(m, site)
    if any(isinstance(event, t.Iterate) and event.site == site for event in m.unit.definitions):
        around = around[:-1]
    return bool(set(around) - set(uses.loops_around(m, made)))


def _of_other_method(m: Machine, value: Value, site: int) -> GeneratorReused | None:
    """A field of `self` that holds a generator that `__init__` has gone through already."""
    key = value.root
    cell = m.state.cell(key) if isinstance(key, tuple) else None
    if not isinstance(key, tuple) or cell is None or cell.site >= 0 or m.unit.name == "__init__":
        return None
    owner = m.state.object(key[0])
    known = m.world.field_of(owner.type, key[1][1:])
    if owner.owner != "self" or known is None or known.kind is not Kind.ITERATOR:
        return None
    used_up = m.world.used_up.get(m.unit.owner, {}).get(key[1][1:])
    return GeneratorReused(site, naming.key_text(m, key), *used_up, False) if used_up is not None else None


def _key(ref: int) -> str:
    return f"@taken{ref | 1}"
