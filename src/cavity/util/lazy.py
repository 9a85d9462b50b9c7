"""Names of a package that are imported when first asked for (PEP 562), so that torch is never loaded in vain."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


def lazy(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package``: ``names`` maps each to its module, ``modules`` maps the name of a
    module to its full path. ``dir`` lists these and ``__all__``, and nothing that only the package itself uses."""
    own = modules or {}

    def getattr_(name: str) -> object:
        if name in own:
            return _imported(own[name], f"{package}.{name}")
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(_imported(names[name], f"{package}.{name}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def dir_() -> list[str]:
        homes = {**names, **own}
        public = {*getattr(sys.modules[package], "__all__", ()), *homes}
        return sorted(name for name in public if name not in homes or _is_here(homes[name]))

    return getattr_, dir_


def _room(module: str) -> str:
    """``cavity.core`` of ``cavity.core.network``."""
    return ".".join(module.split(".")[:2])


def _is_here(module: str) -> bool:
    """Whether the room of a module is installed; the distribution cavity-runtime has two of them."""
    return find_spec(_room(module)) is not None


def _imported(module: str, wanted: str) -> ModuleType:
    if not _is_here(module):
        raise ImportError(f"{wanted} is not in cavity-runtime, which only runs packed networks: pip install cavity")
    return import_module(module)
