"""Locks that go with the process that holds them, however it ends."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from cavity.util.regular import open_own

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


def take(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file until it is closed; False where another process has it, OSError where the disk has no locks."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (BlockingIOError, PermissionError):
        return False
    return True


@contextlib.contextmanager
def held(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock file ``path``, which is left behind; BlockingIOError where another process has it."""
    # Nothing is ever written to it, so that other names of it do not matter.
    with open_own(path, "ab", one_name=False) as stream:
        if not take(stream.fileno(), wait=wait):
            raise BlockingIOError(f"{path} is held by another process")
        yield
