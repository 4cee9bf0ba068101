"""Relations about autograd: what is kept for backward, what is refused, where graphs go on or end."""

from __future__ import annotations

from typing import NamedTuple

from torchcopylint.flow.facts.memory import Link
from torchcopylint.flow.model import Sure


class Saved(NamedTuple):
    """At `site`, the operation `op` kept `name` for backward: its `what` (`input`, `output`, `other`)."""

    site: int
    op: str
    what: str
    name: str


class Clobbered(NamedTuple):
    """A saved value was changed by `write`, and at `site` (`consumer`: `backward`, `return`) backward still needs it.

    `links` lead from what was saved to the name that was written through. `certain` is whether the write surely meets
    what was saved: not one of several objects, not an alias on a condition, not an optimizer that nobody knows.
    `hidden` is whether autograd does not count it, because what was saved came through `.data` and the write did not.
    """

    saved: Saved
    write: int
    site: int
    consumer: str
    links: tuple[Link, ...]
    sure: Sure
    certain: bool = True
    hidden: bool = False


class LayerSpoils(NamedTuple):
    """In a chain, the layer `name` that is made at `site` overwrites the result of the layer `op` before it, made at
    `kept`, which backward needs."""

    site: int
    name: str
    kept: int
    op: str
    sure: Sure


class KeptOfLayer(NamedTuple):
    """A loop over the layers of a chain keeps what `op` returns under `name`, at `kept` in `holder`, and the layer that
    is made at `site` overwrites it on the next turn, at `call`. `read` is where `holder` is looked at afterwards."""

    site: int
    name: str
    op: str
    call: int
    kept: int
    holder: str
    read: int
    sure: Sure


class KeptSpoilt(NamedTuple):
    """At `site`, the activation `op` overwrites what has been put into `holder`, at `kept`, for others to find. `told`
    is where it was told to work in place, or -1."""

    site: int
    holder: str
    op: str
    kept: int
    told: int
    sure: Sure


class HookedSpoilt(NamedTuple):
    """At `site`, a forward hook puts the output of a layer into `holder`, and `op` overwrites it afterwards: at
    `written`, where a layer is told to work in place, or does."""

    site: int
    holder: str
    op: str
    written: int
    sure: Sure


class LeafWritten(NamedTuple):
    """At `site`, a leaf that requires grad (or, with `view`, a view of it) is written while autograd records.

    `made` is the site where it came to require grad, or -1. `assumed` is whether grad mode was only assumed to be on,
    `local` whether the leaf was made in this unit, or belongs to a module that was. `asked` is whether its gradient has
    been asked for, or a class makes and trains it in a file that never speaks of grad mode, `aside` whether the write
    stands under a condition.
    """

    site: int
    name: str
    leaf: str
    op: str
    view: bool
    out: bool
    made: int
    viewed: int
    assumed: bool
    local: bool
    sure: Sure
    asked: bool = False
    aside: bool = False


class GradientRead(NamedTuple):
    """At `site`, `.grad` of `name` is read, which is not a leaf and retains no grad; made at `made` by `op`. `shown` is
    whether it is printed or displayed there, and nothing else. `told` is where a layer was told to compute it."""

    site: int
    name: str
    made: int
    op: str
    sure: Sure
    shown: bool = False
    told: int = -1


class GradModeUnused(NamedTuple):
    """At `site`, `name` is built and dropped (`statement`) or entered without being called (`with`)."""

    site: int
    name: str
    form: str


class NonleafKept(NamedTuple):
    """At `site`, `name`, which requires grad and is computed (at `made`), is kept as if it were a parameter.

    It is given to the optimizer that `optimizer` calls, or set as a field of a module, computed from `source`, a leaf
    that nobody else has. `when` is the condition under which nothing is computed.
    """

    site: int
    name: str
    made: int
    source: str
    when: str
    optimizer: str
    sure: Sure


class MappedWrite(NamedTuple):
    """At `site`, in a function that is given to `vmap`, `op` writes into `name`, which is not mapped, what is computed
    from the mapped parameter `source`."""

    site: int
    name: str
    op: str
    source: str
    sure: Sure


class RequiresGradRefused(NamedTuple):
    """At `site`, `requires_grad` of `name` is switched, which torch refuses.

    `form` is `nonleaf` (computed at `made`) or `integer` (its dtype is `dtype`).
    """

    site: int
    name: str
    form: str
    made: int
    dtype: str
    sure: Sure


class ViewRefused(NamedTuple):
    """At `site`, `op` writes `name`, a view of `base` since `viewed` that autograd does not let be written.

    `why` is `multi` (one of several views that one operation made), `no_grad` (made while grad mode was off), `custom`
    (returned by a custom Function, or by a module with a full backward hook), `hook` (the input of such a module) or
    `chain` (what such a module takes or gives within the `Sequential` that is called `name`). For `assumed` and
    `local`, see `LeafWritten`. With a `used`, `op` writes the base, and the view, `name`, is used there later.
    """

    site: int
    name: str
    op: str
    why: str
    base: str
    viewed: int
    assumed: bool
    local: bool
    sure: Sure
    used: int = -1


class FunctionInput(NamedTuple):
    """A custom Function's `forward` writes its input `name` by `op`, and breaks the rules for that at `site`.

    `why` is `unmarked` (returned, but not given to `mark_dirty`), `lost` (marked, but not returned; `other` is the
    write), `view` (a view, since `other`, of `op`, goes into a Function with several outputs) or `temporary` (marked
    and returned, but no input: `forward` has made it, at `other`).
    """

    site: int
    name: str
    op: str
    why: str
    other: int
    sure: Sure


class InferenceMisused(NamedTuple):
    """At `site`, outside of inference mode, `op` writes (`what`: `written`) or keeps for backward (`saved`) `name`,
    which was made at `made` in inference mode."""

    site: int
    name: str
    op: str
    made: int
    what: str
    sure: Sure


class Accumulated(NamedTuple):
    """At `site`, `source` and the graph behind it is added to `name`, turn after turn of a loop, or call after call of
    a method, in which backward runs over that graph, at `ran`. `form` is `sum`, `collected`, or `item` where it is
    written into a part of `name`. A sum of which nobody wants the graph has the form `figure`, a list `figures`:
    everybody takes numbers from it, at `ran` for one (-1: only the caller does), whether backward runs or not. For
    `assumed`, see `LeafWritten`.
    """

    site: int
    name: str
    source: str
    form: str
    ran: int
    sure: Sure
    assumed: bool = False


class FieldKeepsGraph(NamedTuple):
    """At `site`, `name`, a field of `self` that outlives the call, comes to hold what carries a graph.

    `source` is what it is set to, or what is written into it. `form` is `update` (it is computed from what the field
    held before, so that each call's graph hangs on the one of the call before) or `written` (the tensor had no graph,
    and something that has one is written into it). `ran` is where backward runs over that graph in the same method, or
    -1; for `assumed`, see `LeafWritten`.
    """

    site: int
    name: str
    source: str
    form: str
    ran: int
    assumed: bool
    sure: Sure


class BackwardAgain(NamedTuple):
    """At `site`, backward runs over the graph of `name`, of which backward at `freed` has freed what was saved.

    `carrier` is the name that took the graph into the loop's next turn, bound at `kept`; empty outside of loops.
    `before` is the name of what was computed before the loop, at `kept`, where each turn runs over that.
    """

    site: int
    name: str
    freed: int
    sure: Sure
    carrier: str
    kept: int
    before: str = ""


class ComputedOnce(NamedTuple):
    """At `site`, the constructor of a network sets the field `name` to what has a graph that backward frees; `forward`
    looks at it at `read`, and what it returns hangs on it each time."""

    site: int
    name: str
    read: int
    sure: Sure


class RetainedForNothing(NamedTuple):
    """At `site`, in a loop, backward over `name` retains the graph, and no other backward of the loop needs it.

    `carried` is whether backward itself runs over it again in the next turn.
    """

    site: int
    name: str
    carried: bool


class GraphLost(NamedTuple):
    """At `site`, backward is called on `name`, which has no graph: what carried one, `source`, lost it at `cut`.

    `op` is what cut it; `wrapped` is whether the value requires grad by itself, as a leaf, `number` whether it is no
    tensor at all, but a number of Python. At `wrapper`, if it is known, that leaf was made of what was cut before.
    """

    site: int
    name: str
    source: str
    cut: int
    op: str
    wrapped: bool
    sure: Sure
    number: bool = False
    wrapper: int = -1


class StepUnreached(NamedTuple):
    """At `site`, `optimizer` steps, and the one backward since its gradients were set to zero, over the loss `name`,
    has come to none of its parameters: `op` has cut `source`, which its network has computed, from its graph at
    `cut`."""

    site: int
    name: str
    source: str
    cut: int
    op: str
    optimizer: str
    sure: Sure


class TermCopied(NamedTuple):
    """At `site`, `op` copies the numbers out of tensors with a graph, and the copy is a term of what backward runs over
    at `ran`, together with others that have a graph. `name` is what it copies. `loss`: what it is added to, where `op`
    takes one number out of one tensor; else empty."""

    site: int
    name: str
    op: str
    ran: int
    sure: Sure
    loss: str = ""


class ContextKept(NamedTuple):
    """At `site`, `forward` of an autograd `Function` keeps the tensor `name` in an attribute of its context."""

    site: int
    attribute: str
    name: str
    sure: Sure
