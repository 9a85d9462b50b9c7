"""Writing so that a crash, a full disk or ``kill -9`` leaves either the old file or the new one, whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

LOCK = ".lock"


def _write(path: Path, mode: str, content: bytes) -> None:
    """Write and sync."""
    with path.open(mode) as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file in one rename: temporary file in the same folder, synced, renamed, folder synced."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        _write(temporary, "wb", content)
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        failed = f"{path} could not be written ({error.strerror})"
        raise OSError(error.errno, f"{failed}; what it held before is kept") from error


def append_line(path: Path, line: str) -> None:
    """Add one line, synced."""
    try:
        _write(path, "ab", f"{line}\n".encode())
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


def require_free(folder: Path, mark: str, otherwise: str) -> None:
    """FileExistsError if there is something; the file ``mark`` says that one can go on with it, ``otherwise`` what
    else to do."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: give --out a folder")
    there = [path.name for path in folder.iterdir() if path.name != LOCK]
    if there:
        go_on = "go on with it by --resume, " if mark in there else ""
        raise FileExistsError(f"{folder} exists already: {go_on}{otherwise}")


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the folder for this process; the lock goes with the process, however it ends."""
    from filelock import FileLock, Timeout

    try:
        lock = FileLock(folder / LOCK, timeout=0).acquire()
    except Timeout as error:
        raise OSError(f"{folder} is being written by another process: wait for it, or stop it") from error
    with lock:
        yield
