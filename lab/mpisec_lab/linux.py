"""The few Linux calls that Python 3.11 does not wrap: unshare, mount, prctl."""

import ctypes
import os
import signal
import subprocess
from typing import IO

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

_PR_SET_PDEATHSIG = 1
_SYS_PIDFD_GETFD = 438  # on every architecture

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Moves the calling process into new namespaces (unshare(2)); CLONE_NEWPID takes effect for its
    children."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """mount(2); paths are str, `kind` the file system's name."""
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    result = _libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    _check(result, f"mount {source} on {target}")


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Has the kernel send `number` to this process when its parent dies (prctl PR_SET_PDEATHSIG)."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0), "prctl")


def output_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """The pipe that a process writes its standard output to; it was started with one."""
    assert process.stdout is not None
    return process.stdout


def take_descriptor(pid: int, descriptor: int) -> int:
    """A duplicate of another process's file descriptor (pidfd_getfd(2)), which is to be closed."""
    process = os.pidfd_open(pid)
    try:
        taken: int = _libc.syscall(ctypes.c_long(_SYS_PIDFD_GETFD), process, int(descriptor), 0)
        _check(min(taken, 0), f"descriptor {descriptor} of process {pid}")
        return taken
    finally:
        os.close(process)
