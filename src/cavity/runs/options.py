"""Options as fields of a frozen dataclass: name, annotation, default, and in ``option`` all else that readers need.

The annotation says what values are allowed. Files and the command line are read from the same fields, so that a new
option is one field.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from importlib import import_module
from numbers import Integral, Real
from types import NoneType
from typing import Any, get_args, get_type_hints

from cavity.util.text import nearest


class Names(Iterable[str]):
    """The names in registries, or that functions give (``"module:REGISTRY"``): looked up when they are asked for,
    because most need torch and the help of most commands does not."""

    def __init__(self, *homes: str) -> None:
        self.homes = homes

    def __iter__(self) -> Iterator[str]:
        for home in self.homes:
            module, _, attribute = home.partition(":")
            found = getattr(import_module(module), attribute)
            yield from found() if callable(found) else found


def option(
    default: Any,
    text: str,
    *,
    choices: Names | None = None,
    least: float | None = None,
    most: float | None = None,
    before: Any = MISSING,
    endless: bool = False,
) -> Any:
    """A field; ``text`` is its help, ``least`` and ``most`` bound its numbers, ``before`` is what runs did
    that are older than the option, by default ``default``; ``endless`` allows infinity, "inf" in files.

    An option that has ``before`` must have a value in every run: what a file lacks has the value from before.
    """
    earlier = default if before is MISSING else before
    about = {"help": text, "choices": choices, "least": least, "most": most, "before": earlier, "endless": endless}
    return field(default=default, metadata=about)


def _is_number(value: object) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _tuple(value: object, good: Callable[[object], bool], kind: type) -> tuple[Any, ...] | None:
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping) else [value]
    return tuple(kind(item) for item in listed) if all(map(good, listed)) else None


#: For each annotation what values must be, in words, and a function that gives None for what they are not.
KINDS: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    bool: ("true or false", lambda v: v if isinstance(v, bool) else None),
    int: ("a whole number", lambda v: int(v) if _is_whole(v) else None),
    float: ("a number", lambda v: float(v) if _is_number(v) else None),
    tuple[float, ...]: ("a number or a list of numbers", lambda v: _tuple(v, _is_number, float) or None),
    tuple[int, ...]: ("a list of whole numbers", lambda v: _tuple(v, _is_whole, int)),
    str: ("text", lambda v: os.fspath(v) if isinstance(v, str | os.PathLike) else None),
    Mapping[str, Any]: ("a table of names and values", lambda v: dict(v) if isinstance(v, Mapping) else None),
}


@cache
def value_types(cls: type) -> dict[str, Any]:
    """The key in ``KINDS`` of each option of ``cls``: its annotation without ``| None``."""
    hints = {name: (hint, get_args(hint)) for name, hint in get_type_hints(cls).items()}
    return {name: parts[0] if NoneType in parts else hint for name, (hint, parts) in hints.items()}


def checked(item: Field[Any], annotation: Any, value: Any) -> Any:
    """``value`` in the type of its annotation, or a ValueError that says what it should be."""
    if item.metadata["endless"] and value in (math.inf, "inf"):
        return math.inf
    words, convert = KINDS[annotation]
    converted, choices = convert(value), item.metadata["choices"]
    least, most = item.metadata["least"], item.metadata["most"]
    if converted is None:
        raise ValueError(f"{item.name} must be {words}, got {value!r}")
    if choices is not None and converted != item.default and converted not in choices:
        raise ValueError(f"{item.name} must be one of {', '.join(choices)}, got {value!r}{nearest(converted, choices)}")
    numbers = converted if isinstance(converted, tuple) else (converted,)
    if least is not None and any(number < least for number in numbers):
        raise ValueError(f"{item.name} must be at least {least}, got {value!r}")
    if most is not None and any(number > most for number in numbers):
        raise ValueError(f"{item.name} must be at most {most}, got {value!r}")
    return converted


@dataclass(frozen=True)
class Options:
    """What every set of options can do; the fields are the subclass's."""

    def __post_init__(self) -> None:
        # mypy takes the hash of the instances for that of the class.
        types = value_types(type(self))  # type: ignore[arg-type]
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None or item.default is not None:
                object.__setattr__(self, item.name, checked(item, types[item.name], value))

    @classmethod
    def require_known(cls, names: Iterable[str]) -> None:
        """Raise ValueError for the first name that is no option, with the nearest one that is."""
        known = [item.name for item in fields(cls)]
        for name in names:
            if name not in known:
                raise ValueError(f"there is no option {name!r}{nearest(name, known)}")

    @classmethod
    def as_before(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """``values`` that a run wrote, with what an older version did where it had no option."""
        old = {item.name: plain(item.metadata["before"]) for item in fields(cls)}
        return {**{name: value for name, value in old.items() if value is not None}, **values}

    def as_dict(self) -> dict[str, Any]:
        """What is set, as plain values in the order of the fields, tables last; None is left out."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        # TOML wants tables behind everything else.
        values = dict(sorted(values.items(), key=lambda pair: isinstance(pair[1], Mapping)))
        return {name: plain(value) for name, value in values.items() if value is not None}

    def differing(self, written: Mapping[str, Any], but: Collection[str] = ()) -> list[str]:
        """The options in which what a run wrote is not ``self``, but for some."""
        ours, theirs = self.as_dict(), self.as_before(written)
        names = (item.name for item in fields(self) if item.name not in but)
        return [name for name in names if ours.get(name) != theirs.get(name)]


def plain(value: Any) -> Any:
    """Infinity as text, which every format can hold; a tuple as a list. One real number alone means the same as a list
    of it, one whole number is the only layer."""
    if not isinstance(value, tuple):
        return "inf" if value == math.inf else value
    return value[0] if len(value) == 1 and isinstance(value[0], float) else list(value)
