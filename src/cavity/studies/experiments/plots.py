"""Figures of studies: panels under a title, curves with bands, saved as PNG and SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Figure
from matplotlib.ticker import MaxNLocator

from cavity.core.algorithms import ALGORITHMS
from cavity.report.palette import LIGHT
from cavity.report.plots import STYLE, write_sheet
from cavity.studies.experiments.experiment import Records
from cavity.studies.experiments.setup import BASELINES
from cavity.studies.experiments.table import settings

DOTS_PER_INCH = 150
PANEL = (4.6, 3.6)
#: The same method has the same colour in every figure.
COLOURS = {name: algorithm.colour for name, algorithm in ALGORITHMS.items()}
COLOURS |= {name: colour for name, (_, colour) in BASELINES.items()}
COLOURS |= {"binarynet-compiled": "dimgray", "binarynet-tuned": "silver", "bp-exact": LIGHT[4]}
#: Axes with ticks at integers.
COUNTED = ("epoch", "task")
#: Opacity of the band of one standard deviation.
BAND = 0.18


def panels(title: str, count: int, columns: int = 3, size: float = 1.0) -> tuple[Figure, list[Axes]]:
    """A figure of ``count`` panels, at most ``columns`` in a row, each ``size`` times the usual one."""
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(size * PANEL[0] * columns, size * PANEL[1] * rows + 0.5), layout="constrained")
        figure.suptitle(title, fontsize=10)
        return figure, [figure.add_subplot(rows, columns, place + 1) for place in range(count)]


def sheet(title: str, records: Records, count: int = 1, columns: int = 3) -> tuple[Figure, list[Axes]]:
    """Panels under a title that states the settings."""
    return panels(f"{title}\n{settings(records)}", count, columns)


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write STEM.png and STEM.svg."""
    with matplotlib.rc_context(STYLE):
        return write_sheet(figure, stem, DOTS_PER_INCH)


def band(axes: Axes, curves: Sequence[Sequence[float]], label: str, x: Sequence[float] = (), **style: Any) -> None:
    """The mean curve over seeds, up to the end of the shortest one, with a band of one standard deviation; without an
    ``x``, points are counted from 1."""
    shortest = min(map(len, curves))
    values = np.array([curve[:shortest] for curve in curves], dtype=float)
    mean, std = values.mean(axis=0), values.std(axis=0)
    places = (x or range(1, 1 + len(mean)))[: len(mean)]
    (line,) = axes.plot(places, mean, label=label, linewidth=1.4, **style)
    if len(curves) > 1:
        axes.fill_between(places, mean - std, mean + std, color=line.get_color(), alpha=BAND, linewidth=0)


def epochs_band(axes: Axes, records: Records, name: str, label: str, **style: Any) -> None:
    """A curve over epochs, e.g. ``test_error``; nothing if it was not measured."""
    curves = [record.result["curves"][name] for record in records]
    measured = [curve for curve in curves if curve[-1] is not None]
    if measured:
        band(axes, measured, label, **style)


def finish(axes: Axes, x_label: str, y_label: str, title: str = "", *, beside: bool = False) -> None:
    """Labels and legend; ``beside`` puts a long legend to the right of the panel."""
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_title(title, fontsize=9)
    axes.grid(axis="y", alpha=0.3)
    if x_label in COUNTED:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    if axes.get_legend_handles_labels()[0]:
        place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if beside else {}
        axes.legend(fontsize=8, framealpha=0.85, edgecolor="none", **place)
