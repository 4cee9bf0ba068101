"""What backward needs as it was saved, and who has written it since (rule 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Clobbered, Link
from torchcopylint.flow.model import EARLIER, UNVERSIONED, Object, Value
from torchcopylint.flow.storages.reading import MAX_CHAIN
from torchcopylint.flow.tapes import anew, exclusion, uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def by_backward(m: Machine, value: Value, site: int, consumer: str) -> None:
    """Backward runs, or may run later, over the graph of a value: what it saved and was spoilt is a fact (rule 5)."""
    for ref in value.refs:
        obj = m.state.object(ref)
        for saved in sorted(obj.graph):
            spoilt = m.state.get(f"@spoilt{saved}")
            if not isinstance(spoilt, frozenset):
                continue
            for written in sorted(spoilt):
                if consumer == "return" and written in m.needed.in_evaluation:
                    # Written where the module is known not to be in training: nobody runs backward over that.
                    continue
                if (
                    written in m.writes
                    and saved in m.needed.saves
                    and _comes_too_late(m, m.needed.saves[saved].site, written, site)
                ):
                    continue
                if written in m.writes and saved in m.needed.saves and _gives_way(m, saved, written):
                    continue
                if (
                    written in m.writes
                    and saved in m.needed.saves
                    and not any(
                        exclusion.exclude(m, one, written) for one in (m.needed.saves[saved].site, obj.site, site)
                    )
                ):
                    sure = min(obj.sure, m.writes[written].sure)
                    kept = m.needed.objects.get(saved, -1)
                    links = _links_to(m, written, kept)
                    certain = (saved & ~EARLIER, written) in m.needed.met or _is_any_of(m, obj, saved, written)
                    hidden = certain and _is_hidden(m, written, kept)
                    m.fact(Clobbered(m.needed.saves[saved], written, site, consumer, links, sure, certain, hidden))


def _is_any_of(m: Machine, obj: Object, saved: int, written: int) -> bool:
    """Whether a write hits something that a loop has made, of whichever turn, and backward runs over that of each: over
    `torch.stack(hs)`, behind `hs[i] += x`."""
    kept = m.needed.met_alike.get((saved & ~EARLIER, written), frozenset())
    return bool(kept) and kept <= obj.graph


def _comes_too_late(m: Machine, saved: int, written: int, site: int) -> bool:
    """Whether backward would have to come round once more, and the write is of its loop's last turn."""
    loops = [uses.loops_around(m, one) for one in (saved, site, written)]
    if site < written and loops[1] == loops[2] and _is_of_its_turn(m, site) and _is_of_its_turn(m, written):
        # `for optimizer, loss in zip(optimizers, losses)`: the next turn has a loss, and an optimizer, of its own.
        return True
    if site < written and anew.begun_behind(m, site, written):
        return True
    around = loops[2]
    if site < written and around and len(loops[1]) > len(around) and loops[0][: len(around)] == around:
        # Several backward passes in a loop, and one step behind it: another turn around both computes its own.
        return loops[1][: len(around)] == around and saved < site and anew.each_turn(m, site, around[-1])
    # The write may stand in a loop of its own: `for p in net.parameters(): p.data.clamp_(-1, 1)`.
    behind = site < written and (loops[1] == loops[2] or (loops[1] and loops[2][: len(loops[1])] == loops[1]))
    if not behind or loops[0][: len(loops[1])] != loops[1]:
        return False
    if loops[0] != loops[1]:
        # An inner loop has saved it, such as that of an episode.
        return saved < site and anew.each_turn(m, site, written=written)
    return exclusion.is_of_last_turn(m, written) or (saved < site and anew.each_turn(m, site, written=written))


def _gives_way(m: Machine, saved: int, written: int) -> bool:
    """Whether the name that a write goes through was bound to something else by whoever has saved what it may still
    hold: `if t is not None: x = x * w`, and then `x.relu_()`, which hits the old `x` where nothing was saved."""
    root, site = m.hits.root_keys.get(written), m.needed.saves[saved].site
    if not isinstance(root, str) or not site < written or saved not in m.needed.objects:
        return False
    kept = {share.storage for share in m.state.object(m.needed.objects[saved]).shares}
    bound = [bind for bind in m.index.binds.get(root, ()) if site < bind.site < written]
    return len(bound) == 1 and _takes_its_place(m, bound[0], kept, (site, written))


def _takes_its_place(m: Machine, bind: t.Bind, kept: set[int], sites: tuple[int, int]) -> bool:
    """Whether a binding stands on an arm with the first of two sites, and not with the second one, and to nothing that
    sits on some storages."""
    held = {share.storage | 1 for ref in m.value(bind.value).refs for share in m.state.object(ref).shares}
    with_it = exclusion.goes_along(m, bind.site, sites[0]) and not exclusion.goes_along(m, bind.site, sites[1])
    turn = {uses.loops_around(m, one) for one in (bind.site, *sites)}
    return bool(held) and with_it and len(turn) == 1 and held.isdisjoint(one | 1 for one in kept)


def _is_of_its_turn(m: Machine, site: int) -> bool:
    """Whether the method called at a site is that of an element of what a loop goes through: another one each turn."""
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    return isinstance(call, t.Invoke) and uses.is_of_each_turn(m, call.base)


def _is_hidden(m: Machine, written: int, saved: int) -> bool:
    """Whether what was saved has a version counter of its own, from `.data`, which a write does not count on."""
    current = saved
    for _ in range(MAX_CHAIN):
        above = [share for share in m.state.object(current).shares if share.of != current]
        if len({share.of for share in above}) != 1:
            return False
        if above[0].how in UNVERSIONED:
            chains = m.hits.chains.get(written, {}).values()
            return not any(current | 1 == number for chain in chains for number, _ in chain)
        current = above[0].of
    return False


def _links_to(m: Machine, written: int, saved: int) -> tuple[Link, ...]:
    """The links from the saved object down to the place that was written through, in program order."""
    chains = m.hits.chains.get(written, {})
    for chain in chains.values():
        numbers = [number for number, _ in chain]
        if saved | 1 in numbers:
            below = chain[: numbers.index(saved | 1)]
            return tuple(reversed([link for _, link in below if link.how is not None]))
    return tuple(reversed([link for _, link in next(iter(chains.values()), ()) if link.how is not None]))
