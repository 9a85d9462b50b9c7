"""What can go wrong with data, as two exceptions that fit into Python's own families."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from cavity.util.text import shown


class DataError(ValueError):
    """A file is damaged, hostile, not what it claims to be, or does not hold what was asked for."""


class DataNotFound(FileNotFoundError):
    """Nothing was found under this name; the message says which file goes where and from which address."""


def damaged(path: str | Path, reason: object) -> DataError:
    """The error for a file that cannot be used: it names the file first, then the reason.

    Either may quote what a stranger wrote; what would command a terminal is shown as its code.
    """
    return DataError(shown(f"{path}: {reason}"))


@contextlib.contextmanager
def reading(path: Path, kind: str, *errors: type[Exception]) -> Iterator[None]:
    """Whatever of ``errors`` the parser of a file raises means that it is not a readable ``kind``."""
    try:
        yield
    except DataError:
        raise
    except errors as error:
        raise damaged(path, f"is not a readable {kind}: {str(error) or type(error).__name__}") from error
