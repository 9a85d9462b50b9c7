"""The figures by matplotlib: as PNG and SVG files, and, through ``inline``, on the page."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from cavity.report.content import Content, Figure, Gallery, Histogram, Lines, Matrix, Reliability, Scatter, Table
from cavity.report.overview import sections
from cavity.report.palette import LIGHT
from cavity.report.summary import Floats, RunSummary
from cavity.report.wording import fixed, share
from cavity.util.files import write_whole

INK, RULE, BASE, ALARM, ON_COLOUR = "#1c2430", "#d5dae1", "#98a2b0", "#c2410c", "#ffffff"
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
#: Width of a chart in inches and size of its letters in points, which a page can shrink to a phone.
WIDTH, LETTERS = 4.0, 10.0
#: Width of a letter in points, wide ones in a browser's font included.
LETTER = 6.0
#: What an artist's gid begins with if the page shows the rest of it when pointed at.
TIP = "tip:"
#: A share of a row at which a mistake has its full colour, unless there is a larger one.
GRAVE = 0.05
#: Letters of a class name that fit beside a confusion matrix, and most classes with room for names and numbers.
LONGEST_NAME, ROOM = 12, 20


def save_plots(runs: Sequence[RunSummary], folder: str | os.PathLike[str]) -> list[Path]:
    """Write KEY.png and KEY.svg of every figure but the tables into ``folder``; returns the paths."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    figures = [figure for part in sections(runs) for figure in part.figures if not isinstance(figure.content, Table)]
    return [path for figure in figures for path in save(figure, place)]


def save(figure: Figure, folder: Path) -> list[Path]:
    """One figure in both formats, with its title and legend."""
    with styled():
        sheet = draw(figure.content)
        sheet.set_layout_engine("constrained")
        sheet.suptitle(figure.title, fontsize=10, fontweight="bold")
        if isinstance(figure.content, Lines) and len(figure.content.named) > 1:
            sheet.axes[0].legend(frameon=False, fontsize=8)
        for artist in sheet.findobj(lambda one: one.get_gid() is not None):
            artist.set_gid(None)
        return write_sheet(sheet, folder / figure.key, DOTS_PER_INCH)


def write_sheet(sheet: Sheet, stem: Path, dots_per_inch: int) -> list[Path]:
    """Write STEM.png and STEM.svg, each in one rename."""
    png, svg = (stem.with_name(f"{stem.name}.{suffix}") for suffix in ("png", "svg"))
    write_whole(png, rendered(sheet, "png", dpi=dots_per_inch))
    write_whole(svg, rendered(sheet, "svg", metadata={"Date": None}))
    return [png, svg]


def rendered(sheet: Sheet, kind: str, **options: Any) -> bytes:
    """The content of a file of that kind."""
    stream = io.BytesIO()
    sheet.savefig(stream, format=kind, **options)
    return stream.getvalue()


@contextmanager
def styled() -> Iterator[None]:
    """The style of the figures. Letters that matplotlib's font lacks are drawn by the font of whoever shows the SVG."""
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def draw(content: Content) -> Sheet:
    """A sheet of its own, at 72 dots per inch: its pixels are the units of an SVG file."""
    sheet = Sheet(figsize=_size(content), dpi=72)
    match content:
        case Lines():
            draw_lines(sheet.add_subplot(), content)
        case Histogram():
            _histogram(sheet.add_subplot(), content)
        case Reliability():
            _reliability(sheet, content)
        case Scatter():
            _scatter(sheet.add_subplot(), content)
        case Matrix():
            _matrix(sheet.add_subplot(), content)
        case Gallery():
            _gallery(sheet, content)
        case Table():
            raise TypeError("content must be something to draw, got a table")
    return sheet


def _size(content: Content) -> tuple[float, float]:
    if isinstance(content, Gallery):
        rows = -(-len(content.tiles) // (content.columns or TILES_PER_ROW))
        return 8.4, 0.4 + rows * (1.15 if content.tiles[0].text else 0.7)
    return WIDTH, WIDTH if isinstance(content, Matrix | Reliability | Scatter) else 0.65 * WIDTH


def colour(number: int) -> dict[str, Any]:
    """Runs beyond the palette repeat its colours, fainter."""
    return {"color": LIGHT[number % len(LIGHT)], "alpha": None if number < len(LIGHT) else 0.5}


def _margins(axes: Axes, left: Sequence[str], below: Sequence[str] = ("0",)) -> None:
    """Room for the names on the axes. matplotlib's own layout would take as long as the drawing."""
    sheet = axes.figure
    width, height = sheet.bbox.size
    across, up = (max(map(len, names)) for names in (left, below))
    bottom = 34 if up < 3 else 22 + LETTER * up
    sheet.subplots_adjust((24 + LETTER * across) / width, bottom / height, 1 - 6 / width, 1 - 8 / height)


def _plain(axes: Axes, x_label: str, y_label: str) -> None:
    """Labels, horizontal lines and no ticks."""
    axes.set_xlabel(x_label, fontsize=LETTERS)
    axes.set_ylabel(y_label, fontsize=LETTERS, labelpad=6)
    axes.tick_params(length=0, labelsize=LETTERS)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_visible(False)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)


def draw_lines(axes: Axes, content: Lines) -> None:
    """The curves and their axes."""
    _plain(axes, content.x_label, content.y_label)
    for line in content.lines:
        y = line.values
        there = np.append(np.isfinite(y), False)
        # A mark at the end of the curve, and on points between two gaps, which are no line.
        ends = there[:-1] & ~there[1:] & ~np.append(False, there[:-2])
        ends[np.flatnonzero(there)[-1:]] = True
        style = {**colour(line.colour), "label": line.name if line.in_legend else "_nolegend_", "clip_on": False}
        marks: dict[str, Any] = {"marker": "o", "markersize": 4, "markevery": np.flatnonzero(ends).tolist()}
        axes.plot(line.x, y, "--" if line.dashed else "-", linewidth=1.5, **style, **marks)
    places = [place for line in content.lines for place in line.x]
    first, last = min(places), max(places)
    room = 0.03 * (last - first) or 0.5
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=content.x_label == "epoch", min_n_ticks=1))
    axes.set_xlim(first - room, last + room)
    _rising(axes, np.concatenate([line.values for line in content.lines]), content.top)


def _rising(axes: Axes, values: Floats, top: float | None = None) -> None:
    """A y axis from one round number to another, with a line at 0, which is always on it."""
    low, high = min(0.0, np.nanmin(values)), max(0.0, np.nanmax(values))
    if top is not None and high < 1.001 * top:
        high = top
    ticks = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high if high > low else 1.0)
    axes.set_yticks(ticks)
    axes.set_ylim(ticks[0], ticks[-1])
    _margins(axes, axes.yaxis.get_major_formatter().format_ticks(list(ticks)))
    axes.axhline(0, color=BASE, linewidth=0.8, zorder=1, clip_on=False)


def _histogram(axes: Axes, content: Histogram) -> None:
    _plain(axes, content.x_label, "weights (%)")
    width = np.diff(content.edges)
    bars = axes.bar(content.edges[:-1], 100 * content.shares, 0.94 * width, align="edge", **colour(content.colour))
    for bar, left, right, part in zip(bars, content.edges, content.edges[1:], content.shares, strict=False):
        bar.set_gid(f"{TIP}{fixed(left, 2)} to {fixed(right, 2)}: {share(part)}")
        bar.set_visible(part > 0)
    axes.set_xlim(content.edges[0], content.edges[-1])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    _rising(axes, 100 * content.shares)


def _reliability(sheet: Sheet, content: Reliability) -> None:
    upper, lower = sheet.subplots(2, 1, sharex=True, height_ratios=(3.6, 1.2))
    _plain(upper, "", "accuracy")
    _plain(lower, "confidence of the prediction", "samples (%)")
    bins = content.bins
    width = 1 / len(bins.share)
    paint = colour(content.colour)["color"]
    for place in np.flatnonzero(bins.share):
        part, confidence, accuracy = bins.share[place], bins.confidence[place], bins.accuracy[place]
        words = f"confidence {share(confidence)}, accuracy {share(accuracy)}, {share(part)} of the samples"
        low, gap = min(accuracy, confidence), abs(accuracy - confidence)
        edge = ALARM if confidence > accuracy else paint
        where: dict[str, Any] = {"x": (place + 0.5) * width, "width": 0.9 * width}
        for bars in (
            upper.bar(height=low, color=paint, **where),
            upper.bar(height=gap, bottom=low, facecolor=edge, edgecolor=edge, alpha=0.35, linewidth=0.8, **where),
            lower.bar(height=100 * part, color=paint, alpha=0.5, **where),
        ):
            bars[0].set_gid(TIP + words)
    upper.plot([0, 1], [0, 1], ":", color=INK, linewidth=1)
    upper.set(xlim=(0, 1), ylim=(0, 1))
    _margins(upper, ["100"])
    for axes in (upper, lower):
        axes.axhline(0, color=BASE, linewidth=0.8, clip_on=False)


def _scatter(axes: Axes, content: Scatter) -> None:
    """A dot for each sample on its interval, and the diagonal on which truth and prediction agree."""
    _plain(axes, "truth", "prediction")
    truth, predicted, reach = content.truth, content.predicted, content.reach
    paint = colour(content.colour)["color"]
    axes.vlines(truth, predicted - reach, predicted + reach, color=paint, alpha=0.25, linewidth=1)
    axes.plot(truth, predicted, "o", color=paint, markersize=4)
    ends = [float(min(truth.min(), predicted.min())), float(max(truth.max(), predicted.max()))]
    axes.plot(ends, ends, ":", color=INK, linewidth=1)
    room = 0.05 * (ends[1] - ends[0]) or 0.5
    axes.set(xlim=(ends[0] - room, ends[1] + room))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(6))
    _margins(axes, axes.yaxis.get_major_formatter().format_ticks(list(axes.get_yticks())))


def row_shares(matrix: Matrix) -> Floats:
    """Each count divided by the sum of its row; 0 in empty rows."""
    totals = matrix.counts.sum(axis=1, keepdims=True)
    shares: Floats = matrix.counts / np.maximum(totals, 1)
    return shares


def opacities(matrix: Matrix) -> Floats:
    """How strong each colour is, 0 to 1: the share on the diagonal; off it, the root of the share of the largest."""
    shares = row_shares(matrix)
    wrong = shares * (1 - np.eye(len(shares)))
    mistakes = np.sqrt(wrong / max(GRAVE, float(wrong.max())))
    result: Floats = np.where(np.eye(len(shares), dtype=bool), shares, mistakes)
    return result


def shortened(name: str) -> str:
    """The name, cut with an ellipsis where it is too long to stand beside the matrix."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _matrix(axes: Axes, content: Matrix) -> None:
    """A cell for every count that is not 0: agreement in one colour, each kind of mistake in another."""
    names, strength, shares = content.names, opacities(content), row_shares(content)
    size = min(9.0, 100 / len(names), 300 / len(names) / max(2, len(str(content.counts.max()))))
    for row, column in np.argwhere(content.counts):
        count, right = content.counts[row, column], row == column
        paint = LIGHT[0] if right else ALARM
        cell = Rectangle((column - 0.47, row - 0.47), 0.94, 0.94, color=paint, alpha=strength[row, column], linewidth=0)
        words = f"{names[row]}, right" if right else f"{names[row]} taken for {names[column]}"
        axes.add_patch(cell).set_gid(f"{TIP}{words}: {count} ({share(shares[row, column])} of the row)")
        if len(names) <= ROOM:
            ink = ON_COLOUR if strength[row, column] > 0.6 else INK
            style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "color": ink, "fontsize": size}
            axes.text(column, row, str(count), **style)
    _plain(axes, "prediction", "truth")
    axes.grid(visible=False)
    places = range(0, len(names), -(-len(names) // ROOM))
    written = [shortened(names[place]) for place in places]
    axes.set_xticks(places, written, rotation=90 if max(map(len, written)) > 2 else 0)
    axes.set_yticks(places, written)
    _margins(axes, written, written)
    axes.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5), aspect="equal")


def _gallery(sheet: Sheet, content: Gallery) -> None:
    columns = content.columns or TILES_PER_ROW
    grid = sheet.subplots(-(-len(content.tiles) // columns), columns, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, tile in zip(grid.flat, content.tiles, strict=False):
        axes.imshow(tile.pixels, cmap="gray" if tile.pixels.ndim == 2 else None, vmin=0, vmax=255)
        if tile.text:
            words = "\n".join((tile.text, tile.detail, tile.correction)).rstrip()
            axes.set_title(words, fontsize=6.5, color=ALARM if tile.correction else INK, y=-0.02, va="top", pad=0)
