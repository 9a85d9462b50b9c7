"""The figures of the page by matplotlib, as PNG and SVG for papers and slides."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Sheet
from matplotlib.ticker import MaxNLocator

from cavity.report.chart import finite_points
from cavity.report.content import Content, Figure, Gallery, Histogram, Line, Lines, Matrix, Reliability, Table
from cavity.report.figures import sections
from cavity.report.heatmap import opacities, shortened
from cavity.report.palette import LIGHT
from cavity.report.summary import RunSummary

INK, RULE, ALARM = "#1c2430", "#d5dae1", "#c2410c"
#: Text stays text in SVG, a dollar in a name begins no formula, and files do not change when nothing else does.
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "cavity",
    "text.parse_math": False,
}
DOTS_PER_INCH = 200
TILES_PER_ROW = 12


def save_plots(runs: Sequence[RunSummary], folder: str | os.PathLike[str]) -> list[Path]:
    """Write KEY.png and KEY.svg of every figure but the tables into ``folder``; returns the paths."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for figure in (figure for part in sections(runs) for figure in part.figures):
        if not isinstance(figure.content, Table):
            paths += save(figure, place)
    return paths


def save(figure: Figure, folder: Path) -> list[Path]:
    """One figure in both formats."""
    png, svg = (folder / f"{figure.key}.{suffix}" for suffix in ("png", "svg"))
    with matplotlib.rc_context(STYLE):
        sheet = draw(figure)
        sheet.savefig(png, dpi=DOTS_PER_INCH)
        sheet.savefig(svg, metadata={"Date": None})
    return [png, svg]


def draw(figure: Figure) -> Sheet:
    """One figure on a sheet of its own."""
    sheet = Sheet(figsize=_size(figure.content), layout="constrained")
    FigureCanvasAgg(sheet)
    match figure.content:
        case Lines():
            _lines(sheet.add_subplot(), figure.content)
        case Histogram():
            _histogram(sheet.add_subplot(), figure.content)
        case Reliability():
            _reliability(sheet, figure.content)
        case Matrix():
            _matrix(sheet.add_subplot(), figure.content)
        case Gallery():
            _gallery(sheet, figure.content)
        case Table():
            raise TypeError("tables are not drawn")
    sheet.suptitle(figure.title, fontsize=10, fontweight="bold")
    return sheet


def _size(content: Content) -> tuple[float, float]:
    if isinstance(content, Gallery):
        rows = -(-len(content.tiles) // TILES_PER_ROW)
        return 8.4, 0.4 + rows * (1.15 if content.tiles[0].text else 0.7)
    return (4.4, 4.4) if isinstance(content, Matrix | Reliability) else (4.4, 3.0)


def _colour(number: int) -> str:
    return LIGHT[number % len(LIGHT)]


def _lines(axes: Axes, content: Lines) -> None:
    for line in content.lines:
        _line(axes, line)
    axes.set_xlabel(content.x_label)
    axes.set_ylabel(content.y_label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if axes.get_ylim()[0] > 0 or content.top is not None:
        axes.set_ylim(bottom=0, top=content.top and 1.02 * content.top)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    if len(content.lines) > 1:
        axes.legend(frameon=False, fontsize=8)


def _line(axes: Axes, line: Line) -> None:
    """A curve with its gaps; a mark at each end of a piece shows pieces of a single point."""
    for place, piece in enumerate(finite_points(line)):
        x, y = zip(*piece, strict=True)
        name = line.name if place == 0 and line.in_legend else "_nolegend_"
        style = "--" if line.dashed else "-"
        axes.plot(x, y, style, color=_colour(line.colour), label=name, linewidth=1.4)
        axes.plot(x[-1:], y[-1:], "o", color=_colour(line.colour), markersize=3)


def _histogram(axes: Axes, content: Histogram) -> None:
    axes.bar(
        content.edges[:-1], 100 * content.shares, np.diff(content.edges), align="edge", color=_colour(content.colour)
    )
    axes.set_xlabel(content.x_label)
    axes.set_ylabel(content.y_label)
    axes.set_xlim(content.edges[0], content.edges[-1])


def _reliability(sheet: Sheet, content: Reliability) -> None:
    upper, lower = sheet.subplots(2, 1, sharex=True, height_ratios=(5, 1))
    bins = content.bins
    width = 1 / len(bins.share)
    middle = (np.arange(len(bins.share)) + 0.5) * width
    accuracy, confidence = np.nan_to_num(bins.accuracy), np.nan_to_num(bins.confidence)
    sure, colour = confidence > accuracy, _colour(content.colour)
    lower_end, gap = np.minimum(accuracy, confidence), np.abs(accuracy - confidence)
    upper.bar(middle, lower_end, 0.9 * width, color=colour)
    for chosen, style in ((sure, {"edgecolor": ALARM, "hatch": "////"}), (~sure, {"edgecolor": colour})):
        upper.bar(middle[chosen], gap[chosen], 0.9 * width, lower_end[chosen], facecolor="none", linewidth=0.8, **style)
    upper.plot([0, 1], [0, 1], ":", color=INK, linewidth=1)
    upper.set(ylabel="share that is right", xlim=(0, 1), ylim=(0, 1))
    lower.bar(middle, 100 * bins.share, 0.9 * width, color=_colour(content.colour), alpha=0.5)
    lower.set(xlabel="confidence of the prediction", ylabel="samples (%)")


def _matrix(axes: Axes, content: Matrix) -> None:
    strength = opacities(content)
    agree, differ = (np.array(matplotlib.colors.to_rgb(colour)) for colour in (LIGHT[0], ALARM))
    hue = np.where(np.eye(len(strength), dtype=bool)[..., None], agree, differ)
    axes.imshow(1 - strength[..., None] * (1 - hue))
    names = [shortened(name) for name in content.names]
    every = max(1, len(names) // 20)
    places = range(0, len(names), every)
    turned = 90 if max(map(len, names)) > 2 else 0
    axes.set_xticks(places, names[::every], rotation=turned)
    axes.set_yticks(places, names[::every])
    axes.set(xlabel=content.column_label, ylabel=content.row_label)
    if len(names) > 20:
        return
    for row, column in np.argwhere(content.counts):
        colour = "white" if strength[row, column] > 0.6 else INK
        axes.text(column, row, str(content.counts[row, column]), ha="center", va="center", color=colour, fontsize=7)


def _gallery(sheet: Sheet, content: Gallery) -> None:
    rows = -(-len(content.tiles) // TILES_PER_ROW)
    grid = sheet.subplots(rows, TILES_PER_ROW, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, tile in zip(grid.flat, content.tiles, strict=False):
        axes.imshow(tile.pixels, cmap="gray" if tile.pixels.ndim == 2 else None, vmin=0, vmax=255)
        if tile.text:
            words = "\n".join((tile.text, tile.detail, tile.correction)).rstrip()
            axes.set_title(words, fontsize=6.5, color=ALARM if tile.correction else INK, y=-0.02, va="top", pad=0)
