"""Time per epoch against batch size, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator, StrMethodFormatter

from cavity.report.plots import rendered
from cavity.studies.bench import paper
from cavity.studies.bench.contenders import names, title_of
from cavity.studies.experiments.plots import COLOURS, DOTS_PER_INCH, finish, panels
from cavity.util.files import write_whole

if TYPE_CHECKING:
    from cavity.studies.bench.table import Result

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
    network, papers = ("-".join(map(str, sizes)) for sizes in (result.network, paper.NETWORK))
    ours, theirs = f"cavity: {network}, {result.dataset}", f"paper: {papers}, fashion-mnist"
    figure = beside("Time per epoch", curves(result), f"{ours}\n{result.machine}", f"{theirs}\n{paper.MACHINE}")
    write_whole(path, rendered(figure, path.suffix[1:].lower() or "png", dpi=DOTS_PER_INCH))


def beside(title: str, ours: Curves, about: str, about_paper: str) -> Figure:
    """Our curves and the paper's under titles of their own; colours and markers are the same in both."""
    figure, halves = panels(title, 2)
    sizes = sorted({batch for points in ours.values() for batch, _ in points})
    for axes, lines, words in zip(halves, (ours, paper_curves()), (about, about_paper), strict=True):
        for name, points in lines.items():
            marker = MARKERS[names().index(name) % len(MARKERS)]
            axes.loglog(*zip(*points, strict=True), marker=marker, color=COLOURS[name], label=title_of(name))
        axes.set_xticks(sizes, labels=list(map(str, sizes)))
        axes.xaxis.set_minor_locator(NullLocator())
        # The formatter of logarithmic axes writes mathematics, which these figures do not parse.
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        finish(axes, "batch size", "seconds per epoch", words)
    return figure
