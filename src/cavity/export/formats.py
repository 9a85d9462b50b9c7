"""What a network can be written as: one entry for each format, read by the command line and by ``export``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple


class Format(NamedTuple):
    """A way to write a network: how its files end, and what else its function takes."""

    suffix: str
    options: tuple[str, ...] = ()


FORMATS = {
    "c": Format(".c", ("prefix", "learn")),
    "arduino": Format("", ("prefix",)),
    "python": Format(".py"),
    "html": Format(".html"),
    "packed": Format(".cavity"),
    "onnx": Format(".onnx", ("method",)),
}


def taking(option: str) -> list[str]:
    """The formats that take an option."""
    return [name for name, kind in FORMATS.items() if option in kind.options]


def writer(name: str) -> Callable[..., list[Path]]:
    """The function that writes a format: ``to_…`` of ``export/targets.py``."""
    write: Callable[..., list[Path]] = getattr(import_module("cavity.export.targets"), f"to_{name}")
    return write
