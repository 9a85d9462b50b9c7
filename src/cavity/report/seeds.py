"""Runs that differ in nothing but their seeds: their mean and spread."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from cavity.report.summary import RunSummary

#: What may differ between runs of one group: the seed, and what changes no result beyond rounding.
FREE = ("seed", "data_dir", "device", "threads")
#: What people put between a name and its seed.
SEPARATORS = " -_./:,;#=()[]"


@dataclass(frozen=True)
class Group:
    """Runs (by their places) that are one experiment with several seeds, or a run by itself."""

    name: str
    places: tuple[int, ...]


def groups(runs: Sequence[RunSummary]) -> list[Group]:
    """The groups in the order of their first runs; every run is in one."""
    alike: dict[object, list[int]] = {}
    for place, run in enumerate(runs):
        # A run without any settings says nothing about what it has in common with others.
        key = tuple(row for row in run.config if row[0] not in FREE) if run.config else place
        alike.setdefault((run.data, key), []).append(place)
    names = [_name([runs[place].name for place in places]) for places in alike.values()]
    seen = Counter(names)
    return [
        Group(name if seen[name] == 1 else f"{name} ({runs[places[0]].name})", tuple(places))
        for name, places in zip(names, alike.values(), strict=True)
    ]


def _name(names: Sequence[str]) -> str:
    """What the names have in common at their beginning, e.g. ``mf`` of mf-seed0 and mf-seed1."""
    if len(names) == 1:
        return names[0]
    pairs = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    common = "".join(letters[0] for letters in pairs).rstrip("0123456789").rstrip(SEPARATORS)
    common = re.sub(r"(?i)(^|[\W_])(seed|s)$", "", common).rstrip(SEPARATORS)
    return common or names[0]


def has_seeds(found: Sequence[Group]) -> bool:
    """Whether there is anything to average."""
    return any(len(group.places) > 1 for group in found)


def mean_and_spread(values: Sequence[float | None]) -> tuple[float, float] | None:
    """Mean and standard deviation (of the sample, n − 1) of what is known; None where that is nothing.

    One value alone has no spread: NaN."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    mean = math.fsum(known) / len(known)
    if len(known) == 1:
        return mean, math.nan
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (len(known) - 1))
