"""Command lines of blocks that are not run, checked as far as that goes without running them."""

from __future__ import annotations

import re
import shlex
from importlib import import_module

from cavity.cli import COMMANDS
from cavity.cli.parser import Parser
from docs.blocks import ROOT

VARIABLE = re.compile(r"CAVITY_[A-Z0-9]+=")
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)


def commands(code: str) -> list[list[str]]:
    """The words of each command of a shell block; comments are left out, continued lines joined."""
    lines = code.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


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
        case ["pip", "install", *_] | ["python", "-m", *_]:
            pass
        case _:
            raise ValueError(f"a command that no check knows: {shlex.join(words)}")
