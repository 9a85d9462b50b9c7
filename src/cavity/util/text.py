"""Words for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean …?``, or nothing where nothing is near."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def shown(text: object) -> str:
    """A text that a stranger may have written, for a terminal: characters that would command it, or hide, are shown as
    their codes, e.g. ``\\x1b``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def shown_lines(text: object) -> str:
    """``shown`` for a text of several lines, whose ends are kept."""
    return "\n".join(map(shown, str(text).split("\n")))
