"""Writes whose outcome depends on numbers: into a dtype that has no fractions, and through an index that repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import AccumulatedOnce, Truncated
from torchcopylint.flow.model import BUFFERS, REPEATS, REPEATS_LIKELY, How, Kind, Object, Sure, Value
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import dtypes, naming
from torchcopylint.flow.values.state import kind_of

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

_ARITHMETIC = frozenset({"+=", "-=", "*=", "//=", "%=", "**=", "add_", "sub_", "mul_", "pow_", "remainder_", "fmod_"})
_DIVISION = frozenset({"/=", "div_", "divide_", "true_divide_"})


def note_stored(m: Machine, target: Value, value: Value, op: str, site: int, name: str) -> None:
    """A value is stored into a tensor or an array as it is: a fraction is cut off by an integer dtype."""
    found = _integers(m, target)
    if found is None:
        return
    if isinstance(value.const, float) and not value.refs and not value.const.is_integer():
        m.fact(Truncated(site, name, op, found[0], found[1], "stored", found[2]))
    elif found[0] != "bool" and _has_fractions(m, value, _made(m, target)):
        m.fact(Truncated(site, name, op, found[0], found[1], "stored", min(found[2], Sure.LIKELY)))


_FLOATS = frozenset({*dtypes.FLOATS, dtypes.FLOATING, dtypes.DEFAULT})
_LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "full_like", "one_hot"})
"""What makes a tensor of a dtype that nobody has named."""


def _made(m: Machine, value: Value) -> t.Event | None:
    site = m.state.object(value.refs[0]).site if len(value.refs) == 1 else -1
    return m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None


def _has_fractions(m: Machine, value: Value, target: t.Event | None) -> bool:
    """Whether a tensor surely has fractions that are wanted: a quotient or a mean; or a product with some, where nobody
    has asked for the integers that it is stored into."""
    if len(value.refs) != 1:
        return False
    if m.state.object(value.refs[0]).dtype not in _FLOATS:
        return _is_quotient(m, value.refs[0])
    ref = value.refs[0]
    if _is_drawn(m, ref):
        return True
    made = m.index.operations.get(m.state.object(ref).site) or _made(m, value)
    asked = isinstance(target, t.Call | t.Invoke) and any(one.keyword == "dtype" for one in target.arguments)
    by_name = m.dotted_of(target).rpartition(".")[2] if isinstance(target, t.Call | t.Invoke) else ""
    if isinstance(made, t.Operate):
        return made.symbol == "/" or (made.symbol in ("*", "+", "-") and by_name in _LIKE and not asked)
    if not isinstance(made, t.Call | t.Invoke):
        return False
    name = made.name if isinstance(made, t.Invoke) else m.dotted_of(made).rpartition(".")[2]
    return name in dtypes.FRACTIONAL and not any(one.keyword == "rounding_mode" for one in made.arguments)


def _is_quotient(m: Machine, ref: int) -> bool:
    """Whether something is one of which nobody knows what it is by another such thing: `hits[i] / total[i]`. Of half of
    something, the fraction may be no matter."""
    obj = m.state.object(ref)
    made = m.index.operations.get(obj.site)
    if obj.kind is not Kind.UNKNOWN or not isinstance(made, t.Operate) or made.symbol != "/" or len(made.operands) != 2:
        return False
    below = m.value(made.operands[1])
    return bool(below.refs) and below.kind is not Kind.NUMBER and m.value(made.operands[0]).kind is not Kind.STRING


_DRAWN = frozenset({"rand", "randn", "rand_like", "randn_like", "uniform", "standard_normal", "random_sample"})
"""What draws numbers of which none is whole."""


def _is_drawn(m: Machine, ref: int) -> bool:
    """Whether what is stored is random numbers, or a view of them, as they were drawn and nobody has changed since."""
    shares = m.state.object(ref).shares
    if len(shares) != 1 or not shares[0].sure:
        return False
    drawn = m.state.object(shares[0].storage)
    event = m.unit.definitions[m.index.calls[drawn.site]] if drawn.site in m.index.calls else None
    if not isinstance(event, t.Call | t.Invoke) or m.dotted_of(event).rpartition(".")[2] not in _DRAWN:
        return False
    return not any(
        drawn.text in (write.root, write.name, *(link.source for link in write.chain)) for write in m.writes.values()
    )


def note_arithmetic(m: Machine, target: Value, value: Value, op: str, site: int, name: str) -> None:
    """Arithmetic in place, whose result has fractions and no place to put them: this raises."""
    found = _integers(m, target)
    if found is None or found[0] == "bool":
        return
    fraction = isinstance(value.const, float) and not value.refs
    number = value.kind is Kind.NUMBER and not value.refs
    if (op in _ARITHMETIC and fraction) or (op in _DIVISION and number):
        m.fact(Truncated(site, name, op, found[0], found[1], "raises", found[2]))


def note_method(m: Machine, name: str, arguments: Arguments, site: int, text: str) -> None:
    """A method that writes its receiver with a number."""
    if len(arguments.positional) == 2 and not arguments.keywords:
        target, value = arguments.positional
        if name in ("fill_", "copy_"):
            note_stored(m, target, value, name, site, text)
        elif name in _ARITHMETIC or name in _DIVISION:
            note_arithmetic(m, target, value, name, site, text)


def _integers(m: Machine, target: Value) -> tuple[str, int, Sure] | None:
    """The integer dtype of what is written, where it was made, and how sure that is."""
    if len(target.refs) != 1:
        return None
    obj = m.state.object(target.refs[0])
    if obj.kind not in BUFFERS or obj.dtype not in dtypes.INTEGERS:
        return None
    return obj.dtype, obj.site, obj.sure


def note_written_out(m: Machine, event: t.StoreItem) -> None:
    """`x[index] = x[index] + v`, which is `x[index] += v`."""
    made = m.unit.definitions[event.value]
    if not isinstance(made, t.Operate) or made.symbol not in ("+", "-") or len(made.operands) != 2:
        return
    text = f"{naming.text_of(m, event.base)}[{naming.index_text(m, event.subscript)}]"
    for item, added in (made.operands, made.operands[::-1])[: 2 if made.symbol == "+" else 1]:
        old = m.unit.definitions[item] if item >= 0 else None
        if isinstance(old, t.Item) and naming.text_of(m, item) == text:
            note_accumulated(m, old, f"{made.symbol}=", event.site, text, added)
            return


def note_accumulated(m: Machine, item: t.Item, symbol: str, site: int, text: str, added: int) -> None:
    """`x[index] += v`: an element that the index names twice is counted once; `added` is the register of `v`."""
    if symbol not in ("+=", "-="):
        return
    parts = [_repeats(m, m.value(part)) for part in item.subscript if not isinstance(part, t.Slice)]
    sures = [sure for sure in parts if sure is not None]
    if parts == [Sure.NOT] and _is_count(m, item, site, added):
        sures = [Sure.LIKELY]
    if sures and min(sures) is not Sure.NOT:
        index = naming.index_text(m, item.subscript)
        m.fact(AccumulatedOnce(site, text, index, symbol, min(sures)))


def _is_count(m: Machine, item: t.Item, site: int, added: int) -> bool:
    """Whether zeros that have just been made get 1 added where a row of a table of indices says: who wants to know
    which there are writes `= 1`, and who adds wants to know how many. `degree = zeros(n)`, `source, target = edges`,
    `degree[target] += 1`."""
    base = m.unit.definitions[item.base]
    bound = uses.bindings_before(m, base) if isinstance(base, t.Load) else []
    made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    if not isinstance(made, t.Call | t.Invoke) or m.dotted_of(made) not in ("torch.zeros", "numpy.zeros"):
        return False
    once = added >= 0 and m.value(added).const in (1, 1.0) and not m.value(added).refs
    part = item.subscript[0]
    register = part if isinstance(part, int) else t.NO_REGISTER
    taken = m.unit.definitions[register] if register >= 0 else None
    if isinstance(taken, t.Load):
        rows = uses.bindings_before(m, taken)
        taken = m.unit.definitions[rows[0]] if len(rows) == 1 and rows[0] >= 0 else None
    if register >= 0 and any(m.state.object(ref).dtype == "bool" for ref in m.value(register).refs):
        return False
    table = isinstance(taken, t.Unpack) or (isinstance(taken, t.Item) and m.value(taken.out).kind is not Kind.NUMBER)
    straight = uses.loops_around(m, site) == uses.loops_around(m, made.site)
    turn = isinstance(taken, t.Unpack | t.Item) and uses.from_iteration(m, taken.out)
    return once and straight and table and not turn


def _repeats(m: Machine, value: Value) -> Sure | None:
    """How sure it is that an index names an element twice; `None` for a plain number, which is no matter."""
    if not value.refs:
        return None if value.kind is Kind.NUMBER or value.const is ... else Sure.NOT
    if kind_of(value, m.state) is Kind.LIST:
        return Sure.PROVEN if dtypes.has_twins(m, value) else Sure.NOT
    if len(value.refs) != 1 or kind_of(value, m.state) not in BUFFERS:
        return Sure.NOT
    shares = m.state.object(value.refs[0]).shares
    if any(share.how in (How.INDEX, How.ROW) for share in shares):
        # One of them, or some: these may be different.
        return Sure.NOT
    flags = {flag for share in shares for flag in m.state.object(share.storage).flags}
    return Sure.PROVEN if REPEATS in flags else Sure.LIKELY if REPEATS_LIKELY in flags else Sure.NOT


def is_of_a_rate(m: Machine, obj: Object) -> bool:
    """Whether something is made of a number and a parameter or a field of which nothing else is known: `keep = 1 - p`,
    `keep = 1 - self.p`. Whatever `keep` is used for once a tensor has been added to it says what the sum is, and not
    what it was."""
    made = next((event for event in m.index.of(t.Operate) if event.site == obj.site), None)
    if made is None or len(made.operands) != 2:
        return False
    number, named = made.operands if isinstance(m.unit.definitions[made.operands[0]], t.Const) else made.operands[::-1]
    const, load = m.unit.definitions[number], m.unit.definitions[named]
    if not isinstance(const, t.Const) or not isinstance(const.value, int | float):
        return False
    given = isinstance(load, t.Attribute) or (
        isinstance(load, t.Load)
        and any(parameter.name == load.name for parameter in m.unit.parameters)
        and load.name not in m.index.binds
    )
    return given and all(m.state.object(ref).kind is Kind.UNKNOWN for ref in m.value(named).refs)


def is_asked_alone(m: Machine, register: int, value: Value) -> bool:
    """Whether a name that is loaded may hold an array, and is itself the condition of something, or compared in one: an
    array of several elements is refused there, so that it is one of them, a number: `while a != 0: a -= 1`."""
    load = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(load, t.Load) or any(m.state.object(ref).kind is not Kind.ARRAY for ref in value.refs):
        return False
    return load.name in m.index.asked_alone
