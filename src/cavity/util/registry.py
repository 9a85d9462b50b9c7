"""One place for each kind of plug-in: its classes by name, with what a person is told about each of them.

A class says what it is in attributes of its own (``name``, ``summary``, …), so that adding one is one file and one line
in the registry; errors, the command line, the documentation, tests and plots read it from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from cavity.util.text import nearest


class Described(Protocol):
    """What the class of a plug-in says about itself."""

    name: ClassVar[str]
    #: One line for lists and help texts.
    summary: ClassVar[str]


Kind = TypeVar("Kind", bound=Described)


class Registry(Mapping[str, type[Kind]], Generic[Kind]):
    """The classes of one kind of plug-in, by name. ``kind`` is the word for it in error messages."""

    def __init__(self, kind: str, *classes: type[Kind]) -> None:
        self.kind = kind
        self._classes: dict[str, type[Kind]] = {}
        for one in classes:
            self.register(one)

    def register(self, one: type[Kind]) -> type[Kind]:
        """Add a class; usable as a decorator. A name is given away once."""
        if one.name in self._classes:
            raise ValueError(f"there is already a {self.kind} {one.name!r}: {self._classes[one.name].__qualname__}")
        self._classes[one.name] = one
        return one

    def unregister(self, name: str) -> None:
        """Forget a class, e.g. one that a test or a notebook had registered."""
        del self._classes[name]

    def __getitem__(self, name: str) -> type[Kind]:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def summaries(self) -> dict[str, str]:
        """Name and one line about each."""
        return {name: one.summary for name, one in self._classes.items()}

    def make(self, value: Kind | str, argument: str | None = None, **options: Any) -> Kind:
        """The object itself, or one of the registered class of that name; errors call it ``argument``."""
        argument = argument or self.kind
        if not isinstance(value, str):
            if value is None or isinstance(value, type):
                raise TypeError(f"{argument} must be one of {', '.join(self)}, or such an object, got {value!r}")
            return value
        if value not in self._classes:
            raise ValueError(f"{argument} must be one of {', '.join(self)}, got {value!r}{nearest(value, self)}")
        return self._classes[value](**options)
