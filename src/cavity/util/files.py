"""Writing so that a crash, a full disk or ``kill -9`` leaves either the old file or the new one, whole, and so that
neither a second writer nor a stranger's links can change that."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cavity.util.locks import held, take
from cavity.util.regular import open_own, read_regular, require_replaceable

LOCK = ".lock"
#: Names of temporary files: that of the file, cut where it is long, and a number that nobody can foresee.
TEMPORARY = re.compile(r"\.(?P<name>.*)\.[0-9a-f]{16}\.tmp", re.DOTALL)
KEPT = 48


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file in one rename: temporary file in the same folder, synced, renamed, folder synced.

    The name is replaced: a file that it was a link to, or that has other names, keeps its content. Of several writers
    the last one wins, and a reader sees all of one of them.
    """
    try:
        require_replaceable(path)
        _remove_leftovers(path)
        while not _replace(path, content):
            pass
        _sync_folder(path.parent)
    except OSError as error:
        failed = f"{path} could not be written ({error.strerror})"
        raise OSError(error.errno, f"{failed}; what it held before is kept") from error


def _replace(path: Path, content: bytes) -> bool:
    """One attempt; False if another process took the temporary file, not yet locked, for one that was left behind."""
    temporary = path.with_name(f".{path.name[:KEPT]}.{secrets.token_hex(8)}.tmp")
    posix = os.name == "posix"
    try:
        # Exclusive: whatever has the name already, a link among others, is an error.
        with temporary.open("xb") as stream:
            if not _marked(stream):
                return False
            _write(stream, content)
            if posix:  # still locked, so that nobody takes it for left behind
                os.replace(temporary, path)
        if not posix:  # Windows renames no open file
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return True


def _marked(stream: BinaryIO) -> bool:
    """Lock a temporary file for as long as it is written; False if it is gone."""
    try:
        return take(stream.fileno()) and os.fstat(stream.fileno()).st_nlink > 0
    except OSError:  # a disk without locks, on which nothing is taken for left behind
        return True


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files that nobody writes any more: those of processes that were killed while they wrote this."""
    for name in os.listdir(path.parent):
        found = TEMPORARY.fullmatch(name)
        if found and found["name"] == path.name[:KEPT]:
            other = path.with_name(name)
            with contextlib.suppress(OSError), open_own(other, "r+b", create=False) as stream:
                if take(stream.fileno()):
                    other.unlink()


def _write(stream: BinaryIO, content: bytes) -> None:
    """Write and sync."""
    stream.write(content)
    stream.flush()
    os.fsync(stream.fileno())


def append_line(path: Path, line: str) -> None:
    """Add one line, synced. A file that has other names (hard links) is replaced by a copy first: they keep theirs."""
    try:
        if path.is_file() and not path.is_symlink() and path.stat().st_nlink > 1:
            write_whole(path, read_regular(path))
        with open_own(path, "ab") as stream:
            _write(stream, f"{line}\n".encode())
    except OSError as error:
        raise OSError(error.errno, f"{path} could not be written ({error.strerror})") from error


def _sync_folder(folder: Path) -> None:
    """Make a rename last. Only POSIX lets a folder be opened for this."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def new_folder(parent: Path, name: str) -> Path:
    """``parent/name-<number>`` with the first number that is free, made here."""
    parent.mkdir(exist_ok=True)
    number = 1
    while True:
        folder = parent / f"{name}-{number}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
        number += 1


def held_names(folder: Path) -> set[str]:
    """The names in a folder, but for the lock and for what a process left that was killed while it wrote a file."""
    return {name for name in os.listdir(folder) if name != LOCK and not TEMPORARY.fullmatch(name)}


#: The one rule of all commands that are told where to write; for their help texts.
FORCE_HELP = "overwrite what is there; without this, nothing that exists is overwritten"


def require_new(path: Path, force: bool) -> None:
    """FileExistsError for a name that is taken, unless ``force``; FileNotFoundError where its folder is missing."""
    if os.path.lexists(path) and not force:
        raise FileExistsError(f"{path} already exists: choose another name, or overwrite it with --force")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder: create it first")


def require_new_file(path: Path, force: bool) -> Path:
    """The path, if a file may be written there."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give a file name")
    require_new(path, force)
    return path


def require_free(folder: Path, mark: str, otherwise: str) -> None:
    """FileExistsError if there is something; the file ``mark`` says that one can go on with it, ``otherwise`` what
    else to do."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: give --out a folder")
    if there := held_names(folder):
        go_on = "go on with it by --resume, " if mark in there else ""
        raise FileExistsError(f"{folder} exists already: {go_on}{otherwise}")


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the folder for this process; the lock goes with the process, however it ends."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(held(folder / LOCK))
        except BlockingIOError as error:
            raise OSError(f"{folder} is being written by another process: wait for it, or stop it") from error
        yield
