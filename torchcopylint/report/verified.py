"""What running the flagged code showed, in words for people."""

from __future__ import annotations

from torchcopylint.base.verification import Evidence, Verdict, Verification

_BACKGROUND = frozenset({"assumed", "stand-in", "protection", "setting"})
"""Evidence about how the code was run, not about what happened."""


def verdict_of(result: Verification) -> str:
    """The verdict in a word or two; one that rests on a guess says so."""
    guessed = any(item.kind == "guessed" for item in result.evidence)
    return f"{result.verdict} (guessed)" if guessed and result.verdict is Verdict.INCONCLUSIVE else result.verdict.value


def headline(result: Verification) -> str:
    """The verdict, where it was reached, and the first thing that was seen."""
    where = ", ".join(filter(None, (f"torch {result.torch_version}" if result.torch_version else "", result.device)))
    seen = next(iter(observed(result)), None)
    told = f": {seen.text}" if seen is not None else ""
    return f"{verdict_of(result)}{f' ({where})' if where else ''}{told}"


def observed(result: Verification) -> list[Evidence]:
    """The evidence about what happened."""
    return [item for item in result.evidence if item.kind not in _BACKGROUND]


def lines(result: Verification) -> list[str]:
    """The headline, further evidence, what was assumed, and the script that repeats it."""
    found = [headline(result), *(item.text for item in observed(result)[1:])]
    for kind, title in (("assumed", "assumed"), ("stand-in", "stood in for")):
        texts = [item.text for item in result.evidence if item.kind == kind]
        if texts:
            found.append(f"{title}: {'; '.join(texts)}")
    if result.reproducer:
        found.append(f"script: {result.reproducer}")
    return found
