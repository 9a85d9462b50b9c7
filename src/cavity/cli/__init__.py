"""The command line. A command is a module with ``add_arguments(parser)`` and ``run(args)``, imported when called."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from cavity.cli.output import say, say_traceback
from cavity.cli.parser import Parser, UsageError
from cavity.util.text import nearest
from cavity.util.version import __version__

#: Command → where it lives, and what it does in a line.
COMMANDS: dict[str, tuple[str, str]] = {
    "train": ("cavity.cli.train", "train a network into a run folder, or go on with one"),
    "evaluate": ("cavity.cli.evaluate", "accuracy, confusion and calibration of a run"),
    "entropy": ("cavity.cli.entropy", "how probable the training set was, and how wide the minimum is"),
    "predict": ("cavity.cli.predict", "classes and probabilities for new samples"),
    "export": ("cavity.cli.export", "a network in whole numbers for C, Arduino, Python, a browser or ONNX"),
    "report": ("cavity.cli.report", "one HTML page that shows runs side by side"),
    "sweep": ("cavity.cli.sweep", "search for the options that suit the data"),
    "reproduce": ("cavity.cli.reproduce", "run the paper's experiments and set them beside its numbers"),
    "bench": ("cavity.cli.bench", "measure how fast training is on this machine"),
    "data": ("cavity.cli.data", "list, get and locate data sets"),
}
INTERRUPTED = 130


def overview() -> str:
    """The text of ``cavity --help``."""
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items())
    return (
        "usage: cavity [--version] [--debug] COMMAND ...\n\n"
        "Neural networks trained by message passing.\n\n"
        f"commands:\n{listed}\n\n"
        "cavity COMMAND --help lists the options of a command; --debug shows where an error arose.\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 0, 2 for an error of the user's, 130 when interrupted."""
    if arguments is None:
        sys.excepthook = say_traceback
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        return _dispatch(words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; without this, Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError, ImportError, MemoryError, FloatingPointError) as error:
        if debug:
            raise
        say(f"cavity: {describe(error)}", sys.stderr)
        return 2


def describe(error: BaseException) -> str:
    """What an exception says, without the number that the system gives its errors."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(overview(), end="")
        return 0
    if words[0] == "--version":
        print(f"cavity {__version__}")
        return 0
    name, rest = words[0], words[1:]
    if name not in COMMANDS:
        kind = "option" if name.startswith("-") else "command"
        hint = nearest(name, tuple(COMMANDS)) or f"; there are {', '.join(COMMANDS)}"
        raise UsageError(f"there is no {kind} {name}{hint}")
    home, text = COMMANDS[name]
    module = import_module(home)
    parser = Parser(prog=f"cavity {name}", description=module.__doc__ or text)
    module.add_arguments(parser)
    status: int = module.run(parser.parse_args(rest))
    return status
