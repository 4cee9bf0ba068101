"""The kernel's own protections under Linux, reached through ctypes: Landlock, seccomp, namespaces, no new privileges.

Each function returns whether it is in force; where the kernel, the architecture or another sandbox does not have it,
nothing happens. Constants are those of the kernel's headers, which never change.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from functools import cache

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_CLONE_NEWUSER, _CLONE_NEWNET, _CLONE_NEWIPC, _CLONE_THREAD = 0x10000000, 0x40000000, 0x08000000, 0x00010000
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_FS_EXECUTE, _FS_WRITE_FILE, _FS_READ_FILE, _FS_READ_DIR = 1, 2, 4, 8
_FS_BITS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_SIGKILL = 9
_EPERM, _ENOSYS = 1, 38

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_REFUSED = {
    "x86_64": (
        *(41, 42, 43, 49, 50, 53, 288),  # sockets
        *(57, 58, 59, 322),  # fork, vfork, execve, execveat
        *(62, 200, 424),  # kill, tkill, pidfd_send_signal
        *(101, 310, 311, 434, 438),  # ptrace, memory of others, pidfd_open, pidfd_getfd
        *(165, 166, 155, 161, 272, 308),  # mounts, roots, namespaces
        *(248, 249, 250, 321, 425, 426, 427),  # keys, bpf, io_uring
        *(109, 112, 29, 30, 31, 68, 69, 71),  # process groups, sessions, System V memory and queues
    ),
    "aarch64": (
        *(198, 199, 200, 201, 202, 203, 242),
        *(221, 281),
        *(129, 130, 424),
        *(117, 270, 271, 434, 438),
        *(40, 39, 41, 51, 97, 268),
        *(217, 218, 219, 280, 425, 426, 427),
        *(154, 157, 194, 195, 196, 186, 188, 189),
    ),
}
"""System calls that are refused with EPERM. A thread may be made, a process may not."""


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def warm() -> None:
    """Make what `apply` needs before there are forks that would each make it."""
    if sys.platform == "linux" and platform.machine() in _ARCHITECTURES:
        _libc()
        _filter(platform.machine())


def die_with_parent() -> None:
    """Have the kernel end this process when the one that started it ends. Linux only; elsewhere nothing happens."""
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


def apply(readable: tuple[str, ...], writable: str) -> list[str]:
    """Apply all of them in the order in which they allow each other, and return the names of those in force."""
    if sys.platform != "linux":
        return []
    libc = _libc()
    in_force = []
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWIPC) == 0:
        in_force.append("network namespace")
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return in_force
    in_force.append("no new privileges")
    if _landlock(libc, readable, writable):
        in_force.append("Landlock")
    if _seccomp(libc):
        in_force.append("seccomp")
    return in_force


def _landlock(libc: ctypes.CDLL, readable: tuple[str, ...], writable: str) -> bool:
    abi = libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if abi < 1:
        return False
    handled = (1 << _FS_BITS_BY_ABI.get(abi, 16)) - 1
    network = 3 if abi >= 4 else 0
    scoped = 3 if abi >= 6 else 0
    attributes = struct.pack("QQQ", handled, network, scoped)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = libc.syscall(_LANDLOCK_CREATE, ctypes.c_char_p(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        reading = _FS_EXECUTE | _FS_READ_FILE | _FS_READ_DIR
        for path in readable:
            _allow(libc, ruleset, path, reading)
        _allow(libc, ruleset, writable, handled & ~_FS_EXECUTE)
        return bool(libc.syscall(_LANDLOCK_RESTRICT, ruleset, ctypes.c_uint32(0)) == 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _FS_EXECUTE | _FS_READ_FILE | _FS_WRITE_FILE
        rule = struct.pack("=Qi", rights, descriptor)
        libc.syscall(_LANDLOCK_ADD, ruleset, ctypes.c_int(1), ctypes.c_char_p(rule), ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def _seccomp(libc: ctypes.CDLL) -> bool:
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        return False
    program = _filter(machine)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    return bool(libc.prctl(_PR_SET_SECCOMP, 2, ctypes.c_char_p(header), 0, 0) == 0)


@cache
def _filter(machine: str) -> bytes:
    """The filter as the kernel's classic BPF: eight bytes an instruction."""
    load, equal, bits, answer = 0x20, 0x15, 0x45, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    parts = [step(load, 4), step(equal, _ARCHITECTURES[machine], 1, 0), step(answer, refuse | _EPERM), step(load, 0)]
    if machine == "x86_64":
        # Calls of the x32 interface have this bit, and numbers of their own.
        parts += [step(bits, 0x40000000, 0, 1), step(answer, refuse | _EPERM)]
    for number in _REFUSED[machine]:
        parts += [step(equal, number, 0, 1), step(answer, refuse | _EPERM)]
    # The C library then uses `clone`, whose flags can be seen.
    parts += [step(equal, _CLONE3, 0, 1), step(answer, refuse | _ENOSYS)]
    parts += [step(equal, _CLONE[machine], 0, 3), step(load, 16)]
    parts += [step(bits, _CLONE_THREAD, 1, 0), step(answer, refuse | _EPERM), step(answer, allow)]
    return b"".join(parts)
