"""From records to Markdown tables *ours ± std | paper ± std | verdict*."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import mean, stdev
from typing import Any, NamedTuple, TypeVar

from cavity.report.wording import counted
from cavity.studies.experiments.experiment import Record, Records

Key = TypeVar("Key", bound=Hashable)


class Published(NamedTuple):
    """A number of the paper with its standard deviation over five seeds, in percent, with the digits it prints."""

    mean: float
    std: float

    @property
    def reach(self) -> float:
        """The standard deviation, or half of the last digit printed where that is more."""
        digits = max(len(repr(float(value)).partition(".")[2]) for value in self)
        return max(self.std, 0.5 * 10.0**-digits)


class Measured(NamedTuple):
    """Mean over ``seeds`` seeds, with the standard deviation of a sample if there are several."""

    mean: float
    std: float | None
    seeds: int


def measured(values: Iterable[float | None]) -> Measured | None:
    """The mean of what there is; None where there is nothing."""
    there = [value for value in values if value is not None]
    if not there:
        return None
    return Measured(mean(there), stdev(there) if len(there) > 1 else None, len(there))


def verdict(ours: Measured | None, paper: Published | None, *, deviations: float = 2.0) -> str:
    """Of an error: within two of the paper's standard deviations, better, or worse and by how much."""
    if ours is None or paper is None:
        return "–"
    reach = deviations * paper.reach
    difference = ours.mean - paper.mean
    if math.isclose(abs(difference), reach) or abs(difference) < reach:
        return "agrees"
    return "better" if difference < 0 else f"worse by {difference:.2f}"


def number(value: Measured | None, digits: int = 2) -> str:
    """``12.10 ± 0.20``, without a deviation where there is one seed."""
    if value is None:
        return "–"
    text = f"{value.mean:.{digits}f}"
    return text if value.std is None else f"{text} ± {value.std:.{digits}f}"


def published(value: Published | None) -> str:
    return "–" if value is None else f"{value.mean:g} ± {value.std:g}"


def groups(records: Records, key: Callable[[Record], Key]) -> dict[Key, list[Record]]:
    """Records by ``key``, in order of first occurrence."""
    found: dict[Key, list[Record]] = {}
    for record in records:
        found.setdefault(key(record), []).append(record)
    return found


def by(records: Records, name: str, order: Iterable[Any] | None = None) -> dict[Any, list[Record]]:
    """Records by a value of their setup or their options: those in ``order`` that there are, or all of them sorted."""
    found = groups(records, lambda record: _values(record)[name])
    return {key: found[key] for key in (sorted(found) if order is None else order) if key in found}


def where(records: Records, **wanted: Any) -> list[Record]:
    """The records whose setups or options have these values."""
    return [record for record in records if wanted.items() <= _values(record).items()]


def _values(record: Record) -> dict[str, Any]:
    return {**vars(record.cell.setup), **record.cell.options}


def final(records: Records, name: str) -> Measured | None:
    """Mean and standard deviation over seeds of a value after the last epoch."""
    return measured(record.result["final"][name] for record in records)


def finals(records: Records, *names: str, digits: int = 3) -> list[str]:
    """Final values for a table: errors with two digits after the point, others with ``digits``."""
    return [number(final(records, name), 2 if "error" in name else digits) for name in names]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column is text, the others are set to the right."""
    lines = [list(head), ["---", *["---:"] * (len(head) - 1)], *map(list, rows)]
    for line in lines:
        if len(line) != len(head):
            raise ValueError(f"a row must have {len(head)} columns like the head, got {len(line)}: {line}")
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def settings(records: Records) -> str:
    """The scale and size of a run in a line, as every plot and table states them."""
    setups = [record.cell.setup for record in records]
    seeds = len({setup.seed for setup in setups})
    epochs = sorted({setup.epochs for setup in setups})
    span = counted(epochs[0], "epoch") if len(epochs) == 1 else f"{epochs[0]} to {epochs[-1]} epochs"
    samples = {setup.samples for setup in setups}
    kept = {f"{chosen[0]} training samples" for chosen in samples if chosen is not None}
    parts = [span, counted(seeds, "seed"), *(sorted(kept) if None not in samples else [])]
    return f"{records[0].cell.scale} scale: {', '.join(parts)}"


def page(title: str, records: Records, *parts: str) -> str:
    """A title, the settings, and tables or sentences."""
    machines = sorted({record.machine for record in records})
    return "\n\n".join([f"# {title}", f"{settings(records)}; {'; '.join(machines)}.", *parts])
