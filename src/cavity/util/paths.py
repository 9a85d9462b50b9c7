"""Paths as people write them."""

from __future__ import annotations

import os
from pathlib import Path


def expanded(text: str | os.PathLike[str]) -> Path:
    """The path with the home folder for ``~``; as it stands where there is no such user, for the error to show."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)
