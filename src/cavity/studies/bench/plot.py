"""Time per epoch against batch size, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.core.algorithms import ALGORITHMS
from cavity.studies.bench import paper
from cavity.studies.bench.contenders import names, title_of
from cavity.util.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cavity.studies.bench.table import Result

#: Greys for BinaryNet, and the algorithms in their own colours.
COLOURS = {"binarynet": "black", "binarynet-compiled": "dimgray", "binarynet-tuned": "silver", "bp-exact": "tab:red"}
MARKERS = "osXv^DP*<>"

#: Algorithm → (batch size, seconds per epoch), in order of batch size.
Curves = Mapping[str, list[tuple[int, float]]]


def curves(result: Result) -> Curves:
    found: dict[str, list[tuple[int, float]]] = {}
    for timing in sorted(result.timings, key=lambda timing: timing.batch_size):
        found.setdefault(timing.algorithm, []).append((timing.batch_size, timing.seconds_per_epoch))
    return found


def paper_curves() -> Curves:
    return {name: list(zip(paper.BATCH_SIZES, times, strict=True)) for name, times in paper.SECONDS_PER_EPOCH.items()}


def draw(result: Result, path: Path) -> None:
    """Write the picture in the format of the file's suffix, PNG where it has none."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from cavity.report.plots import rendered

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    ours, theirs = figure.subplots(1, 2, sharex=True, sharey=True)
    network, papers = ("-".join(map(str, sizes)) for sizes in (result.network, paper.NETWORK))
    _half(ours, curves(result), f"cavity: {network}, {result.dataset}\n{result.machine}")
    _half(theirs, paper_curves(), f"paper: {papers}, fashion-mnist\n{paper.MACHINE}")
    ours.set_ylabel("seconds per epoch")
    write_whole(path, rendered(figure, path.suffix[1:].lower() or "png", dpi=150))


def _half(axes: Axes, lines: Curves, title: str) -> None:
    """Colours and markers are the same in both halves."""
    for name, points in lines.items():
        colour = COLOURS[name] if name in COLOURS else ALGORITHMS[name].colour
        marker = MARKERS[names().index(name) % len(MARKERS)]
        axes.loglog(*zip(*points, strict=True), color=colour, marker=marker, label=title_of(name))
    axes.set_xlabel("batch size")
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
