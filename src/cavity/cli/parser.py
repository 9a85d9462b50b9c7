"""An argument parser whose errors are exceptions that name the nearest option."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from cavity.util.text import nearest


class UsageError(ValueError):
    """A command line that cannot be understood."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """The description as it is written, and every default: that of an option, unless its text has it in other words."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text, default = action.help or "", action.default
        if "default" in text or default in (None, argparse.SUPPRESS) or isinstance(default, bool):
            return text
        return f"{text} (default: {in_words(default)})"


class Parser(argparse.ArgumentParser):
    """No abbreviations, defaults in the help, and UsageError instead of an exit."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=HelpFormatter)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Like argparse's, but what is not known is compared with what is."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].split("=")[0]
            known = [string for action in self._actions for string in action.option_strings]
            kind = "option" if word.startswith("-") else "argument"
            self.error(f"there is no {kind} {word}{nearest(word, known) if kind == 'option' else ''}")
        return parsed


def in_words(default: object) -> str:
    """A default as it would be written on the command line."""
    values = default if isinstance(default, tuple) else (default,)
    return ",".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def whole_numbers(text: str) -> list[int]:
    """``1,16,128``."""
    numbers = [int(word) for word in text.split(",") if word.isdecimal()]
    if len(numbers) != text.count(",") + 1 or min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"expected positive whole numbers with commas, got {text!r}")
    return numbers


def positive(text: str) -> int:
    """``8``."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a positive whole number, got {text!r}")
    return int(text)


def add_data_changed(parser: argparse.ArgumentParser) -> None:
    """The option of all commands that measure a run on its own data."""
    kept = "original: what is left of its test set; unseen: all samples that it was not trained on"
    parser.add_argument(
        "--data-changed",
        choices=("original", "unseen"),
        help=f"go on where the run's data have changed with {kept} (default: stop there)",
    )
