"""An argument parser whose errors are exceptions that name the nearest option."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from cavity.util.text import nearest


class UsageError(ValueError):
    """A command line that cannot be understood."""


class Parser(argparse.ArgumentParser):
    """No abbreviations, the text as it is written, and UsageError instead of an exit."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

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
