"""What has to be seen to confirm a finding, one predicate for each word that a page's `confirm` may have.

A predicate looks at a run of the code as it is, and at runs in which one thing was changed (an *alteration*: the
sharing cut, the write left out, ...). It confirms only what the altered run no longer shows: an observation that is
there either way has another cause than the finding says.
"""

from __future__ import annotations

from collections.abc import Callable

from torchcopylint.verify.predicates.case import ALTERED, Case, Opinion, Seen
from torchcopylint.verify.predicates.graphs import flag_lost, gradient_differs, graph_cut, graph_kept, not_held
from torchcopylint.verify.predicates.outcomes import (
    raises,
    raises_later,
    result_lost,
    returns_differ,
    values_differ,
    version_bypassed,
    write_lost,
)
from torchcopylint.verify.predicates.sharing import same_object, two_names_change, two_tensors_change

__all__ = ["ALTERED", "PREDICATES", "Case", "Opinion", "Seen"]

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
    "returns-differ": returns_differ,
    "result-lost": result_lost,
    "two-tensors-change": two_tensors_change,
    "not-held": not_held,
}
"""The words of `confirm` and what they mean."""
