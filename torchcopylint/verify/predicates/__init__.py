"""What has to be seen to confirm a finding, one predicate for each word that a page's `confirm` may have.

A predicate looks at a run of the code as it is, and at runs in which one thing was changed (an *alteration*: the
sharing cut, the write left out, ...). It confirms only what the altered run no longer shows: an observation that is
there either way has another cause than the finding says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from torchcopylint.base.finding import Role
from torchcopylint.verify.predicates.case import ALTERED, Case, Opinion, Seen
from torchcopylint.verify.predicates.graphs import (
    attribute_made,
    flag_lost,
    gradient_differs,
    graph_cut,
    graph_kept,
    not_held,
)
from torchcopylint.verify.predicates.outcomes import (
    nothing_left,
    raises,
    raises_later,
    result_lost,
    returns_differ,
    values_differ,
    version_bypassed,
    write_lost,
)
from torchcopylint.verify.predicates.sharing import same_object, two_names_change, two_tensors_change

__all__ = ["ALTERED", "LOOKS", "PREDICATES", "Case", "Opinion", "Seen", "within"]

PREDICATES: dict[str, Callable[[Case], Opinion]] = {
    "two-names-change": two_names_change,
    "raises": raises,
    "raises-later": raises_later,
    "values-differ": values_differ,
    "gradient-differs": gradient_differs,
    "write-lost": write_lost,
    "version-bypassed": version_bypassed,
    "same-object": same_object,
    "graph-kept": graph_kept,
    "graph-cut": graph_cut,
    "flag-lost": flag_lost,
    "attribute-made": attribute_made,
    "returns-differ": returns_differ,
    "result-lost": result_lost,
    "two-tensors-change": two_tensors_change,
    "not-held": not_held,
    "nothing-left": nothing_left,
}
"""The words of `confirm` and what they mean."""

LOOKS: dict[str, frozenset[str]] = {
    "two-names-change": frozenset({"changes"}),
    "two-tensors-change": frozenset({"changes"}),
    "raises": frozenset(),
    "raises-later": frozenset(),
    "values-differ": frozenset({"ends", "returns"}),
    "returns-differ": frozenset({"returns"}),
    "gradient-differs": frozenset({"ends"}),
    "write-lost": frozenset({"changes", "ends", "returns", "writes"}),
    "version-bypassed": frozenset({"changes", "graphs", "saved"}),
    "same-object": frozenset({"same", "ends", "returns"}),
    "graph-kept": frozenset({"graphs", "ends"}),
    "graph-cut": frozenset({"ends"}),
    "flag-lost": frozenset({"changes"}),
    "attribute-made": frozenset(),
    "result-lost": frozenset({"same", "ends", "returns"}),
    "not-held": frozenset({"unheld"}),
    "nothing-left": frozenset(),
}
"""What each predicate looks at: nothing else is looked for in a run. `changes` are those of contents and of
`requires_grad`, `ends` the values in the end, `graphs`, `saved` and `same` how things stand at the marks, `unheld` the
parameters without an optimizer, `writes` the operations that write, `returns` what functions return."""


def within(words: Iterable[str], roles: Sequence[Role], blame: Role) -> tuple[int, ...]:
    """The marks, by the roles that they have, while which run changes count; none if they count everywhere."""
    found: set[int] = set()
    for word in words:
        if "changes" not in LOOKS[word]:
            continue
        role = Role.CUT if word == "flag-lost" else blame if word == "write-lost" else Role.WRITTEN
        marks = {index for index, own in enumerate(roles) if own is role}
        if not marks and role is Role.WRITTEN and word != "version-bypassed":
            return ()
        found |= marks or {index for index, own in enumerate(roles) if own is blame} or set(range(len(roles)))
    return tuple(sorted(found))
