"""Command lines of blocks that are not run, checked as far as that goes without running them."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from itertools import groupby

from cavity.cli import COMMANDS
from cavity.cli.parser import Parser
from docs.blocks import ROOT

VARIABLE = re.compile(r"CAVITY_[A-Z0-9]+=")
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)
#: Programs of others, whose options no check knows: a mistyped name is still found.
OTHERS = ("arm-none-eabi-gcc", "arm-none-eabi-size", "avr-gcc", "avr-objcopy", "avrdude", "cat")


def check(code: str) -> None:
    """ValueError if a command of a shell block cannot be right."""
    for words in commands(code):
        check_command(words)


def commands(code: str) -> list[list[str]]:
    """The words of each command of a shell block, of loops those of each pass; comments are left out, continued lines
    joined, ``;`` and ``&&`` end a command."""
    lines = code.replace("\\\n", " ").splitlines()
    return [words for line in lines for words in _unrolled(_apart(line))]


def _apart(line: str) -> list[list[str]]:
    """A line's commands."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&")
    lexer.whitespace_split = True
    groups = groupby(lexer, lambda word: word in (";", "&&"))
    return [list(words) for ends, words in groups if not ends]


def _unrolled(line: list[list[str]]) -> list[list[str]]:
    """``for NAME in VALUE …; do COMMAND; …; done`` on one line, as the commands with each value; others as they are."""
    match line:
        case [["for", name, "in", *values], ["do", *first], *more, ["done"]]:
            return [[word.replace(f"${name}", value) for word in words] for value in values for words in (first, *more)]
    return line


def check_command(words: list[str]) -> None:
    """ValueError if a command line cannot be right: an unknown option, target or script."""
    match words:
        case [setting, *rest] if VARIABLE.match(setting):
            check_command(rest)
        case ["cavity", name, *rest]:
            if name not in COMMANDS:
                raise ValueError(f"there is no command cavity {name}")
            module = import_module(COMMANDS[name][0])
            parser = Parser(prog=f"cavity {name}", description="")
            module.add_arguments(parser)
            parser.parse_args(rest)
        case ["torchrun", *rest] if "-m" in rest:
            check_command(rest[rest.index("-m") + 1 :])
        case ["make", *targets]:
            known = TARGET.findall((ROOT / "Makefile").read_text())
            if unknown := [target for target in targets if target not in known]:
                raise ValueError(f"the Makefile has no target {', '.join(unknown)}")
        case ["python", script, *rest] if script.endswith(".py"):
            source = (ROOT / script).read_text()
            options = [word.split("=")[0] for word in rest if word.startswith("--")]
            if unknown := [option for option in options if f'"{option}"' not in source]:
                raise ValueError(f"{script} has no option {', '.join(unknown)}")
        case ["pip", "install", *_] | ["python", "-m", *_] | ["apt-get", "install", _, *_]:
            pass
        case [program, _, *_] if program in OTHERS:
            pass
        case _:
            raise ValueError(f"a command that no check knows: {shlex.join(words)}")
