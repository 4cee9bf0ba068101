"""What examines the files of a run. This one does it here and now; others use processes or other machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from torchcopylint.pages import Page
from torchcopylint.project.examined import Request, Seen, examine_file

Advanced: TypeAlias = Callable[[str], None]
"""Called with the path of each file when its turn comes."""

Engine: TypeAlias = Callable[[Sequence[Request], Mapping[str, Page], Advanced], Iterator[tuple[int, Seen]]]
"""From requests to what each came to, by its number among them, in any order; every request is answered once."""


def one_by_one(
    requests: Sequence[Request], pages: Mapping[str, Page], advanced: Advanced
) -> Iterator[tuple[int, Seen]]:
    """Examine one file after the other in this process."""
    for number, request in enumerate(requests):
        advanced(request.path)
        yield number, examine_file(request, pages)
