"""Parts of a run, for several machines: which files are whose."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from torchcopylint.project.discover import Discovery, Found, Unlisted
from torchcopylint.project.patterns import relative_posix

_FORM = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` (from 1) of `count` parts of a run."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard | None:
        """`2/8`, or `None` if the text is something else."""
        match = _FORM.fullmatch(text)
        shard = cls(int(match[1]), int(match[2])) if match else None
        return shard if shard and 1 <= shard.number <= shard.count else None

    def has(self, filename: str) -> bool:
        """Whether a file belongs to this part, by its name relative to the project root alone: other files that come
        or go do not move it."""
        return zlib.crc32(filename.encode("utf-8", "surrogatepass")) % self.count == self.number - 1


WHOLE = Shard(1, 1)


@dataclass(frozen=True, slots=True)
class Share:
    """What one part has to do. `places` says which of all files of the run each of the part's paths is, from 0; `total`
    is how many there are."""

    shard: Shard
    discovery: Discovery
    places: Mapping[str, int]
    total: int


def share(discovery: Discovery, shard: Shard) -> Share:
    """The part of what was discovered that belongs to a shard. Paths that do not exist belong to every one."""
    everything: list[Found | Unlisted] = [*discovery.unlisted, *discovery.files]
    everything.sort(key=lambda item: item.path.split(os.sep))
    mine = {
        item.path: place
        for place, item in enumerate(everything)
        if shard.has(relative_posix(item.path, item.settings.root))
    }
    files = tuple(found for found in discovery.files if found.path in mine)
    unlisted = tuple(directory for directory in discovery.unlisted if directory.path in mine)
    return Share(shard, Discovery(files, unlisted, discovery.missing), mine, len(everything))
