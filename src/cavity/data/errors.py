"""What can go wrong with data, as two exceptions that fit into Python's own families."""

from __future__ import annotations

from pathlib import Path


class DataError(ValueError):
    """A file is damaged, hostile, not what it claims to be, or does not hold what was asked for."""


class DataNotFound(FileNotFoundError):
    """Nothing was found under this name; the message says which file goes where and from which address."""


def damaged(path: str | Path, reason: object) -> DataError:
    """The error for a file that cannot be used: it names the file first, then the reason.

    Either may quote what a stranger wrote; what would command a terminal is shown as its code.
    """
    text = f"{path}: {reason}"
    return DataError("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text))
