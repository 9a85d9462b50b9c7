"""Time per epoch against batch size, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.core.algorithms import ALGORITHMS
from cavity.studies.bench import paper
from cavity.studies.bench.contenders import names, title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cavity.studies.bench.table import Result

#: Greys for BinaryNet, and the algorithms in their own colours.
COLOURS = {"binarynet": "black", "binarynet-compiled": "dimgray", "binarynet-tuned": "silver", "bp-exact": "tab:red"}
MARKERS = "osXv^DP*<>"

Curve = Sequence[tuple[int, float]]


def curves(result: Result) -> dict[str, list[tuple[int, float]]]:
    """Algorithm → (batch size, seconds per epoch), in order of batch size."""
    found: dict[str, list[tuple[int, float]]] = {}
    for timing in sorted(result.timings, key=lambda timing: timing.batch_size):
        found.setdefault(timing.algorithm, []).append((timing.batch_size, timing.seconds_per_epoch))
    return found


def paper_curves() -> dict[str, list[tuple[int, float]]]:
    """The same from the paper."""
    return {
        name: list(zip(paper.BATCH_SIZES, seconds, strict=True)) for name, seconds in paper.SECONDS_PER_EPOCH.items()
    }


def draw(result: Result, path: Path) -> None:
    """Write the picture in the format of the file's suffix."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    ours, theirs = figure.subplots(1, 2, sharex=True, sharey=True)
    network = "-".join(map(str, result.network))
    _half(ours, curves(result), f"cavity: {network}, {result.dataset}\n{result.machine}")
    shape = "-".join(map(str, paper.NETWORK))
    _half(theirs, paper_curves(), f"paper: {shape}, fashion-mnist\n{paper.MACHINE}")
    ours.set_ylabel("seconds per epoch")
    figure.savefig(path, dpi=150)


def style(name: str) -> tuple[str, str]:
    """Colour and marker, the same in both halves."""
    everybody = names()
    colour = COLOURS[name] if name in COLOURS else ALGORITHMS[name].colour
    return colour, MARKERS[everybody.index(name) % len(MARKERS)]


def _half(axes: Axes, lines: Mapping[str, Curve], title: str) -> None:
    for name, points in lines.items():
        color, marker = style(name)
        sizes, seconds = zip(*points, strict=True)
        axes.loglog(sizes, seconds, color=color, marker=marker, label=title_of(name))
    axes.set_xlabel("batch size")
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
