"""Who in a project calls a function, with recording off or on, and passing what: asked where a finding rests on it.

Facts flow from what is imported to who imports; this is the other way round, and so it must cost next to nothing. Only
names are compared, and files are read only that have the name in them. The answer is yes where every place that may be
a call is one with recording off; whatever is not understood makes it no, and the finding stays.

All Python files below the project root count, whatever paths were given to the run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from torchcopylint.project.callsites import CallSites, Function, Given, Mode, Site, Taken, call_sites
from torchcopylint.project.dependencies import About, Callee, Question
from torchcopylint.project.letting_go import Hands, all_let_go
from torchcopylint.project.passing import Called, all_frozen
from torchcopylint.project.patterns import DEFAULT_EXCLUDES, relative_posix
from torchcopylint.project.sources import Sources
from torchcopylint.project.switches import MODULE, Switches, switches
from torchcopylint.source.notebook import convert, is_notebook
from torchcopylint.source.text import Undecodable, decode

MAX_FILES = 5_000
"""In a project of more files nobody is asked for."""
MAX_BYTES = 64_000_000
MAX_MENTIONING = 80
"""A name that stands in more files says nothing about who means whom."""
MAX_FUNCTIONS = 40
_HOPS = 8
"""So many packages may pass a name on."""
_SUFFIXES = (".py", ".ipynb")
_NOT_ASKED = frozenset({"forward", "training_step", "compute_loss"})
"""Frameworks call these while they train, whoever else does."""
_TEST = re.compile(r"(?:^|/)(?:tests?|testing|unit_?tests?)/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.\w+$")


class Callers:
    """The callers in one project. Files are read when a name is asked for, and once."""

    def __init__(self, root: str, sources: Sources | None = None) -> None:
        """`root` is the absolute project root."""
        self._root = root
        self._sources = sources or Sources(root)
        self._files: dict[str, os.stat_result] | None = None
        self._contents: dict[str, bytes] | None = None
        self._read: dict[str, CallSites | None] = {}
        self._mentions: dict[str, tuple[str, ...] | None] = {}
        self._switches: dict[str, Switches | None] = {}
        self._hands: dict[str, Hands | None] = {}
        self._answers: dict[Question, bool] = {}
        self._shown: dict[str, str] = {}
        self._states: dict[int, str] = {}

    def show(self, path: str, text: str) -> None:
        """A file has another content than on the disk, such as what an editor has not written yet."""
        self._shown[path] = text
        self._contents = None
        for memory in (self._read, self._mentions, self._switches, self._hands, self._answers):
            memory.clear()

    def answer(self, question: Question) -> bool:
        """Whether it is as is asked, for all one can see."""
        if question not in self._answers:
            self._answers[question] = self._found_out(question)
        return self._answers[question]

    def _found_out(self, question: Question) -> bool:
        match question.about:
            case About.OFF:
                return self._all_off(question.callee)
            case About.RECORDED:
                return self._recorded(question.callee)
            case About.FROZEN:
                return all_frozen(self, question.callee)
            case About.LET_GO:
                return all_let_go(self, question.callee)

    def state(self, before: int) -> str:
        """What stands for the files as they are now, or nothing if one of them was changed after a time, in
        nanoseconds, so that who has read it may have read something else."""
        if before not in self._states:
            self._states[before] = self._state(before)
        return self._states[before]

    def _state(self, before: int) -> str:
        files = self._listed()
        if any(max(status.st_mtime_ns, status.st_ctime_ns) >= before for status in files.values()):
            return ""
        made = blake2b(digest_size=16)
        for path, status in files.items():
            made.update(
                f"{path}\0{status.st_mtime_ns} {status.st_ctime_ns} {status.st_size}\0".encode("utf-8", "replace")
            )
        return made.hexdigest()

    # -- what callers pass

    def calls(self, callee: Callee) -> list[Called] | None:
        """See `passing.Project`. A constructor is called by the name of its class."""
        if callee.name == "__init__":
            callee = Callee(callee.path, "", callee.owner)
        paths = self._mentioning(callee.name)
        if paths is None or callee.name in _NOT_ASKED or callee.name.startswith("__"):
            return None
        found = []
        for path in paths:
            if path != callee.path and self._is_test(path) and not self._is_test(callee.path):
                continue
            sites = self._sites(path)
            if sites is None:
                return None
            for site in self._concerning(callee, path, sites):
                if not site.called:
                    return None
                row = sites.functions[site.function].row if site.function >= 0 else MODULE
                found.append(Called(path, row, site.place))
        return found

    def switches(self, path: str) -> Switches | None:
        """See `passing.Project`."""
        if path not in self._switches:
            text = self._text(path)
            self._switches[path] = switches(text) if text is not None else None
        return self._switches[path]

    def hands(self, path: str) -> Hands | None:
        """See `letting_go.Project`."""
        if path not in self._hands:
            text, sites = self._text(path), self._sites(path)
            self._hands[path] = Hands(text, sites.imports) if text is not None and sites is not None else None
        return self._hands[path]

    def function(self, path: str, name: str) -> str | None:
        """See `passing.Project`."""
        sites = self._sites(path)
        dotted = sites.imports.get(name) if sites is not None else None
        places = self._sources.places(path, dotted) if dotted is not None else ()
        return next((place for place, rest in places if rest == name), None)

    # -- answering

    def _all_off(self, start: Callee) -> bool:
        """All callers are asked in turn, up to those that say themselves how autograd is left."""
        pending, seen, off = [start], {start}, False
        while pending:
            callee = pending.pop()
            found = list(self._calls(callee)) if len(seen) <= MAX_FUNCTIONS else []
            if not found:
                return False
            for path, function, mode in found:
                if mode is Mode.CALLER and function is not None:
                    caller = Callee(path, function.owner, function.name, function.nested)
                    pending += [caller] if caller not in seen else []
                    seen.add(caller)
                elif mode is Mode.OFF:
                    off = True
                else:
                    return False
        return off

    def _recorded(self, start: Callee) -> bool:
        """Whether somebody surely calls a function, himself or by way of others, where autograd records. Of a method,
        only where one class alone has one of that name, and nobody may call it in another way."""
        pending, seen = [start], {start}
        while pending and len(seen) <= MAX_FUNCTIONS:
            callee = pending.pop()
            found = list(self._calls(callee))
            doubtful = any(mode in (Mode.OFF, Mode.UNKNOWN) for _, _, mode in found)
            if callee.owner and (doubtful or not self._is_only_method(callee)):
                continue
            for path, function, mode in found:
                if mode is Mode.ON:
                    return True
                if mode is Mode.CALLER and function is not None:
                    caller = Callee(path, function.owner, function.name, function.nested)
                    pending += [caller] if caller not in seen else []
                    seen.add(caller)
        return False

    def _is_only_method(self, callee: Callee) -> bool:
        """Whether no other class of the project has a method of that name."""
        found: set[tuple[str, str]] = set()
        for path in self._mentioning(callee.name) or ():
            sites = self._sites(path)
            if sites is None:
                return False
            found |= {(path, one.owner) for one in sites.functions if one.name == callee.name and one.owner}
        return found == {callee[:2]}

    def _calls(self, callee: Callee) -> Iterator[tuple[str, Function | None, Mode]]:
        """Every place that may call a function: the file, the function around it, and the mode there. What is not
        understood is a place of unknown mode."""
        own = self._sites(callee.path)
        same = [one for one in own.functions if (one.owner, one.name) == callee[1:3]] if own is not None else []
        paths = self._mentioning(callee.name)
        if not same or paths is None or callee.name in _NOT_ASKED or callee.name.startswith("__"):
            yield callee.path, None, Mode.UNKNOWN
            return
        if any(one.handed_on for one in same):
            yield callee.path, None, Mode.UNKNOWN
        is_property = any(one.is_property for one in same)
        tested = self._is_test(callee.path)
        for path in paths:
            if path != callee.path and self._is_test(path) and not tested:
                # A test shows how something can be called, not how it is meant to be.
                continue
            sites = self._sites(path)
            if sites is None:
                yield path, None, Mode.UNKNOWN
                continue
            for site in self._concerning(callee, path, sites):
                function = sites.functions[site.function] if site.function >= 0 else None
                yield path, function, site.mode if site.called or is_property else Mode.UNKNOWN

    def _concerning(self, callee: Callee, path: str, sites: CallSites) -> Iterator[Site]:
        names, own = {callee.name}, self._sites(callee.path)
        functions = own.functions if own is not None else ()
        taken = [one.taken for one in functions if (one.owner, one.name) == (callee.owner, callee.name)] or [None]
        if not callee.owner and not callee.nested:
            names |= {name for name, dotted in sites.imports.items() if dotted.rpartition(".")[2] == callee.name}
        for name in sorted(names):
            for site in sites.sites.get(name, ()):
                if site.given is not None and not _can_be(callee, site.receiver, site.given, taken):
                    meant = False
                elif callee.owner:
                    meant = self._means_method(callee, path, sites, site)
                else:
                    meant = self._means_function(callee, path, sites, site, name)
                if meant:
                    yield site

    def _means_function(self, callee: Callee, path: str, sites: CallSites, site: Site, name: str) -> bool:
        """Whether a name may stand for a function of a module."""
        if site.receiver is None:
            if callee.nested or path == callee.path:
                return path == callee.path
            if name in sites.imports:
                return self._leads(path, sites.imports[name], callee)
            return name == callee.name and any(self._leads(path, f"{star}.{name}", callee) for star in sites.stars)
        first, _, rest = site.receiver.partition(".")
        if callee.nested or name != callee.name or first not in sites.imports:
            return False
        return self._leads(path, ".".join(part for part in (sites.imports[first], rest, name) if part), callee)

    def _means_method(self, callee: Callee, path: str, sites: CallSites, site: Site) -> bool:
        """Whether a name may stand for a method: of an object of which nothing is known, it may."""
        if site.receiver is None:
            return False
        first = site.receiver.partition(".")[0]
        around = sites.functions[site.function].within if site.function >= 0 else ""
        if site.receiver == "super":
            return around not in sites.classes or callee.owner in sites.classes[around][0]
        if site.receiver in ("self", "cls") and around in sites.classes and (path, around) != callee[:2]:
            bases, methods = sites.classes[around]
            return callee.name not in methods or callee.owner in bases or around in self._bases(callee)
        if first in sites.imports and first not in ("self", "cls"):
            # A function of somebody else's module.
            return bool(self._sources.places(path, sites.imports[first]))
        return True

    def _bases(self, callee: Callee) -> tuple[str, ...]:
        own = self._sites(callee.path)
        return own.classes[callee.owner][0] if own is not None and callee.owner in own.classes else ()

    def _leads(self, path: str, dotted: str, callee: Callee) -> bool:
        """Whether a dotted name leads to a function, through packages that pass it on."""
        pending = [(path, dotted)]
        seen: set[tuple[str, str]] = set()
        while pending and len(seen) < _HOPS:
            asked = pending.pop()
            if asked in seen:
                continue
            seen.add(asked)
            for place, rest in self._sources.places(*asked):
                if place == callee.path and rest == callee.name:
                    return True
                passing = self._sites(place) if rest and "." not in rest else None
                if passing is not None and rest in passing.imports:
                    pending.append((place, passing.imports[rest]))
                elif passing is not None and rest not in passing.defined:
                    pending += [(place, f"{star}{'' if star.endswith('.') else '.'}{rest}") for star in passing.stars]
        return False

    # -- files

    def _is_test(self, path: str) -> bool:
        return bool(_TEST.search(relative_posix(path, self._root)))

    def _mentioning(self, name: str) -> tuple[str, ...] | None:
        """The files that have a name in them; `None` if they are too many."""
        if name not in self._mentions:
            wanted = name.encode("utf-8", "surrogatepass")
            contents = self._all_contents()
            found = tuple(path for path, data in contents.items() if wanted in data) if contents is not None else ()
            self._mentions[name] = found if contents is not None and len(found) <= MAX_MENTIONING else None
        return self._mentions[name]

    def _sites(self, path: str) -> CallSites | None:
        """What a file says; `None` if it cannot be read."""
        if path not in self._read:
            text = self._text(path)
            self._read[path] = call_sites(text) if text is not None else None
        return self._read[path]

    def _text(self, path: str) -> str | None:
        text = self._shown.get(path)
        data = (self._all_contents() or {}).get(path)
        return _text_of(path, data) if text is None and data is not None else text

    def _all_contents(self) -> dict[str, bytes] | None:
        """The contents of all files; `None` if they are too many."""
        if self._contents is None:
            files = self._listed()
            self._contents = {}
            if len(files) <= MAX_FILES and sum(status.st_size for status in files.values()) <= MAX_BYTES:
                for path in files:
                    try:
                        with open(path, "rb") as file:
                            self._contents[path] = file.read()
                    except OSError:
                        continue
                for path, text in self._shown.items():
                    self._contents[path] = text.encode("utf-8", "surrogatepass")
        return self._contents or None

    def _listed(self) -> dict[str, os.stat_result]:
        """The Python files and notebooks of the project, in order of path."""
        if self._files is None:
            self._files = dict(sorted(_walk(self._root)))
        return self._files


def _can_be(callee: Callee, receiver: str | None, given: Given, taken: Sequence[Taken | None]) -> bool:
    """Whether a call passes what a function of that name takes, where that is known.

    What stands in front of the dot may be a class, to which the object is passed.
    """
    name = receiver.rpartition(".")[2] if receiver is not None else ""
    on_object = receiver is not None and name != callee.owner and not name[:1].isupper()
    return any(one is None or one.can_be(given, on_object=on_object) for one in taken)


def _walk(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """The files below a root, without what is never part of a project. It ends soon behind too many."""
    todo, count = [root], 0
    while todo and count <= MAX_FILES:
        directory = todo.pop()
        try:
            with os.scandir(directory) as entries:
                listed = list(entries)
        except OSError:
            continue
        if directory != root and any(entry.name == "pyvenv.cfg" for entry in listed):
            continue
        for entry in listed:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in DEFAULT_EXCLUDES:
                        todo.append(entry.path)
                elif entry.name.endswith(_SUFFIXES) and entry.is_file():
                    yield entry.path, entry.stat()
                    count += 1
            except OSError:
                continue


def _text_of(path: str, data: bytes) -> str | None:
    try:
        text = decode(data).text
        return convert(text).text if is_notebook(path) else text
    except Undecodable:
        return None
