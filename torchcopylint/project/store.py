"""What files came to in earlier runs, in one file for each project root.

A file is known by its date and size, or, where those differ, by its content. What is kept is what the analysis found,
before comments and settings select from it, so that a change of `select` costs nothing. It holds as long as the linter
itself, its rules and Python are the same, the limits are, and every
file that the analysis depended on is unchanged (`project.graph`).

The file is replaced as a whole, by renaming: whoever reads it sees one state or another. A process that writes keeps
what others have written meanwhile. Nothing that happens to the file, or to its directory, ends a run.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torchcopylint import __version__
from torchcopylint.base.plain import from_plain, to_plain
from torchcopylint.pages import pages_directory
from torchcopylint.project.callers import Callers
from torchcopylint.project.dependencies import NOTHING, Asked, Dependencies, digest_of
from torchcopylint.project.examined import Examined, Outcome, Request, Seen, asked_of
from torchcopylint.project.graph import Graph
from torchcopylint.project.patterns import relative_posix
from torchcopylint.project.read import CannotRead, TooLarge, read_file, reason_of
from torchcopylint.project.shelf import Shelf
from torchcopylint.project.sources import Sources

FORMAT = 3
"""The form of the file; another number means that it is made anew."""
SUFFIX = ".torchcopylint-cache"
SHELF_SUFFIX = ".torchcopylint-summaries"
_RACY = 2_000_000_000
"""Nanoseconds: a file that was changed so shortly before it was looked at may change again without its date."""
_LARGEST = 1_000_000_000
_DAMAGED = "an entry of the cache is damaged and is made anew: {}"
_LONGEST_HEAD = 100_000
_NOTHING = to_plain(NOTHING)

Stat = tuple[int, int, int]
"""The times of the last change of content and of metadata in nanoseconds, and the size; zeros if not to be trusted."""
_NEVER: Stat = (0, 0, 0)


class _Seen(NamedTuple):
    """A file as it was when it was last looked at."""

    stat: Stat
    digest: str


class Store:
    """The cache of a run. `notes` collects what a user should know of it; there is one note for each thing."""

    def __init__(self, directory: str, root: str) -> None:
        """`directory` is where caches are, `root` the absolute project root that this one is for."""
        self.path = os.path.join(directory, f"{_name(root)}{SUFFIX}")
        self.notes: list[str] = []
        self._root = root
        self._sources = Sources(root)
        self._callers = Callers(root, self._sources)
        self._begun = time.time_ns()
        self._entries: dict[str, list[Any]] = {}
        self._graph = self._new_graph()
        self._kept: dict[str, tuple[list[Any], Dependencies] | None] = {}
        self._files: dict[str, _Seen] = {}
        self._looked: dict[str, _Seen | None] = {}
        self._changed = False
        self._header = [FORMAT, identity(), root]
        path = os.path.join(directory, f"{_name(root)}{SHELF_SUFFIX}")
        self.shelf = Shelf(path, json.dumps(self._header), self._digest_now, self._places)
        self._state = 0
        self._load()

    def recall(self, request: Request) -> Examined | None:
        """What a file came to when it was as it is now, or `None` if that is not known. Never raises."""
        seen = self._look(request.path)
        entry = self._entries.get(request.filename)
        if seen is None or entry is None:
            return None
        try:
            digest, asked, needed, (outcome, commented, findings, gaps, answers) = entry
            if digest != seen.digest or asked != _asked(request):
                return None
            if not self._graph.holds(needed) or not self._is_answered(answers):
                return None
            if not findings and not gaps:
                return Examined(Outcome(outcome), (), digest, bool(commented))
            plain = [outcome, findings, digest, commented, gaps, _NOTHING, "", []]
            examined: Examined = from_plain(Examined, plain)
        except (ValueError, TypeError, LookupError) as error:
            self._note(_DAMAGED.format(error))
            return None
        return examined

    def _is_answered(self, answers: list[Any]) -> bool:
        """Whether the project says now what it said when it was asked. Where no file has changed, none is read."""
        if not answers:
            return True
        state, asked = answers
        now = self._callers.state(self._begun - _RACY)
        if now and now == state:
            return True
        told: tuple[Asked, ...] = from_plain(tuple[Asked, ...], asked)
        if any(self._callers.answer(one.question) is not one.answer for one in told):
            return False
        answers[0] = now
        self._changed = True
        return True

    def keep(self, request: Request, seen: Seen) -> None:
        """Remember what a file came to, and what was found out about the files that it uses."""
        examined = seen.examined
        self._graph.tell(seen.used)
        self.shelf.tell(asked_of(request.limits), seen.used, seen.summaries)
        known = self._looked.get(request.path)
        if not examined.lasting:
            if request.filename in self._entries:
                self._kept[request.filename] = None
                self._changed = True
            return
        # The date was taken before the content was read: if it changed in between, the digest tells.
        now = _Seen(known.stat if known else _NEVER, examined.digest)
        self._looked[request.path] = self._files[request.path] = now
        answers = [self._callers.state(self._begun - _RACY), to_plain(examined.asked)] if examined.asked else []
        rest = [
            examined.outcome.value,
            examined.commented,
            to_plain(examined.findings),
            to_plain(examined.gaps),
            answers,
        ]
        self._kept[request.filename] = ([examined.digest, _asked(request), rest], examined.dependencies)
        self._changed = True

    def learn(self, request: Request, seen: Seen) -> None:
        """Remember what was found out about the files that a content uses, and nothing of it itself."""
        used = [one for one in seen.used if one.path != request.path]
        self.shelf.tell(asked_of(request.limits), used, [one for one in seen.summaries if one.path != request.path])

    def _new_graph(self) -> Graph:
        return Graph(self._digest_now, self._places)

    def _places(self, importer: str, dotted: str) -> tuple[str, ...]:
        return tuple([path for path, _ in self._sources.places(importer, dotted)])

    def save(self) -> None:
        """Write what was learnt, together with what other processes have written meanwhile. Never raises."""
        self._save_shelf()
        if not self._changed:
            return
        if self._state != self._check_on_disk():
            told, mine = self._graph, self._files
            self._files = {}
            self._load(quiet=True)
            self._files.update(mine)
            self._graph.tell(told.told)
        for filename, kept in self._kept.items():
            if kept is None:
                self._entries.pop(filename, None)
                continue
            (digest, asked, rest), dependencies = kept
            self._entries[filename] = [digest, asked, self._graph.add(dependencies), rest]
        self._forget_deleted()
        try:
            self._write()
            self._changed = False
        except OSError as error:
            self._note(f"the cache cannot be written, so the next run starts anew: {self.path}: {reason_of(error)}")

    def _save_shelf(self) -> None:
        """Write the summaries, if there are new ones. Where they cannot be written, the cache says it of itself."""
        if self.shelf.is_new:
            try:
                prepare(os.path.dirname(self.path))
                self.shelf.save()
            except OSError:
                pass
        if self.shelf.damaged:
            self._note(f"summaries of earlier runs are damaged and are made anew: {self.shelf.path}")

    def _look(self, path: str) -> _Seen | None:
        """A file as it is now, with its digest if that is known without much ado; `None` if it cannot be read."""
        if path in self._looked:
            return self._looked[path]
        known = self._files.get(path)
        try:
            status = os.stat(path)
        except OSError:
            self._looked[path] = None
            return None
        stat = (status.st_mtime_ns, status.st_ctime_ns, status.st_size)
        seen = _Seen(stat, "")
        if known is not None and known.stat == stat:
            seen = known
        elif known is not None and status.st_size <= _LARGEST:
            seen = _Seen(_settled(stat), self._read_digest(path))
            if seen.digest == known.digest:
                self._files[path] = seen
                self._changed = True
        else:
            seen = _Seen(_settled(stat), "")
        self._looked[path] = seen
        return seen

    def _digest_now(self, path: str) -> str:
        """The digest of a file as it is now; empty if there is none."""
        seen = self._look(path)
        if seen is None:
            return ""
        if not seen.digest:
            seen = seen._replace(digest=self._read_digest(path))
            self._looked[path] = self._files[path] = seen
            self._changed = True
        return seen.digest

    def _read_digest(self, path: str) -> str:
        try:
            return digest_of(read_file(path, _LARGEST))
        except (CannotRead, TooLarge):
            return ""

    def _absolute(self, path: str) -> str:
        return path if os.path.isabs(path) else os.path.join(self._root, *path.split("/"))

    def _relative(self, path: str) -> str:
        inside = path.startswith(self._root.rstrip(os.sep) + os.sep)
        return relative_posix(path, self._root) if inside else path

    def _forget_deleted(self) -> None:
        """Leave out files that are gone, so that the cache does not grow for ever."""
        for filename in [name for name in self._entries if not os.path.lexists(self._absolute(name))]:
            del self._entries[filename]
        for path in [path for path in self._files if path not in self._looked and not os.path.lexists(path)]:
            del self._files[path]

    def _load(self, *, quiet: bool = False) -> None:
        """Read the file. One that is missing, or of another version, is an empty one; a damaged one as well."""
        try:
            data = Path(self.path).read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            if not quiet:
                self._note(f"the cache cannot be read: {self.path}: {reason_of(error)}")
            return
        try:
            check = self._check_of(data.partition(b"\n")[0])
            if check is None:
                return
            body = data.partition(b"\n")[2]
            if check != zlib.crc32(body):
                raise ValueError("its checksum is wrong")
            entries, files, graph = json.loads(body)
            self._files = {self._absolute(path): _Seen((a, b, c), digest) for path, (a, b, c, digest) in files.items()}
            self._graph = self._new_graph()
            self._graph.read(graph, self._absolute)
            self._entries = dict(self._read_entries(entries))
            self._state = check
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            self._entries, self._files, self._graph = {}, {}, self._new_graph()
            self._changed = True
            if not quiet:
                self._note(f"the cache is damaged and is made anew: {self.path}: {error}")

    def _read_entries(self, entries: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
        """The entries that depend on what there is."""
        for filename, entry in entries.items():
            try:
                digest, asked, needed, rest = entry
                yield filename, [digest, asked, self._graph.direct(needed), rest]
            except (ValueError, TypeError) as error:
                self._note(_DAMAGED.format(error))

    def _check_of(self, head: bytes) -> int | None:
        """The checksum in the first line of the file; `None` if the file is of another version. Raises `ValueError`."""
        whole = json.loads(head)
        if type(whole) is not list or len(whole) != len(self._header) + 1:
            raise ValueError("it is something else")
        check: int = whole.pop()
        return check if whole == self._header else None

    def _check_on_disk(self) -> int | None:
        """The checksum of the file as it is now, or nothing to speak of."""
        try:
            with open(self.path, "rb") as file:
                return self._check_of(file.readline(_LONGEST_HEAD))
        except (OSError, ValueError, RecursionError):
            return 0

    def _write(self) -> None:
        files = {self._relative(path): [*seen.stat, seen.digest] for path, seen in self._files.items()}
        graph, direct = self._graph.plain([entry[2] for entry in self._entries.values()], self._relative)
        entries = {
            filename: [digest, asked, needed, rest]
            for (filename, (digest, asked, _, rest)), needed in zip(self._entries.items(), direct, strict=True)
        }
        body = json.dumps([entries, files, graph], separators=(",", ":")).encode("utf-8", "surrogatepass")
        head = json.dumps([*self._header, zlib.crc32(body)]).encode("utf-8", "surrogatepass")
        prepare(os.path.dirname(self.path))
        # In the same directory, since only there renaming replaces; of this process, since there may be others.
        temporary = f"{self.path}.{os.getpid()}.tmp"
        try:
            with open(temporary, "wb") as file:
                file.write(head + b"\n" + body)
            os.replace(temporary, self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def _settled(stat: Stat) -> Stat:
    """The stat if the file cannot change without changing it, else one that no file has."""
    return stat if stat[0] + _RACY < time.time_ns() else _NEVER


def _asked(request: Request) -> list[Any]:
    """What of the settings an examination depends on."""
    return [to_plain(request.limits), request.screen]


def _name(root: str) -> str:
    """A file name that tells people which project it is about. It differs between projects; the header is surer."""
    shown = "".join(c if c.isalnum() and c.isascii() else "-" for c in os.path.basename(root))[:40]
    return f"{shown or 'root'}-{zlib.crc32(os.fsencode(root)):08x}"


def identity() -> str:
    """What stands for this linter and what it runs with: `edition`, and the versions of Python and LibCST."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    return f"{edition()} python {python} libcst {_libcst()}"


def edition() -> str:
    """What stands for this linter: its version, its code, rules and tables.

    Contents are read, not dates: a released version is the same wherever it is installed.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    check = 0
    for top in sorted({package, str(pages_directory())}):
        for directory, inner, names in os.walk(top):
            inner[:] = sorted(name for name in inner if name != "__pycache__")
            for name in sorted(names):
                if name.endswith((".py", ".md")):
                    check = zlib.crc32(Path(directory, name).read_bytes(), zlib.crc32(name.encode(), check))
    return f"{__version__} {check:08x}"


def _libcst() -> str:
    """The version of LibCST, without importing it."""
    from importlib.util import find_spec

    spec = find_spec("libcst")
    if spec is None or spec.origin is None:
        return "unknown"
    try:
        version = Path(spec.origin).with_name("_version.py").read_bytes()
    except OSError:
        return "unknown"
    return f"{zlib.crc32(version):08x}"


def prepare(directory: str) -> None:
    """Make the cache's directory, marked so that version control and backups leave it out. Raises `OSError`."""
    if os.path.isdir(directory):
        return
    os.makedirs(directory, exist_ok=True)
    for name, text in _MARKS.items():
        Path(directory, name).write_text(text, encoding="utf-8")


_MARKS = {
    ".gitignore": "# Made by torchcopylint.\n*\n",
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# Made by torchcopylint.\n",
}


class Stores:
    """The caches of a run that is about several project roots, each opened when it is first asked for."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._stores: dict[str, Store] = {}

    def of(self, root: str) -> Store:
        """The cache for an absolute project root."""
        if root not in self._stores:
            self._stores[root] = Store(self._directory, root)
        return self._stores[root]

    def shelf(self, root: str) -> Shelf:
        """The summaries of the files below an absolute project root."""
        return self.of(root).shelf

    def save(self) -> None:
        """Write them all."""
        for store in self._stores.values():
            store.save()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know, in order and once."""
        return tuple(dict.fromkeys(note for store in self._stores.values() for note in store.notes))


def default_directory(environment: Mapping[str, str]) -> str:
    """Where caches are if `--cache-dir` does not say: `TORCHCOPYLINT_CACHE_DIR`, else the user's cache directory."""
    named = environment.get("TORCHCOPYLINT_CACHE_DIR")
    if named:
        return os.path.abspath(named)
    from platformdirs import user_cache_dir  # not needed where the directory is named

    return user_cache_dir("torchcopylint", appauthor=False)


def clean(directory: str) -> int:
    """Remove the caches in a directory, and the directory if nothing else is in it; how many there were.

    What this tool did not make stays. Raises `OSError`.
    """
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return 0
    removed = 0
    for name in names:
        if name.endswith(SUFFIX) or SHELF_SUFFIX in name or (name.endswith(".tmp") and SUFFIX in name):
            Path(directory, name).unlink(missing_ok=True)
            removed += name.endswith(SUFFIX)
    if removed and set(os.listdir(directory)) <= set(_MARKS):
        for name in _MARKS:
            Path(directory, name).unlink(missing_ok=True)
        os.rmdir(directory)
    return removed
