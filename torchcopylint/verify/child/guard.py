"""What keeps a script from doing anything but computing. Applied in the forked process, just before the script runs.

From the strongest to the weakest: the kernel's (Landlock, seccomp, namespaces, limits), where they can be had, and
Python's own audit hook, which also says what was tried. `protect` returns the names of those in force.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import sysconfig
from functools import cache
from typing import Any

from . import kernel

try:
    import resource
except ImportError:  # there are no such limits under Windows
    resource = None  # type: ignore[assignment]

DENIED = (
    "socket.",
    "subprocess.",
    "ctypes.",
    "shutil.",
    "os.system",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.kill",
    "os.killpg",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.chown",
    "os.chflags",
    "os.truncate",
    "os.utime",
    "os.setxattr",
    "os.removexattr",
    "os.putenv",
    "os.unsetenv",
    "os.add_dll_directory",
    "pty.spawn",
    "signal.pthread_kill",
    "fcntl.",
    "mmap.__new__",
    "winreg.",
    "webbrowser.",
    "smtplib.",
    "ftplib.",
    "urllib.Request",
    "http.client.",
    "code.__new__",
    "sys.settrace",
    "sys.setprofile",
    "sys._current_frames",
    "sys.unraisablehook",
    "cpython.run_",
    "gc.get_objects",
    "gc.get_referrers",
    "_winapi.",
    "syslog.",
    "sqlite3.connect",
)
"""Beginnings of audit events that are refused, whoever causes them."""
MOST_NOTED = 20


class Blocked(PermissionError):
    """The sandbox refused something. No observation of a rule: the judge does not count it."""


class Guard:
    """The audit hook, and what it has refused."""

    def __init__(self, readable: tuple[str, ...], writable: str) -> None:
        self.blocked: list[str] = []
        self._readable = readable
        self._writable = os.path.realpath(writable)
        self._armed = False
        self._inside = False

    def arm(self) -> None:
        """Refuse from now on. There is no way back, for the script or for us."""
        sys.addaudithook(self._audit)
        self._armed = True

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._armed or self._inside:
            return
        if event == "open":
            self._inside = True
            try:
                refused = self._refuses_open(arguments)
            finally:
                self._inside = False
            if refused:
                self._refuse(f"opening {arguments[0]!r:.80}")
        elif event in ("os.mkdir", "os.listdir", "os.scandir", "os.chdir", "glob.glob"):
            path = arguments[0] if arguments else ""
            if not self._under(path, (*self._readable, self._writable)):
                self._refuse(f"{event}({path!r:.80})")
        elif event.startswith(DENIED):
            self._refuse(event if not arguments else f"{event}({arguments[0]!r:.60})")

    def _refuses_open(self, arguments: tuple[Any, ...]) -> bool:
        path, mode, flags = (*arguments, None, None, None)[:3]
        if isinstance(path, int):
            return path > 2
        writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
        writes = writes or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) != 0)
        allowed = (self._writable,) if writes else (*self._readable, self._writable)
        return not self._under(path, allowed)

    def _under(self, path: object, roots: tuple[str, ...]) -> bool:
        if path is None or path == "":
            return True
        try:
            real = os.path.realpath(os.fsdecode(path))  # type: ignore[arg-type]
        except (TypeError, ValueError, OSError):
            return False
        return any(real == root or real.startswith(root.rstrip("/") + "/") for root in roots)

    def _refuse(self, what: str) -> None:
        if len(self.blocked) < MOST_NOTED and what not in self.blocked:
            self.blocked.append(what)
        raise Blocked(f"refused by the sandbox: {what}")


@cache
def readable_roots() -> tuple[str, ...]:
    """The directories that Python and torch read from while they run."""
    import torch

    roots = {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.path.dirname(torch.__file__))}
    roots |= set(sysconfig.get_paths().values())
    roots |= {os.path.realpath(root) for root in roots}
    roots |= {"/usr/lib", "/usr/local/lib", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/dev/null"}
    roots |= {"/dev/urandom", "/proc/self/maps", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"}
    # A prefix of `/` or of a home directory would open everything.
    return tuple(sorted(root for root in roots if root not in ("/", os.path.expanduser("~"))))


def limit(seconds: float, memory: int) -> list[str]:
    """Resource limits: processor seconds, bytes of memory beyond today's, bytes of a file, open files."""
    if resource is None:
        return []
    in_force = []
    wanted = {
        "RLIMIT_CPU": int(seconds) + 2,
        "RLIMIT_FSIZE": 1 << 20,
        "RLIMIT_NOFILE": 64,
        "RLIMIT_CORE": 0,
        "RLIMIT_AS": _address_space() + memory,
    }
    for name, value in wanted.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        with contextlib.suppress(ValueError, OSError):
            hard = resource.getrlimit(kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))
            in_force.append(name)
    return in_force


def _address_space() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 4 << 30


def alarm(seconds: float) -> None:
    """End this process a second after so many seconds of wall time; 0 takes that back."""
    if hasattr(signal, "alarm"):
        signal.setitimer(signal.ITIMER_REAL, seconds + 1 if seconds else 0)


def bound(seconds: float) -> None:
    """End this process after so many seconds of processor time from now; 0 takes that back."""
    if hasattr(signal, "ITIMER_PROF"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def protect(directory: str, seconds: float, memory: int, *, device: str) -> tuple[Guard, list[str]]:
    """Apply everything that can be had, and say what that is. `directory` is the only place that can be written.

    `seconds` bound processor time and, by an alarm, wall time; `memory` is in bytes. A GPU needs its driver's devices,
    so with one the kernel's file and call filters are left out, and the answer says so.
    """
    os.environ.clear()
    os.environ.update({"HOME": directory, "TMPDIR": directory, "PATH": ""})
    # What a script imports first may not be compiled yet, and cannot be written down.
    sys.dont_write_bytecode = True
    os.chdir(directory)
    in_force = ["cleared environment", "own directory"]
    roots = readable_roots()
    if device == "cpu":
        in_force += kernel.apply(roots, directory)
        in_force += limit(seconds, memory)
    if hasattr(signal, "alarm"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        alarm(seconds)
        in_force.append("alarm")
    guard = Guard(roots, directory)
    guard.arm()
    return guard, [*in_force, "audit hook"]
