"""What a figure contains: ``plots`` draws charts and pictures, the page lays out tables and galleries itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cavity.report.summary import Bins, Floats, RunSummary

#: Larger values are not drawn: the axis would overflow.
LARGEST = 1e100


@dataclass(frozen=True)
class Line:
    """A curve of the run at place ``run``; ``y`` is None where there is no value. ``colour`` is an index into the
    palette."""

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    colour: int
    dashed: bool = False
    in_legend: bool = True
    run: int = 0

    @property
    def values(self) -> Floats:
        """``y``, with NaN, a gap in the curve, where there is nothing that can be drawn."""
        y = np.array(self.y, dtype=float)
        return np.where(np.abs(y) < LARGEST, y, np.nan)


@dataclass(frozen=True)
class Lines:
    """Curves over ``x_label``; ``top`` fixes the upper end of the axis, which otherwise follows the data."""

    y_label: str
    lines: tuple[Line, ...]
    top: float | None = None
    x_label: str = "epoch"

    @property
    def named(self) -> tuple[Line, ...]:
        """The curves that the legend lists."""
        return tuple(line for line in self.lines if line.in_legend)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Shares of the weights (bins,) between edges (bins + 1,)."""

    x_label: str
    edges: Floats
    shares: Floats
    colour: int


@dataclass(frozen=True, eq=False)
class Reliability:
    """Accuracy against confidence."""

    bins: Bins
    colour: int


@dataclass(frozen=True, eq=False)
class Scatter:
    """Predictions against the truth, (samples,) each, with half the length of their intervals."""

    truth: Floats
    predicted: Floats
    reach: Floats
    colour: int


@dataclass(frozen=True, eq=False)
class Matrix:
    """Counts (classes, classes) of true classes (rows) and predicted ones (columns)."""

    names: tuple[str, ...]
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tile:
    """A small picture of bytes (height, width[, 3 or 4]) with lines of text, the last where something is wrong."""

    pixels: NDArray[np.uint8]
    description: str
    text: str = ""
    detail: str = ""
    correction: str = ""


@dataclass(frozen=True, eq=False)
class Gallery:
    """Pictures in reading order, ``columns`` of them in a row if that matters."""

    tiles: tuple[Tile, ...]
    columns: int | None = None


@dataclass(frozen=True)
class Table:
    """Words and numbers; ``marked`` are the (row, column) that deserve a second look. ``runs`` are the places of the
    runs that the rows are about, with the colours that these have in other figures. ``values`` (rows, columns) are the
    numbers behind the words, to sort by and to download. A ``folded`` table is opened by whoever wants to see it."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[tuple[int, int]] = frozenset()
    numeric: bool = True
    runs: tuple[int, ...] = ()
    values: tuple[tuple[float | None, ...], ...] = ()
    folded: bool = False


Content = Lines | Histogram | Reliability | Scatter | Matrix | Gallery | Table


@dataclass(frozen=True, eq=False)
class Figure:
    """``key`` names files and anchors, ``title`` says what is drawn, ``caption`` what to look for; ``run`` is the place
    of the run that it is about, None for several."""

    key: str
    title: str
    caption: str
    content: Content
    run: int | None = None


def of_run(runs: Sequence[RunSummary], place: int, key: str, title: str, caption: str, content: Content) -> Figure:
    """A figure of one of the runs, with the run's name in its title where there are several."""
    return Figure(key, title if len(runs) == 1 else f"{title} · {runs[place].name}", caption, content, place)


@dataclass(frozen=True, eq=False)
class Section:
    """Figures that belong together; ``columns`` is how many stand side by side where there is room."""

    key: str
    title: str
    text: str
    figures: tuple[Figure, ...]
    columns: int = 2
