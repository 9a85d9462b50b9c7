"""Opening files that a stranger may have prepared: a file is opened, a pipe or a device in its place is an error at
once, and what is written never goes through a link to somewhere else.

Every check is made twice, by name and on what was opened: whoever exchanges the two in between gains nothing.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from pathlib import Path
from typing import BinaryIO

KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
#: Do not follow a link; do not wait for the other end of a pipe. Windows has neither.
NO_LINK, NO_WAIT = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)
#: What a new file may have, before the user's umask.
MODE = 0o666


class NotAFile(OSError):
    """Something else lies where a file is read or written: a pipe, a device, a folder, a link."""


def _require(path: str | Path, found: os.stat_result, *, one_name: bool = False) -> None:
    """NotAFile unless it is a regular file and, where it is written in place, has ``one_name``."""
    if not stat.S_ISREG(found.st_mode):
        kind = KINDS.get(stat.S_IFMT(found.st_mode), "no file")
        raise NotAFile(errno.EINVAL, f"is {kind}, not a file", str(path))
    if one_name and found.st_nlink > 1:
        raise NotAFile(errno.EMLINK, "has other names (hard links), which would be written too: copy it", str(path))


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a file to read it; a link to a file is followed."""

    def opener(name: str, flags: int) -> int:
        _require(name, os.stat(name))
        return _checked(name, os.open(name, flags | NO_WAIT))

    return open(path, "rb", opener=opener)


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """All that is in a file."""
    with open_regular(path) as stream:
        return stream.read()


def open_own(path: Path, mode: str, *, one_name: bool = True, create: bool = True) -> BinaryIO:
    """Open a file to write in place (``ab`` or ``r+b``), by default made if it is not there; links are refused."""

    def opener(name: str, flags: int) -> int:
        require_own(path, one_name=one_name)
        flags = flags | os.O_CREAT if create else flags & ~os.O_CREAT
        opened = os.open(name, flags | NO_LINK | NO_WAIT, MODE)
        return _checked(name, opened, one_name=one_name)

    return open(path, mode, opener=opener)  # type: ignore[return-value]


def require_regular(path: str | os.PathLike[str]) -> None:
    """NotAFile unless it is a file, or a link to one, for libraries that open it themselves."""
    _require(os.fspath(path), os.stat(path))


def require_own(path: Path, *, one_name: bool = True) -> None:
    """NotAFile unless there is nothing, or a file that can be written in place without changing any other."""
    with contextlib.suppress(FileNotFoundError):
        _require(path, path.lstat(), one_name=one_name)


def require_replaceable(path: Path) -> None:
    """NotAFile where a rename would put a file in the place of a pipe, a device or a folder, or of a link to one."""
    # Nothing, or a link to nothing or to itself, can be replaced.
    if path.exists():
        with contextlib.suppress(FileNotFoundError):
            _require(path, path.stat())


def _checked(name: str, opened: int, *, one_name: bool = False) -> int:
    """The descriptor itself, if what was opened is a file."""
    try:
        _require(name, os.fstat(opened), one_name=one_name)
    except BaseException:
        os.close(opened)
        raise
    return opened


def own_folder(path: Path) -> Path:
    """A folder within one that a user named, made if it is not there; a link in its place leads elsewhere: NotAFile."""
    if path.is_symlink():
        raise NotAFile(errno.EINVAL, "is a symbolic link, not a folder: put the folder itself there", str(path))
    path.mkdir(parents=True, exist_ok=True)
    return path
