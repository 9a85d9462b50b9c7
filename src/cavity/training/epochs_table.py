"""The table of epochs that a live display prints, with as many columns as the terminal has room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cavity.analysis.metrics import EpochRecord

#: What an error is called that was counted while the epoch went on, before each mini-batch was learnt.
RUNNING = "running training error"


class Column(NamedTuple):
    """A column as wide as its numbers or its title, whichever is wider; ``measured`` ones have a number after epochs
    that were measured only."""

    title: str
    width: int
    cell: Callable[[EpochRecord], str]
    measured: bool = True


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} %"


def number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def numbers(values: Sequence[float]) -> str:
    """Polarisations of the layers, from the first to the last."""
    return " ".join(f"{value:.3f}" for value in values)


def clamps(record: EpochRecord) -> list[str]:
    """How often a floor or the bound acted, in words; nothing if none did."""
    return [f"clamped {100 * record.clamped:.2g} %"] if record.clamped else []


COLUMNS = (
    Column("epoch", 5, lambda record: str(record.epoch), measured=False),
    Column("train", 6, lambda record: number(record.train_error, 2)),
    Column("test", 6, lambda record: number(record.test_error, 2)),
    Column("train Bayes", 11, lambda record: number(record.train_error_bayes, 2)),
    Column("test Bayes", 10, lambda record: number(record.test_error_bayes, 2)),
    Column("NLL", 6, lambda record: number(record.test_nll, 3)),
    Column("ECE", 5, lambda record: number(record.test_ece, 3)),
    Column("seconds", 7, lambda record: f"{record.seconds:.1f}", measured=False),
)
#: Left out, one after the other, until the rest fits.
LEAST_WANTED = ("polarization", "seconds", "ECE", "train Bayes", "NLL", "test Bayes", "train")


def fitting(width: int, layers: int) -> list[Column]:
    """The columns for a terminal of that many letters, and a network of that many layers."""
    polarization = Column("polarization", max(12, 6 * layers - 1), lambda r: numbers(r.polarization), measured=False)
    columns = [*COLUMNS, polarization]
    for title in LEAST_WANTED:
        if sum(column.width for column in columns) + 2 * (len(columns) - 1) <= width:
            break
        columns = [column for column in columns if column.title != title]
    return columns


def head(columns: Sequence[Column]) -> str:
    return "  ".join(column.title.rjust(column.width) for column in columns)


def row(columns: Sequence[Column], record: EpochRecord, width: int, running: float | None = None) -> str:
    """An epoch below ``head``: errors in percent, point-wise and Bayesian, calibration, time and polarisation. Where
    nothing was measured, the running training error stands in the place of all that would have been. What else is to be
    said has a line of its own where the width is too small."""
    missing = all(column.cell(record) == "–" for column in columns if column.measured)
    if missing:
        text = "not measured" if running is None else f"{RUNNING} {percent(running)}"
        room = [column.width for column in columns if column.measured]
        cells = [columns[0].cell(record).rjust(columns[0].width), text.ljust(sum(room) + 2 * (len(room) - 1))]
        cells += [column.cell(record).rjust(column.width) for column in columns[1:] if not column.measured]
    else:
        cells = [column.cell(record).rjust(column.width) for column in columns]
    line = "  ".join(cells).rstrip()
    for words in clamps(record):
        line += f"  {words}" if len(line) + 2 + len(words) <= width else f"\n{' ' * columns[0].width}  {words}"
    return line


def joined(parts: Sequence[str], wanted: Sequence[int], width: int) -> str:
    """The parts with commas, as many as fit, in their order; ``wanted`` numbers them from the one that is wanted
    most."""
    kept: list[int] = []
    for place in wanted:
        if len(", ".join(parts[n] for n in sorted([*kept, place]))) > width:
            break
        kept.append(place)
    return ", ".join(parts[n] for n in sorted(kept))
