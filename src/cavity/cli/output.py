"""What commands print for people. What programs read (``--json``, ``--quiet``) is printed as it is."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from types import TracebackType
from typing import TextIO

from cavity.util.text import shown_lines


def say(text: object, file: TextIO | None = None) -> None:
    """Print a text in which a stranger may have had a word: no character of it commands the terminal."""
    print(shown_lines(text), file=file)


def say_notes(notes: Iterable[object]) -> None:
    """What the user should know beside the result."""
    for note in notes:
        say(f"cavity: {note}", sys.stderr)


def say_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """In the place of ``sys.excepthook``, which prints the message as it is."""
    say("".join(traceback.format_exception(kind, error, trace)).rstrip("\n"), sys.stderr)
