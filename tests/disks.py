"""Real disks that are full or can only be read: small file systems in memory, mounted for a test."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGE = 4096
FILLER = "filler"


def _mount(*arguments: str) -> str | None:
    """What the system says against it, or None when it is done."""
    try:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.strip() if done.returncode else None


@dataclass(frozen=True)
class Disk:
    """A file system of its own."""

    path: Path

    def fill(self, free: int = 0) -> None:
        """Leave so many pages free, and no more."""
        filler = self.path / FILLER
        filler.unlink(missing_ok=True)
        space = os.statvfs(self.path)
        with filler.open("wb") as stream:
            stream.write(bytes(space.f_bavail * space.f_bsize - free * PAGE))

    def empty(self) -> None:
        (self.path / FILLER).unlink()

    @contextlib.contextmanager
    def read_only(self) -> Iterator[None]:
        assert _mount("-o", "remount,ro", str(self.path)) is None
        try:
            yield
        finally:
            assert _mount("-o", "remount,rw", str(self.path)) is None


@contextlib.contextmanager
def small_disk(path: Path, kibibytes: int = 1024) -> Iterator[Disk]:
    """A disk of that size at ``path``; where none can be mounted, the test is skipped.

    Without being root: unshare -rm python -m pytest tests/runs/test_disk.py
    """
    path.mkdir()
    refused = _mount("-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(path))
    if refused is not None:
        pytest.skip(f"a small disk cannot be mounted here: {refused}")
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", str(path)], check=True)
