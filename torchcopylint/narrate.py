"""From reports to findings: the words of the steps, and which of several reports about one thing is told.

The only module of the program with sentences in it, besides the rule pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchcopylint.base.finding import Confidence, Role, Severity
from torchcopylint.base.report import Point, Report
from torchcopylint.pages import Page

PHRASES: Mapping[str, str] = {
    "shared.container": "shared here: `{result}` holds the same tensors as `{source}`",
    "shared.name": "shared here: `{result}` is another name for `{source}`",
    "shared.view": "shared here: `{result}` is a view of `{source}`",
    "shared.index": "shared here: `{result}` is a view of `{source}`",
    "shared.row": "shared here: `{result}` is a part of `{source}`",
    "shared.detach": "shared here: `detach()` gives `{result}` the memory of `{source}`",
    "shared.data": "shared here: `.data` gives `{result}` the memory of `{source}`",
    "shared.numpy": "shared here: `{result}` is an array over the memory of `{source}`",
    "shared.from_numpy": "shared here: `{result}` is a tensor over the memory of `{source}`",
    "shared.copy": "shared here: a shallow copy gives `{result}` the memory of `{source}`",
    "shared.conditional": "shared here: `{result}` is `{source}` itself, or a view of it",
    "shared.state": "shared here: `{result}` holds the tensors of `{source}`, not copies",
    "shared.parameters": "shared here: `{result}` is a parameter of `{source}`, not a copy",
    "shared.parameter": "shared here: `{result}` is put on the storage of `{source}`",
    "shared.assign": "shared here: `{result}` is put on the storage of `{source}`",
    "shared.buffer": "shared here: `{result}` is put on the storage of `{source}`",
    "shared.table": "shared here: `{result}` trains the memory of `{source}` as well",
    "shared.first": "shared here: `{source}` is given away for the first time",
    "shared.multiplied": "shared here: every entry is the same object",
    "shared.comprehension": "shared here: every turn adds the same object",
    "shared.copies": "shared here: every turn adds another object with the same parameters",
    "shared.fromkeys": "shared here: every key gets the same object",
    "shared.display": "shared here: two entries are the same object",
    "shared.field": "shared here: `{result}` is a part of `{source}`",
    "shared.loaded": "shared here: `{name}` takes over the tensors of `{source}`, not their values",
    "shared.exchanged": "shared here: the parameters of `{name}` are other tensors from here on",
    "shared.passed": "shared here: `{source}` is passed as `{result}` of `{target}`",
    "shared.assigned": "shared here: `{result}` is put on the storage of `{source}`",
    "shared.tensor": "shared here: a tensor on the memory of `{source}`",
    "shared.legacy": "shared here, if the dtype fits: else a converted copy of `{source}`",
    "shared.negative": "shared here: a view that goes backwards",
    "shared.handed": "shared here: the kept `{source}` is handed on, not a copy",
    "shared.memo": "shared here: `{source}` is kept for every later call with the same arguments",
    "shared.readonly": "shared here: an array that must not be written",
    "kept.append": "kept here: `{container}` gets the memory of `{name}`, not a copy",
    "kept.item": "kept here: `{container}` gets the memory of `{name}`, not a copy",
    "kept.others": "kept here: `{container}` holds the memory itself, not a copy",
    "kept.gradient": "kept here: `{name}` itself, not a copy",
    "kept.yield": "kept here: `{name}` itself is handed out, not a copy",
    "kept.queue": "kept here: `{container}` hands the memory of `{name}` to another process, not a copy",
    "shared.several": "shared here: `{name}` is one of several views that were made of `{source}` at once",
    "shared.no_grad": "shared here, while grad mode is off: `{name}` is a view of `{source}`",
    "shared.custom": "shared here: `{name}` is a view that a custom Function returned",
    "shared.hook": "shared here: the hook makes inputs and outputs of the module views",
    "written.dirty": "written here: `{op}` changes an input of the Function",
    "written.marked": "written here: `mark_dirty` promises that `{name}` is returned",
    "written.temporary": "marked here: `{name}` is no input, but what `forward` has made",
    "shared.dirty": "shared here: `{name}` is a view of `{source}`",
    "written.function": "written here, by a Function with several outputs: `{name}`",
    "written.operand": "written here: `{op}` reads `{name}` and writes it",
    "shared.expanded": "shared here: one memory stands for many elements",
    "shared.inference": "shared here: what inference mode makes has no version counter",
    "written": "written here: `{op}`",
    "written.cause": "written here: `{cause}`",
    "written.side": "written here: the memory of one of the two",
    "written.mapped": "written here: `{op}` takes one value for each of what `{source}` stands for",
    "written.elsewhere": "written there, in `{target}`: `{op}`",
    "written.told": "told here to write in place: `{op}` will overwrite what it is given",
    "written.inside": "written there, in `{target}`: `{op}`",
    "shared.inside": "shared there, in `{target}`",
    "kept.inside": "kept there, in `{target}`",
    "cut.inside": "cut there, in `{target}`",
    "written.overlapping": "written here: `{op}`, while `{source}` is being read",
    "written.resized": "written here: `{op}` has to replace the memory",
    "written.data": "written here: `{op}`, unseen by autograd",
    "written.leaf": "written here while grad mode is on",
    "written.out": "written here while grad mode is on",
    "read.operand": "read here: `{name}`",
    "read.look": "read here: `{name}`",
    "read.argument": "read here: `{name}` is passed on",
    "read.return": "read here: `{name}` is returned",
    "read.kept": "`{name}` stays here for whoever reads it later",
    "read.store": "read here: `{name}` is stored elsewhere",
    "read.restore": "`{name}` is put back here",
    "read.swap": "read here: `{name}` has been overwritten already",
    "read.text": "read here: `{name}`",
    "read.test": "read here: `{name}`",
    "read.yield": "read here: `{name}` is handed out",
    "read.load_state_dict": "read here: `{name}` is loaded",
    "read.backward": "read here: backward needs what was saved",
    "read.load": "read here: the model gets the state that it has already",
    "read.modes": "read here: called without recording a graph, unlike `{source}`",
    "read.compared": "read here: the output of the model is compared with its own",
    "read.trained": "read here: each is trained as a model of its own",
    "read.zeroed": "read here: `{source}` is one of those that are gone through, and it has been set to zero",
    "read.gathered": "read here: each is asked for a state of its own",
    "read.named": "read here: used as another model than `{source}`",
    "read.zip": "read here: the parameters are paired with themselves",
    "read.mix": "read here: the parameters are computed from themselves",
    "read.average": "read here: the average goes on towards the parameters that it consists of",
    "shared.shallow": "shared here: `{result}` holds the parameters of `{source}`, not copies",
    "read.shallow": "read here: `{name}` has the present parameters of `{source}`",
    "read.module": "read here: `{name}` is the present `{source}`",
    "read.averaged": "read here: `{source}` is to become what all turns have made of it",
    "read.pending": "read here: the backward pass of what is returned needs what was saved",
    "read.history": "read here: `{name}` is used, without its history",
    "read.data": "read here",
    "read.grad": "read here: `.grad` is None",
    "read.numpy": "read here: NumPy knows nothing of gradients",
    "read.negative": "read here: no tensor has a negative stride",
    "read.readonly": "read here: no tensor is read-only",
    "read.caller": "read here, by the caller: `{name}`",
    "read.field": "read here, in another method: `{name}`",
    "saved.input": "saved here: `{op}` keeps `{name}` for backward",
    "saved.buffer": "saved here: `{op}` keeps `{name}` for backward",
    "saved.output": "saved here: `{op}` keeps its result for backward",
    "saved.other": "saved here: `{op}` keeps `{name}` for backward",
    "saved.file": "saved here: with all of `{source}`",
    "saved.network": "saved here: `{op}` keeps its parameters for backward",
    "saved.parameters": "saved here: `{op}` keeps its parameters for backward",
    "moved.host": "moved here: a copy of `{source}` to the host is started, and not waited for",
    "moved.nothing": "moved here: `{cause}`, without a gradient for any of its parameters",
    "read.in_flight": "read here: `{name}` is not filled yet",
    "read.run": "read here: backward runs over the graph of `{source}`",
    "read.again": "read here: backward over `{name}` needs what is gone",
    "kept.sum": "kept here: `{name}` holds the graph of `{source}`",
    "kept.collected": "kept here: `{name}` holds `{source}` and the graph behind it",
    "kept.update": "kept here: `{name}` goes into the next call with the graph that it was computed by",
    "kept.written": "kept here: `{name}` joins the graph of `{source}`, and goes into the next call with it",
    "kept.table": "kept here: `{name}` holds the graph of `{source}`",
    "kept.carried": "kept here: `{name}` goes into the next iteration with its graph",
    "shared.copied": "shared here: `copy.copy` makes a tensor over the memory of `{name}`",
    "shared.copied_graph": "shared here: `copy.copy` makes a leaf over the memory of `{name}`, without its graph",
    "kept.before": "kept here: `{name}` is computed once, before the loop",
    "kept.constructed": "kept here: `{name}` is computed when the network is made, with its graph",
    "read.each.call": "read here: each call hangs on that one graph, which the first backward frees",
    "saved.computed": "saved here: `{name}` is computed, with a graph",
    "read.deepcopy": "read here: `copy.deepcopy` takes no tensor with a graph",
    "kept.context": "kept here: `{name}` holds `{source}`, unseen by autograd",
    "cut.graph": "cut here: `{op}` gives the value of `{source}` without its graph",
    "discarded.term": "discarded here: backward stops at this term of the loss",
    "read.bare": "read here: there is no graph for backward to run over",
    "kept.retained": "kept here: everything that `{name}` was computed from",
    "discarded.saved": "discarded here: backward frees what the graph has saved",
    "cut": "cut here: `{name}` itself loses its history",
    "cut.view": "cut here: `{name}` is a view",
    "here.index_copy": "here: `{source}` is a copy of what the index picks",
    "discarded.leaf": "discarded here: from now on `{name}` is a new tensor, not the leaf",
    "discarded.rebound": "discarded here: nobody looks at the new tensor",
    "cut.leaf.made": "cut here: a new leaf without the history of what it is made of",
    "cut.copy": "cut here: the copy has no history",
    "cut.clone": "cut here: what `clone()` has just recorded",
    "cut.variable": "cut here: a new leaf without the history of `{name}`",
    "discarded": "discarded here: `{op}` changes nothing",
    "kept.optimizer": "kept here: `{optimizer}` is given it",
    "read.optimizer_used": "read here: `{optimizer}` moves what it was given",
    "read.optimizer_returned": "read here: the optimizer is returned as it was built",
    "read.parameters": "read here: the parameters that there are at this point",
    "kept.field": "kept here: `{name}` is no parameter of the module",
    "kept.part": "kept here: `{name}` is new to the optimizer",
    "cut.leaf": "cut here: `{name}` is computed, so it is not a leaf",
    "kept.twice": "kept here: `{name}` and `{source}`",
    "written.state_item": "written here: an entry of the dict, not of the module",
    "written.parameter": "written here: `{source}` is a tensor, not a parameter",
    "written.requires_grad": "written here: `requires_grad`",
    "here.state_dict": "here: the dict is new, its tensors are the module's",
    "shared.turn": "shared here: each turn is handed `{source}` itself",
    "here.computed": "here: `{name}` is computed",
    "here.integer": "here: the dtype of `{name}` is {op}",
    "here.figure": "here: `{name}` is taken for a number",
    "here.figures": "here: numbers alone are taken from `{name}`",
    "here.generator": "here: a generator, which can be gone through once",
    "here.first": "here: it is gone through for the first time",
    "read.exhausted": "read here: nothing is left",
    "written.truncated": "written here: `{op}` has fractions",
    "written.once": "written here: each element once, with the last of its values",
    "here.grad_data": "here",
    "here.data_index": "here: there is no dimension to index",
    "here.mode_statement": "here: the context manager is never entered",
    "here.mode_with": "here: the class is entered, not an instance of it",
    "here.copy": "here: a copy, and a warning at run time",
    "here.variable": "here: the result is a plain tensor",
    "here.volatile": "here: nothing looks at it",
    "here.redundant_copy": "here: nobody else holds what `{cause}` has made",
    "here.redundant_detach": "here: it has been detached already",
    "here.redundant_item": "here: a number has no history",
    "here.list": "here: every number goes through Python",
    "here.reordered": "here: the dimensions change their order, the memory does not",
    "here.default": "here: the default is made once, and every call gets it",
    "here.view": "here: a view of this shape would need a copy",
    "here.inference_written": "here, outside of inference mode: `{op}` writes it",
    "here.inference_saved": "here, outside of inference mode: `{op}` keeps it for backward",
    "here.attribute": "here: nothing reads this attribute",
    "here.reveal": "here",
}
NEXT_TURN = ".next"


def phrase(point: Point) -> str:
    """The words of a step."""
    key = point.phrase
    later = key.endswith(NEXT_TURN)
    text = PHRASES[key.removesuffix(NEXT_TURN)].format_map(point.names)
    return f"{text}, on the next iteration" if later else text


class Told:
    """A report with its page, and what it is told as."""

    def __init__(self, page: Page, report: Report, statement: int) -> None:
        self.page = page
        self.report = report
        self.statement = statement
        self.severity: Severity = page.severity(report.variant)

    @property
    def code(self) -> str:
        """The rule's code."""
        return self.page.code


def settle(told: list[Told]) -> list[Told]:
    """One report per fault: what another rule's report in the same statement replaces, and what is said twice, goes.

    A page's `supersedes` names the rules that it replaces, in its whole statement. Of what is left at one place, the
    most severe stays. Rules that are about a whole statement (`.data` read several times) speak once. A report of low
    confidence, which the default preset does not show, never silences one that it shows. What a replaced rule tells of
    another statement goes as well, if it is a step of the report that replaces it.
    """
    by_statement: dict[int, list[Told]] = {}
    for item in told:
        by_statement.setdefault(item.statement, []).append(item)
    kept: list[Told] = []
    for items in by_statement.values():
        left = [item for item in items if not any(_replaces(other, item) for other in items)]
        left = [item for item in left if not any(_outranks(other, item) for other in left)]
        seen: set[tuple[str, int, str]] = set()
        for item in sorted(left, key=lambda i: (i.severity.rank, i.report.confidence.rank, i.report.site)):
            about = _about(item)
            if not about & seen:
                kept.append(item)
            seen |= about
    steps = _steps_of(kept)
    return [
        item
        for item in kept
        if not any(_replaces(other, item) for place in _blamed(item) for other in steps.get(place, ()))
    ]


def _about(item: Told) -> set[tuple[str, int, str]]:
    """What is said twice if another report of the statement has one of these: the place that is blamed, or that a name
    which shares its memory is read at a place, which a method and its class blame on different parts of a statement."""
    report = item.report
    found = {(item.code, -1 if item.code in ONCE_A_STATEMENT else report.site, "")}
    roles = {point.role: point.site for point in report.points}
    if Role.SHARED in roles and Role.READ in roles:
        found.add((item.code, roles[Role.READ], report.values.get("name", "")))
    return found


_Step = tuple[int, Role]


def _steps_of(kept: Iterable[Told]) -> dict[_Step, list[Told]]:
    """The reports that replace others, by their steps."""
    steps: dict[_Step, list[Told]] = {}
    for item in kept:
        for point in item.report.points if item.page.supersedes else ():
            steps.setdefault((point.site, point.role), []).append(item)
    return steps


def _blamed(item: Told) -> list[_Step]:
    """The step that takes the blame, also where it stands in what a call does: there, and at the call."""
    site = item.report.site
    role = next((point.role for point in item.report.points if point.site == site), Role.READ)
    return [(site, role), *((point.site, role) for point in item.report.points if point.role is role)]


def _replaces(item: Told, other: Told) -> bool:
    return other.code in item.page.supersedes and not _hides(item, other)


def _outranks(item: Told, other: Told) -> bool:
    return (
        item.report.site == other.report.site and item.severity.rank < other.severity.rank and not _hides(item, other)
    )


def _hides(item: Told, other: Told) -> bool:
    """Whether a preset that shows the second does not show the first, so that nothing would be told."""
    return item.report.confidence is Confidence.LOW is not other.report.confidence


ONCE_A_STATEMENT = frozenset({"TCL103", "TCL104", "TCL105", "TCL903"})


def outdone(told: list[Told], kept: list[Told]) -> list[tuple[Told, Told | None]]:
    """Each report that `settle` dropped, with the one in whose favour, if it is told itself."""
    by_statement: dict[int, list[Told]] = {}
    for item in kept:
        by_statement.setdefault(item.statement, []).append(item)
    stayed = {id(item) for item in kept}
    dropped = []
    for item in told:
        if id(item) not in stayed:
            others = by_statement.get(item.statement, [])
            reasons = (
                [other for other in others if item.code in other.page.supersedes],
                [other for other in others if other.report.site == item.report.site],
                others,
            )
            dropped.append((item, next((found[0] for found in reasons if found), None)))
    return dropped
