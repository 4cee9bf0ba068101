"""Which checks there are: every module of `checks` that has a page of the same stem.

Nothing is registered by hand. `rules/state-dict-by-reference.md` and `checks/state_dict_by_reference.py` are one rule.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from torchcopylint import checks
from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.flow.facts import Collected, FileFacts, Inside, ReadAfter, UnitFacts, WithHelpers
from torchcopylint.pages import Page, load_pages

Check: TypeAlias = "Callable[[UnitFacts], Iterator[Report]]"
ClassCheck: TypeAlias = "Callable[[Sequence[UnitFacts]], Iterator[Report]]"


Spoken: TypeAlias = "Mapping[int, Sequence[Page]]"
"""The pages of the rules that tell something of a statement, by the site of that."""


class Rule(NamedTuple):
    """A page and the check that goes with it.

    `check_class`, if there is one, sees all methods of a class at once, and `check_file` all units of a file.
    A rule that goes `into_helpers` sees units a second time, with the functions and methods that they call in them.
    What it reports `at_calls` is wrong for what the caller has done before, and stands where the helper is called; what
    it reports `where_made` is wrong whoever calls the helper, and stands there. One that looks `across_calls` goes into
    more helpers, for what takes a caller and a helper, or two helpers, to go wrong, and reports it at the call; one of
    `own_places` judges there what stands in the caller itself, since a helper may have others. Rules that look there,
    and those `of_guests`, also tell what goes wrong in a function of another file for what this one passes. A rule with
    `fields_once` tells what the fields of an object share of its class, and not again of who makes one and calls it.
    """

    page: Page
    check: Check
    check_class: ClassCheck | None
    check_file: ClassCheck | None = None
    into_helpers: bool = False
    at_calls: bool = False
    where_made: bool = False
    across_calls: bool = False
    of_guests: bool = False
    own_places: bool = False
    fields_once: bool = False

    def alone(self, facts: FileFacts, stated: Sequence[UnitFacts]) -> list[Report]:
        """What the rule reports of a file's units by themselves, and of functions of other files that they call."""
        found = list(self._reports(facts.units, stated))
        return [*found, *self._of_guests(facts, {facts.statements[report.site] for report in found})]

    def with_helpers(self, facts: FileFacts, found: Sequence[Report], spoken: Spoken) -> Iterator[Report]:
        """What units with their helpers in them show beyond what the rule has found in the units alone. `spoken` are
        the rules that tell something of a statement, of the units alone."""
        expanded, statements = facts.expanded, facts.statements
        if not (self.into_helpers or self.across_calls) or not expanded.units:
            return
        told = {site for report in found for site in (report.site, *(point.site for point in report.points))}
        # What goes wrong in a helper of another file whoever calls it is told there.
        told |= {report.site for report in self.reports(expanded.guests)}
        # What is told where a helper is called is not told once more where the helper does it, nor beside it.
        named = {statements[report.site] for report in found}
        for report in self._with_helpers(facts):
            way = expanded.places.get(report.site, (report.site,))
            put = {report.site, *(point.site for point in report.points if point.role in _PUTTING)}
            known = way[-1] in told or any(statements[site] in named for site in way)
            # Nor what goes wrong in a place in a helper where, by what is told, it goes wrong anyway.
            reads = {expanded.places.get(p.site, (p.site,)) for p in report.points if p.role is Role.READ}
            known = known or (bool(reads) and all(len(read) > 1 and read[-1] in told for read in reads))
            # What a caller suffers is told of the function that does it to what it is given.
            known = known or report.variant == "caller"
            known = known or (self.own_places and len(way) > 1)
            across = not self.into_helpers or report.site in expanded.partly
            ways = [expanded.places.get(site, (site,)) for site in (report.site, *(p.site for p in report.points))]
            # What one function of other files suffers from another, their files tell.
            known = known or _is_of_others(ways, facts)
            if across:
                known = known or not self.across_calls or not _takes_two(report, facts)
                # A condition would have to do with what the helper knows.
                known = known or report.variant == "conditional" or self._is_told(report, facts, spoken)
                known = known or any(statements[one[-1]] in named for one in ways)
            if not known and put.isdisjoint(expanded.handed):
                told.add(way[-1])
                named.add(statements[way[-1]])
                lent = way[-1] if self.where_made else _lent(report, facts, self.at_calls or across)
                yield _placed(*_beside_helper(report, expanded, lent))

    def _of_guests(self, facts: FileFacts, spoken: set[int]) -> Iterator[Report]:
        """What goes wrong in functions of other files for what this file passes: it stands at the call. What goes wrong
        there whatever is passed, that file tells."""
        for guest in facts.called if self.into_helpers or self.across_calls or self.of_guests else ():
            told = {report.site for report in self.check(guest.unasked)}
            for report in self.check(guest.facts):
                # What a caller suffers, it does for what that call passes.
                passed = [p.site for p in report.points if p.role is Role.SHARED and p.site not in facts.guests]
                call = passed[0] if passed else guest.call
                at = facts.statements[call]
                if report.site not in told and at not in spoken:
                    spoken.add(at)
                    yield report._replace(site=call)

    def _is_told(self, report: Report, facts: FileFacts, spoken: Spoken) -> bool:
        """Whether another rule tells something of where the fault comes about, which it would tell if this one did."""
        points = (point.site for point in report.points if point.role in _STEPS)
        ways = (facts.expanded.places.get(site, (site,)) for site in (report.site, *points))
        pages = [page for way in ways for page in spoken.get(facts.statements[way[-1]], ())]
        return any(page.code not in (self.page.code, *self.page.supersedes) for page in pages)

    def _with_helpers(self, facts: FileFacts) -> Iterator[Report]:
        """What the rule says of units with their helpers in them. What the methods of a class do to one another is told
        of the methods; where one stands in the place of its call, it is that only to rules that go into all helpers."""
        if self.into_helpers:
            numbers = {unit.qualname: unit for unit in facts.expanded.units}
            yield from self.reports([numbers.get(unit.qualname, unit) for unit in facts.units])
            return
        for unit in facts.expanded.units:
            yield from self.check(unit)

    def reports(self, units: Sequence[UnitFacts]) -> Iterator[Report]:
        """What the rule reports of a file's units. Of most units nothing is stated, so that no check has to look."""
        return self._reports(units, _stated(units))

    def _reports(self, units: Sequence[UnitFacts], stated: Sequence[UnitFacts]) -> Iterator[Report]:
        """The same, where it is known of which of the units something is stated."""
        if not stated:
            return
        of_classes = [] if self.check_class is None else list(_of_classes(self.check_class, units))
        shared = {_shared_at(report) for report in of_classes if self.fields_once} - {frozenset()}
        for unit in stated:
            reports = self.check(unit)
            yield from (one for one in reports if _shared_at(one) not in shared) if shared else reports
        yield from of_classes
        if self.check_file is not None:
            yield from self.check_file(units)


def _stated(units: Sequence[UnitFacts]) -> Sequence[UnitFacts]:
    """Those of some units of which something is stated."""
    return [unit for unit in units if unit.facts or unit.writes]


def _of_classes(check: ClassCheck, units: Sequence[UnitFacts]) -> Iterator[Report]:
    classes: dict[int, list[UnitFacts]] = {}
    for unit in units:
        if unit.class_number >= 0:
            classes.setdefault(unit.class_number, []).append(unit)
    for methods in classes.values():
        yield from check(methods)


def _shared_at(report: Report) -> frozenset[int]:
    """The sites of the steps by which two holders came to share, if all of them are known."""
    return frozenset(point.site for point in report.points if point.role is Role.SHARED)


def reported(facts: FileFacts) -> list[tuple[Rule, Report]]:
    """What every rule reports of a file, in order of code: of its units, and of units with their helpers in them what
    the units alone do not show. Of most files nothing is stated, so that no rule has to look."""
    stated = _stated(facts.units)
    if not (stated or facts.called or facts.expanded.units):
        return []
    plain = [(rule, rule.alone(facts, stated)) for rule in load_rules()]
    spoken: dict[int, list[Page]] = {}
    for rule, reports in plain if facts.expanded.units else ():
        for report in reports:
            spoken.setdefault(facts.statements[report.site], []).append(rule.page)
    found = []
    for rule, reports in plain:
        reports = [*reports, *rule.with_helpers(facts, reports, spoken)]
        found += [(rule, report) for report in _inside_calls(reports, facts)]
    return found


def _inside_calls(reports: Sequence[Report], facts: FileFacts) -> Iterator[Report]:
    """The reports of a rule, each where the blamed step happens: in the function of this file that a call leads to.

    What happens there to whatever a call passes is the fault of the call, if others of the file have no part in any.
    """
    sites = {point.site for report in reports for point in report.points}
    for report in reports:
        inner = _inside(report, facts)
        role = next((point.role for point in inner.points if point.site == inner.site), Role.HERE)
        calls = facts.answerable.get((inner.site, role), frozenset())
        yield inner if inner is report or calls <= sites else report


def _inside(report: Report, facts: FileFacts) -> Report:
    """A report that stands where a call does what it is blamed for."""
    index = next((index for index, point in enumerate(report.points) if point.site == report.site), -1)
    if index < 0:
        return report
    point = report.points[index]
    places = facts.inside.get((report.site, point.role), ())
    if not places:
        return report
    place = places[0][1] if len({place for _, place in places}) == 1 else _of_memory(report, facts, places)
    names = {**point.names, "op": place.op or point.names.get("op", ""), "target": place.function}
    there = Point(point.role, place.site, f"{point.role.value}.inside", names)
    points = (*report.points[: index + 1], there, *report.points[index + 1 :])
    return report._replace(site=place.site, points=points)


def _of_memory(report: Report, facts: FileFacts, places: Sequence[tuple[int | str, Inside]]) -> Inside:
    """Of several places where a call does the same to several things: where it does so to what the report is about."""
    reads = {point.site for point in report.points if point.role is Role.READ}
    hit: set[int | str] = {text for point in report.points for text in point.names.values() if text}
    for fact in (fact for unit in facts.units for fact in unit.facts):
        if isinstance(fact, ReadAfter) and fact.write == report.site and fact.site in reads:
            hit.add(fact.place[0] | 1)
        elif isinstance(fact, Collected) and report.site in fact.put:
            hit.add(fact.storage | 1)
    named = {point.names.get("name") for point in report.points}
    known = [place for key, place in places if key in named] or [place for key, place in places if key in hit]
    known = known or [place for key, place in places if key]
    return known[0] if known else places[0][1]


@cache
def load_rules() -> tuple[Rule, ...]:
    """Every rule that has a check, in order of code."""
    modules = {name for _, name, _ in pkgutil.iter_modules(checks.__path__) if not name.startswith("_")}
    found = []
    for page in load_pages().values():
        stem = page.name.replace("-", "_")
        if stem in modules:
            module = importlib.import_module(f"torchcopylint.checks.{stem}")
            others = (getattr(module, "check_class", None), getattr(module, "check_file", None))
            names = ("INTO_HELPERS", "AT_CALLS", "WHERE_MADE", "ACROSS_CALLS", "OF_GUESTS", "OWN_PLACES", "FIELDS_ONCE")
            ways = [getattr(module, name, False) for name in names]
            found.append(Rule(page, module.check, *others, *ways))
    return tuple(found)


_PUTTING = frozenset({Role.SHARED, Role.KEPT})
"""Steps that put something aside, which who hands it to a helper does not."""
_STEPS = _PUTTING | {Role.WRITTEN}


_PUT_BACK = "read.load_state_dict"


def _takes_two(report: Report, facts: FileFacts) -> bool:
    """Whether more than one function has a part in it. What stands in one of them as a whole is that function's, which
    knows what it is about, unless it calls what functions hand on; who reads what it has changed reads what it was
    there to change, but for who puts a state back, and what is made for it in the call of it (`fill(x[0])`) is made to
    be changed. Nothing is there to have its history cut."""
    places, statements = facts.expanded.places, facts.statements
    cut = any(point.role is Role.CUT for point in report.points)
    looks = {point.site for point in report.points if point.role is Role.READ and point.phrase != _PUT_BACK}
    reads = set() if cut else looks - {report.site}
    sites = {report.site, *(point.site for point in report.points)}
    at = {places.get(site, (site,))[:-1] for site in sites}
    if len(at) == 1:
        return () in at and report.site in facts.expanded.through
    frames = set()
    for site in sites - reads:
        way = places.get(site, (site,))
        # Backward over what a helper returns is the caller's, whatever is made for the call in the same statement.
        handed = not (cut and site in looks) and any(
            one[:-1] == way[:-1] and statements[one[-1]] == statements[way[-1]] for one in _handed(facts)
        )
        frames |= set() if handed else {way[:-1]}
    return () in frames or len(frames) > 1


def _is_of_others(ways: Sequence[tuple[int, ...]], facts: FileFacts) -> bool:
    """Whether two functions of other files, which one call leads to, have all the parts in it."""
    inside = len({way[:1] for way in ways}) == 1 and all(way[-1] in facts.guests for way in ways)
    return inside and len({way[:-1] for way in ways}) > 1


def _handed(facts: FileFacts) -> Iterator[tuple[int, ...]]:
    """Where helpers are given something."""
    return (facts.expanded.places[site] for site in facts.expanded.handed)


def _beside_helper(report: Report, expanded: WithHelpers, lent: int) -> tuple[Report, WithHelpers, int]:
    """A report and where it stands: at the step that its rule names instead, if the blamed one happens in a helper of
    the function in which that one is."""
    way = expanded.places.get(report.site, (report.site,))
    at = expanded.places.get(report.instead.site, (report.instead.site,)) if report.instead is not None else way
    if report.instead is None or len(at) >= len(way) or way[: len(at) - 1] != at[:-1]:
        return report, expanded, lent
    ordered = tuple(sorted((*report.points, report.instead), key=lambda point: point.site))
    return report._replace(site=report.instead.site, points=ordered), expanded, at[-1]


def _placed(report: Report, expanded: WithHelpers, lent: int) -> Report:
    """A report with the sites of the program; it stands at `lent`."""
    places = expanded.places
    points = tuple(
        point._replace(site=lent if point.site == report.site else places.get(point.site, (point.site,))[-1])
        for point in report.points
    )
    return report._replace(site=lent, points=points)


def _lent(report: Report, facts: FileFacts, at_calls: bool) -> int:
    """Where in the program a report stands; at the call, if the helper is of another file. What a helper lends is put
    aside by who calls it and has it when it is written: there it stands at the call. Other callers of the helper may
    have taken a copy. A call that nobody takes anything from lends nothing: there it stands in the helper."""
    expanded, places = facts.expanded, facts.expanded.places
    way = places.get(report.site, (report.site,))
    while len(way) > 1 and way[-1] in facts.guests:
        way = way[:-1]
    shares = any(point.site == report.site and point.role is Role.SHARED for point in report.points)
    if not at_calls and not shares:
        return way[-1]
    others = [places.get(point.site, (point.site,)) for point in report.points if point.site != report.site]
    shared = max((_common(way, other) for other in others), default=len(way))
    while shares and shared < len(way) - 1 and way[shared] in expanded.dropped:
        shared += 1
    return way[min(shared, len(way) - 1)]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """So many calls two places of a unit with helpers in it have in common."""
    pairs = zip(one[:-1], other[:-1], strict=False)
    return next((count for count, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)) - 1)
