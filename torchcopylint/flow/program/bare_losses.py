"""Classes that compute a loss, and what they are given: backward runs over it, or nobody would call them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchcopylint.flow.model import TENSORS, Fact, Kind
from torchcopylint.flow.program import hollow

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_LOSS = re.compile(r"[Ll]oss|[Cc]riterion|NCE(?![A-Za-z])|[Oo]bjective")
_PREDICTED = re.compile(
    r"(?:y_?)?preds?(?:_\w+)?|\w+_preds?|predictions?|inputs?|outputs?|(?:\w+_)?logits?|scores?|(?:\w+_)?feat(?:ure)?s?|"
    r"(?:\w+_)?emb(?:edding)?s?|y_hat|recons?(?:truction)?|anchors?|z_?\w?|h_?\w|x_?\d?|student\w*|representations?"
)
"""Names of what a network has computed, as against targets, labels, masks and weights."""


def note_given(m: Machine) -> None:
    """What the `forward` of a loss compares has a graph, most likely: that of a class which is called so, and has no
    parameters itself."""
    unit = m.unit
    if unit.owner < 0 or unit.name != "forward" or not _LOSS.search(m.world.program.classes[unit.owner].name):
        return
    if m.world.class_kind(unit.owner)[0] is not Kind.MODULE or not hollow.has_no_parameters(m.world, unit.owner):
        return
    for parameter in unit.parameters:
        ref = m.number("argument", parameter.name)
        obj = m.state.object(ref)
        plain = obj.kind not in (*TENSORS, Kind.UNKNOWN) or obj.dtype.startswith(("int", "uint", "bool"))
        if not plain and obj.requires_grad is Fact.UNKNOWN and _PREDICTED.fullmatch(parameter.name):
            m.state.set_object(ref, obj._replace(requires_grad=Fact.LIKELY))
