"""What a sweep searches: for each option a range or a list, and the scale on which it is searched.

    Space(("rho", "hidden"), rho=(0.99, 1.001), hidden=((51, 51), (101, 101), (201,)))

A range that is not given is a default that fits the data. Importing this file is cheap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar

from cavity.util.text import nearest

Range = tuple[float, float]
Widths = tuple[int, ...]
#: Turns what was written for an option into its range or list.
Check = Callable[[str, Any], Any]

#: What is searched unless the user says otherwise: where the messages choose the rate there are no numbers of an update
#: to search; with the paper's recipe there are. And all that can be searched.
DEFAULT = ("hidden", "batch_size", "epochs", "init")
PAPER_DEFAULT = ("rho", "damping", "init", "hidden")
SEARCHABLE = (*PAPER_DEFAULT, "last_rho", "batch_size", "epochs")
#: What only the paper's recipe has.
OF_THE_PAPER = ("rho", "last_rho", "damping")
#: What is searched as a list.
LISTED = ("hidden", "batch_size", "epochs")

#: (ρ − 1)·steps: what ρ adds to the logarithm of a field in a whole run, 2 by default. At −5 the mini-batches of the
#: last fifth count most, at 10 those of the first tenth.
STRENGTHS = (-5.0, 10.0)
#: In a short run that would be more than any layer bears.
LARGEST_RHO = 1.1
#: A ρ below 1 by 0.001 to 0.5 remembers a thousand mini-batches to two of them.
LAST_RHOS = (0.5, 0.999)
DAMPINGS = (0.3, 0.98)
INITS = (0.1, 10.0)
#: Narrower hidden layers, smaller and larger mini-batches and fewer epochs, relative to what the configuration has.
WIDTHS = (0.25, 0.5)
BATCHES = (0.25, 0.5, 1, 2)
EPOCHS = (0.25, 0.5, 1)

#: Strengths below this change next to nothing: there ρ is searched on a linear scale, above on a logarithmic one.
SMALLEST_STRENGTH = 0.1
#: The same for the distance of the last layer's ρ from 1, which is not relative to the steps of a run.
SMALLEST_DISTANCE = 0.001


@dataclass(frozen=True)
class Space:
    """``search`` names what is searched; where its range (low, high) or, for ``hidden``, ``batch_size`` and ``epochs``,
    its list is None, a default that fits the data is taken. ``rho`` is that of all layers but the last, ``last_rho``
    that of the last."""

    search: tuple[str, ...] = DEFAULT
    rho: Range | None = None
    last_rho: Range | None = None
    damping: Range | None = None
    init: Range | None = None
    hidden: tuple[Widths, ...] | None = None
    batch_size: tuple[int, ...] | None = None
    epochs: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "search", tuple(self.search))
        if not self.search:
            raise ValueError(f"search names nothing: it can name {', '.join(SEARCHABLE)}")
        for name in self.search:
            if name not in SEARCHABLE:
                hint = nearest(name, SEARCHABLE) or f"; there are {', '.join(SEARCHABLE)}"
                raise ValueError(f"search names {name!r}, which cannot be searched{hint}")
        for item in fields(self)[1:]:
            value = getattr(self, item.name)
            if value is None:
                continue
            if item.name not in self.search:
                raise ValueError(f"{item.name} has a range but search does not name it")
            check: Check = CHECKS.get(item.name, _checked_range)
            object.__setattr__(self, item.name, check(item.name, value))

    def resolved(
        self, hidden: Widths, steps: int, batch_size: int = 128, epochs: int = 30, most: int = 1 << 20
    ) -> Space:
        """With all ranges, for a network of ``hidden`` layers that is trained for ``steps`` mini-batches of
        ``batch_size`` samples, of which there are ``most``, in ``epochs``."""
        rhos = tuple(min(1 + strength / steps, LARGEST_RHO) for strength in STRENGTHS)
        defaults: dict[str, Any] = {"rho": rhos, "last_rho": LAST_RHOS, "damping": DAMPINGS, "init": INITS}
        if "hidden" in self.search and self.hidden is None:
            defaults["hidden"] = default_widths(hidden)
        defaults["batch_size"] = _shares("batch_size", batch_size, BATCHES, most) if self._lacks("batch_size") else ()
        defaults["epochs"] = _shares("epochs", epochs, EPOCHS) if self._lacks("epochs") else ()
        space = replace(self, **{name: getattr(self, name) or defaults[name] for name in self.search})
        if "last_rho" in self.search and () in (space.hidden or (hidden,)):
            raise ValueError("last_rho is searched, but a network without hidden layers has only one rho: search rho")
        return space

    def _lacks(self, name: str) -> bool:
        return name in self.search and getattr(self, name) is None

    def axes(self, steps: int) -> list[Axis]:
        """The axes of what is searched, in the order of ``search``; all ranges must be there."""
        kinds: dict[str, Callable[..., Axis]] = {
            "rho": partial(AroundOne, unit=SMALLEST_STRENGTH / steps),
            "last_rho": partial(AroundOne, unit=SMALLEST_DISTANCE),
            "damping": BelowOne,
            "init": Logarithmic,
            **dict.fromkeys(LISTED, lambda name, *values: Choices(name, values)),
        }
        return [kinds[name](name, *getattr(self, name)) for name in self.search]

    def as_dict(self) -> dict[str, Any]:
        """``{"rho": [0.99, 1.001], …}`` in the order of ``search``; all ranges must be there."""
        found = {name: getattr(self, name) for name in self.search}
        return {name: [list(v) if isinstance(v, tuple) else v for v in value] for name, value in found.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Space:
        return cls(tuple(values), **{name: tuple(value) for name, value in values.items() if name in SEARCHABLE})


@dataclass(frozen=True)
class Logarithmic:
    """A positive number whose order of magnitude is searched. Its ``coordinate`` is what the sampler sees, and it is
    drawn equally from everywhere at first."""

    KEY: ClassVar[str] = "log10({})"

    name: str
    low: float
    high: float

    @property
    def key(self) -> str:
        """The coordinate's name in the data base."""
        return self.KEY.format(self.name)

    @property
    def span(self) -> str:
        """The range in words."""
        return f"{self.low:.6g}..{self.high:.6g}"

    def coordinate(self, value: float) -> float:
        return math.log10(value)

    def value(self, coordinate: float) -> float:
        return math.pow(10.0, coordinate)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class BelowOne(Logarithmic):
    """A damping α by the order of magnitude of 1 − α, the share of a new mean that is taken over in a step."""

    KEY = "-log10(1 - {})"

    def coordinate(self, value: float) -> float:
        return -math.log10(1 - value)

    def value(self, coordinate: float) -> float:
        return 1 - math.pow(10.0, -coordinate)


@dataclass(frozen=True)
class AroundOne(Logarithmic):
    """ρ by the order of magnitude of its distance from 1, on both sides: u = asinh((ρ − 1)/unit).

    What ρ does follows from ρ − 1 times the number of steps, so 1.0001 and 1.001 are as far apart as 1.001 and 1.01,
    and a range in ρ itself would spend nearly all trials at its far end. A logarithm of the distance cannot cross 1;
    asinh is one beyond ±unit, and linear within, where all ρ are as good as 1.
    """

    KEY = "asinh({})"

    unit: float

    def coordinate(self, value: float) -> float:
        return math.asinh((value - 1) / self.unit)

    def value(self, coordinate: float) -> float:
        return 1 + self.unit * math.sinh(coordinate)


@dataclass(frozen=True)
class Choices:
    """Hidden layers or whole numbers out of a list. The sampler sees them as words: ``101,101``."""

    name: str
    values: tuple[Any, ...]

    @property
    def key(self) -> str:
        return self.name

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(map(in_words, self.values))

    @property
    def span(self) -> str:
        return "|".join(self.words)

    def coordinate(self, value: Any) -> str:
        return in_words(value)

    def value(self, coordinate: str) -> Any:
        return self.values[self.words.index(coordinate)]

    def holds(self, value: Any) -> bool:
        return value in self.values


Axis = Logarithmic | Choices


def in_words(value: Widths | int) -> str:
    """``101,101``, or ``none``, of hidden layers; ``64`` of a whole number."""
    return str(value) if isinstance(value, int) else ",".join(map(str, value)) or "none"


def default_search(recipe: str) -> tuple[str, ...]:
    """What is searched with a recipe if nobody says what."""
    return PAPER_DEFAULT if recipe == "paper" else DEFAULT


def _shares(name: str, usual: int, shares: Sequence[float], most: int | None = None) -> tuple[int, ...]:
    """Parts and multiples of what the configuration has, each once."""
    found = (max(1, round(share * usual)) for share in shares)
    values = tuple(dict.fromkeys(value if most is None else min(value, most) for value in found))
    if len(values) < 2:
        raise ValueError(f"{name} is searched, but {usual} leaves no choice: give a list, or search something else")
    return values


def default_widths(hidden: Widths) -> tuple[Widths, ...]:
    """The same layers, narrower ones, and the first layer alone; widths are odd, so that no vote of ±1 is a draw."""
    if not hidden:
        raise ValueError("hidden is searched, but the network has no hidden layers: give a list, e.g. 51|101|101,101")
    narrower = (tuple(2 * (math.ceil(share * width) // 2) + 1 for width in hidden) for share in WIDTHS)
    return tuple(dict.fromkeys([hidden[:1], *narrower, hidden]))


def _checked_range(name: str, value: Sequence[Any]) -> Range:
    numbers = all(isinstance(v, int | float) and math.isfinite(v) for v in value)
    if len(value) != 2 or not numbers or not value[0] < value[1]:
        raise ValueError(f"the range of {name} must be two numbers, the smaller first, got {value!r}")
    low, high = map(float, value)
    if name == "damping" and not (low >= 0 and high < 1):
        raise ValueError(f"the range of damping must lie in [0, 1), got {low:g}..{high:g}")
    if name != "damping" and low <= 0:
        raise ValueError(f"the range of {name} must lie above 0, got {low:g}..{high:g}")
    return low, high


def _checked_numbers(name: str, value: Sequence[Any]) -> tuple[int, ...]:
    found = tuple(dict.fromkeys(value))
    if not all(isinstance(number, int) and number >= 1 for number in found):
        raise ValueError(f"the choices of {name} must be whole numbers of at least 1, got {value!r}")
    if len(found) < 2:
        raise ValueError(f"{name} must have at least two different choices, got {value!r}")
    return found


def _checked_widths(name: str, value: Sequence[Sequence[Any]]) -> tuple[Widths, ...]:
    found = tuple(dict.fromkeys(tuple(widths) for widths in value))
    if not all(isinstance(width, int) and width >= 1 for widths in found for width in widths):
        raise ValueError(f"the widths of {name} must be whole numbers of at least 1, got {value!r}")
    if len(found) < 2:
        raise ValueError(f"{name} must have at least two different choices, got {value!r}")
    return found


CHECKS: dict[str, Check] = {
    "hidden": _checked_widths,
    "batch_size": _checked_numbers,
    "epochs": _checked_numbers,
}
