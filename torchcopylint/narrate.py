"""From reports to findings: the words of the steps, and which of several reports about one thing is told.

The only module of the program with sentences in it, besides the rule pages.
"""

from __future__ import annotations

from collections.abc import Mapping

from torchcopylint.base.finding import Severity
from torchcopylint.base.report import Point, Report
from torchcopylint.pages import Page

PHRASES: Mapping[str, str] = {
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
    "shared.table": "shared here: this embedding trains the memory of `{source}` as well",
    "shared.first": "shared here: `{source}` is given away for the first time",
    "shared.multiplied": "shared here: every entry is the same object",
    "shared.comprehension": "shared here: every turn adds the same object",
    "shared.fromkeys": "shared here: every key gets the same object",
    "shared.field": "shared here: `{result}` is a part of `{source}`",
    "shared.assigned": "shared here: `{result}` is put on the storage of `{source}`",
    "written": "written here: `{op}`",
    "written.cause": "written here: `{cause}`",
    "written.data": "written here: `{op}`, unseen by autograd",
    "written.leaf": "written here while grad mode is on",
    "written.out": "written here while grad mode is on",
    "read.operand": "read here: `{name}`",
    "read.look": "read here: `{name}`",
    "read.argument": "read here: `{name}` is passed on",
    "read.return": "read here: `{name}` is returned",
    "read.store": "read here: `{name}` is stored elsewhere",
    "read.swap": "read here: `{name}` has been overwritten already",
    "read.text": "read here: `{name}`",
    "read.test": "read here: `{name}`",
    "read.yield": "read here: `{name}` is handed out",
    "read.load_state_dict": "read here: `{name}` is loaded",
    "read.backward": "read here: backward needs what was saved",
    "read.history": "read here: `{name}` is used, without its history",
    "read.data": "read here",
    "read.grad": "read here: `.grad` is None",
    "read.field": "read here, in another method: `{name}`",
    "saved.input": "saved here: `{op}` keeps `{name}` for backward",
    "saved.output": "saved here: `{op}` keeps its result for backward",
    "saved.other": "saved here: `{op}` keeps `{name}` for backward",
    "saved.parameters": "saved here: `{op}` keeps its parameters for backward",
    "read.run": "read here: backward runs over the graph of `{source}`",
    "read.again": "read here: backward over `{name}` needs what is gone",
    "kept.sum": "kept here: `{name}` holds the graph of `{source}`",
    "kept.collected": "kept here: `{name}` holds `{source}` and the graph behind it",
    "kept.carried": "kept here: `{name}` goes into the next iteration with its graph",
    "shared.copied": "shared here: `copy.copy` makes a tensor over the memory of `{name}`",
    "shared.copied_graph": "shared here: `copy.copy` makes a leaf over the memory of `{name}`, without its graph",
    "saved.computed": "saved here: `{name}` is computed, with a graph",
    "read.deepcopy": "read here: `copy.deepcopy` takes no tensor with a graph",
    "kept.context": "kept here: `{name}` holds `{source}`, unseen by autograd",
    "cut.graph": "cut here: `{op}` gives the value of `{source}` without its graph",
    "read.bare": "read here: there is no graph for backward to run over",
    "kept.retained": "kept here: everything that `{name}` was computed from",
    "discarded.saved": "discarded here: backward frees what the graph has saved",
    "cut": "cut here: `{name}` itself loses its history",
    "cut.view": "cut here: `{name}` is a view",
    "discarded": "discarded here: `{op}` changes nothing",
    "here.grad_data": "here",
    "here.data_index": "here: there is no dimension to index",
    "here.mode_statement": "here: the context manager is never entered",
    "here.mode_with": "here: the class is entered, not an instance of it",
    "here.attribute": "here: nothing reads this attribute",
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

    Of several reports at one place the most severe stays. Of equals, a page's `supersedes` names the rules that it
    replaces, in its whole statement. Rules that are about a whole statement (`.data` read several times) speak once.
    """
    by_statement: dict[int, list[Told]] = {}
    for item in told:
        by_statement.setdefault(item.statement, []).append(item)
    kept: list[Told] = []
    for items in by_statement.values():
        replaced = {code for item in items for code in item.page.supersedes}
        worst: dict[int, int] = {}
        for item in items:
            worst[item.report.site] = min(item.severity.rank, worst.get(item.report.site, item.severity.rank))
        seen: set[tuple[str, int]] = set()
        for item in sorted(items, key=lambda i: (i.severity.rank, i.report.confidence.rank, i.report.site)):
            place = (item.code, -1 if item.code in ONCE_A_STATEMENT else item.report.site)
            outdone = item.severity.rank > worst[item.report.site]
            if item.code not in replaced and place not in seen and not outdone:
                seen.add(place)
                kept.append(item)
    return kept


ONCE_A_STATEMENT = frozenset({"TCL103", "TCL104", "TCL105"})
