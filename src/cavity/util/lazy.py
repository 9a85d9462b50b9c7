"""Names of a package that are imported when first asked for (PEP 562), so that torch is never loaded in vain."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package``: ``names`` maps each to its module, ``modules`` maps the name of a
    module to its full path."""
    own = modules or {}

    def getattr_(name: str) -> object:
        if name in own:
            return import_module(own[name])
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(names[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def dir_() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names, *own})

    return getattr_, dir_
