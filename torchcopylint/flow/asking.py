"""Questions to the engine: what is known of a name at one place.

A question is one more event on the tape, so that it is answered in every turn of a loop and on every path, and the
answer that stays is that of the settled state, as with every fact. Looking changes nothing: what it touches is undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torchcopylint.base.recursion import deep_recursion
from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Known, Link, Revealed, Sharer
from torchcopylint.flow.interprocedural import attributes
from torchcopylint.flow.model import NAMELESS, UNKNOWN, Fact, How, Key, Kind, Share, Value
from torchcopylint.flow.regions import overlap
from torchcopylint.flow.running.machine import Machine, handles
from torchcopylint.flow.storages import reading
from torchcopylint.flow.values import naming

_LEAVING = (t.Return, t.Raise, t.Break, t.Continue)


class Asked(NamedTuple):
    """A question about `name`, or about `register` if there is one, before or after the statement with site `head`."""

    name: str
    head: int
    before: bool
    register: int = t.NO_REGISTER


# -- putting questions on tapes


def ask(program: t.Program, questions: Sequence[Asked]) -> t.Program:
    """The program with the questions on its tapes; each has a site of its own, in order, behind all others."""
    first = len(program.statements)
    asked = tuple(
        t.Reveal(question.name, question.register, first + number) for number, question in enumerate(questions)
    )
    places: dict[int, list[t.Event]] = {}
    opening: dict[int, list[t.Event]] = {}
    scopes = []
    for question, event in zip(questions, asked, strict=True):
        unit = program.scopes[question.head]
        with deep_recursion():
            inner, site, before = _place(program, unit, question)
        scopes.append(inner)
        if site is None:
            opening.setdefault(inner, []).append(event)
        else:
            places.setdefault(2 * site + (not before), []).append(event)
    with deep_recursion():
        units = [
            unit._replace(tape=(*opening.get(unit.number, ()), *_with(unit.tape, places)))
            if unit.number in scopes
            else unit
            for unit in program.units
        ]
    return program._replace(
        units=tuple(units),
        statements=(*program.statements, *(question.head for question in questions)),
        scopes=(*program.scopes, *scopes),
        asked=asked,
    )


def _place(program: t.Program, number: int, question: Asked) -> tuple[int, int | None, bool]:
    """The unit, the event's site that the question stands at (`None`: where the unit starts), and whether before it."""
    tape = program.units[number].tape
    found = _tape_of(tape, program, question.head)
    if not found:
        return number, None, True
    if question.before:
        return number, found[0].site, True
    last = found[-1]
    defined = program.units[number].definitions[last.value] if isinstance(last, t.Bind) else None
    if isinstance(defined, t.Function) and program.units[defined.unit].kind == "function":
        # On the line of a `def`, one asks about its parameters.
        return defined.unit, None, True
    return number, last.site, isinstance(last, _LEAVING)


def _tape_of(tape: t.Tape, program: t.Program, head: int) -> list[t.Event]:
    """The events of a statement, those of the outermost tape that has any. A bracket and what leaves a `with` carry
    the site of the last statement inside and are not its own."""
    own: list[t.Event] = [
        event for event in tape if program.statements[event.site] == head and not isinstance(event, t.Exit)
    ]
    while own and isinstance(own[-1], t.Branch | t.Loop | t.Try):
        own.pop()
    if any(not isinstance(event, t.Branch | t.Loop | t.Try) for event in own):
        return own
    for event in tape:
        for inner in t.inner_tapes(event):
            found = _tape_of(inner, program, head)
            if found:
                return found
    return []


def _with(tape: t.Tape, places: dict[int, list[t.Event]]) -> t.Tape:
    """A tape with questions before (even keys) and after (odd keys) the events at given sites."""
    found: list[t.Event] = []
    for event in tape:
        found += places.get(2 * event.site, ())
        if isinstance(event, t.Branch):
            found.append(event._replace(arms=tuple(_with(arm, places) for arm in event.arms)))
        elif isinstance(event, t.Loop):
            test, body, orelse = (_with(part, places) for part in t.inner_tapes(event))
            found.append(event._replace(test=test, body=body, orelse=orelse))
        elif isinstance(event, t.Try):
            handlers = tuple(_with(handler, places) for handler in event.handlers)
            body, orelse, final = (_with(part, places) for part in (event.body, event.orelse, event.final))
            found.append(event._replace(body=body, handlers=handlers, orelse=orelse, final=final))
        else:
            found.append(event)
        found += places.get(2 * event.site + 1, ())
    return tuple(found)


# -- answering


@handles(t.Reveal)
def _reveal(m: Machine, event: t.Reveal) -> None:
    noted = (dict(m.shown.evidence), dict(m.fields.initial), dict(m.shown.data_reads), set(m.backward.gradients))
    unexplained = set(m.backward.unexplained)
    m.state.fork()
    if event.register == t.NO_REGISTER:
        answer = _answer(m, event, event.name, _look(m, event))
    else:
        answer = _answer(m, event, naming.text_of(m, event.register), m.value(event.register))
    m.state.take()
    m.shown.evidence, m.fields.initial, m.shown.data_reads, m.backward.gradients = noted
    m.backward.unexplained = unexplained
    m.facts[event.site] = [answer]


def _look(m: Machine, event: t.Reveal) -> Value | None:
    """The value of a dotted path, or `None` if there is no such name."""
    name, *fields = event.name.split(".")
    cell = m.state.cell(name)
    if cell is not None:
        value = Value(cell.refs, cell.kind, cell.const, cell.marks, name, cell.plain)
    else:
        value = UNKNOWN if name in m.unit.bound else m.world.outer(m, name)
        if value == UNKNOWN:
            return None
    text = name
    for field in fields:
        value = attributes.attribute(m, value, field, event.site, text)
        text = f"{text}.{field}"
    return value


def _answer(m: Machine, event: t.Reveal, name: str, value: Value | None) -> Revealed:
    mode = m.state.mode
    answer = Revealed(
        event.site,
        name,
        reached=True,
        bound=value is not None,
        recording=mode.recording,
        assumed=mode.assumed,
        inference=mode.inference,
    )
    if value is None:
        return answer
    plain = "" if value.refs and not value.plain else _plain(value)
    return answer._replace(
        plain=plain,
        objects=tuple(dict.fromkeys(_known(m, ref, name) for ref in value.refs)),
        sharers=tuple(_sharers(m, value, name)),
        writes=tuple(sorted({mark.write for mark in value.marks if mark.write in m.writes})),
    )


def _plain(value: Value) -> str:
    if value.const is not None and isinstance(value.const, str | int | float | bytes):
        return str(value.const) if isinstance(value.const, t.Dotted) else repr(value.const)
    return value.kind.value if value.kind is not Kind.UNKNOWN else "nothing that is known"


def _known(m: Machine, ref: int, name: str) -> Known:
    obj = m.state.object(ref)
    memory = []
    for share in obj.shares:
        owner = m.state.object(share.storage).text
        if owner == name or (share.storage | 1 == ref | 1 and not owner.isidentifier()):
            owner = ""
        memory.append((owner or ("" if share.storage | 1 == ref | 1 else NAMELESS), share.when))
    return Known(
        obj.kind, obj.sure, obj.type, obj.leaf, obj.requires_grad, obj.scalar, obj.dtype, tuple(dict.fromkeys(memory))
    )


def _sharers(m: Machine, value: Value, name: str) -> list[Sharer]:
    """Every other name and slot that holds an object on the same memory, and how the two came to share it."""
    found: dict[str, Sharer] = {}
    for ref in value.refs:
        for share in m.state.object(ref).shares:
            for key, cell in m.state.holders_of(share.storage):
                text = naming.key_text(m, key)
                if key == value.root or text in found or text == name or text.startswith(("%", NAMELESS)):
                    continue
                sharer = _sharer(m, ref, share, key, cell.refs, cell.site, text)
                if sharer is not None:
                    found[text] = sharer
    return list(found.values())


def _sharer(
    m: Machine, ref: int, share: Share, key: Key, others: tuple[int, ...], bound: int, text: str
) -> Sharer | None:
    if ref in others:
        mine = m.state.object(ref).text
        link = Link(None, bound, mine if mine != text else "", text)
        return Sharer(text, (link,) if bound >= 0 else (), Fact.YES, len(others) == 1)
    for other in others:
        for theirs in m.state.object(other).shares:
            if theirs.storage == share.storage:
                links = _between(reading.chain_of(m, ref, share), reading.chain_of(m, other, theirs))
                sure = share.sure and theirs.sure and len(others) == 1
                return Sharer(text, links, overlap(share.region, theirs.region), sure)
    return None


def _between(mine: reading.Chain, theirs: reading.Chain) -> tuple[Link, ...]:
    """The links of two chains below the object where they meet, in program order."""
    ups, downs = {number for number, _ in mine}, {number for number, _ in theirs}
    below = [link for number, link in mine if number not in downs]
    below += [link for number, link in theirs if number not in ups]
    return tuple(sorted({link for link in below if link.how not in (None, How.OWN)}, key=lambda link: link.site))


def unanswered(m: Machine, program: t.Program) -> list[Revealed]:
    """The questions in a unit that no run of it came to."""
    own = [event for event in program.asked if program.scopes[event.site] == m.unit.number]
    return [Revealed(event.site, event.name) for event in own if event.site not in m.facts]
