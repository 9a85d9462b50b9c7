"""The picture of a sweep: what mattered, and the objective against everything that was searched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

from cavity.report.palette import LIGHT
from cavity.report.plots import INK, RULE, STYLE
from cavity.studies.experiments.plots import panels, save
from cavity.studies.sweep.folder import best
from cavity.studies.sweep.importance import FEWEST, Importance, importances
from cavity.studies.sweep.plan import Plan
from cavity.studies.sweep.space import AroundOne, Axis, BelowOne, Choices, Logarithmic
from cavity.studies.sweep.study import Trial
from cavity.studies.sweep.table import TITLES, summary

BLUE, RED, GREY = LIGHT[0], LIGHT[4], LIGHT[7]
#: Opacity of a pruned trial.
PALE = 0.3
#: Panels beside each other.
COLUMNS = 3
#: How wide the trials of a choice are spread; multiples of the golden ratio never come close to each other.
SPREAD, GOLDEN = 0.5, 0.618034


def save_picture(plan: Plan, trials: Sequence[Trial], stem: Path) -> tuple[list[Path], list[Importance]]:
    """Write STEM.png and STEM.svg; returns the paths, and the importances that are drawn there."""
    found = importances(plan, trials)
    return save(draw(plan, trials, found), stem), found


def draw(plan: Plan, trials: Sequence[Trial], found: Sequence[Importance]) -> Figure:
    """One panel for what mattered and one for each thing that was searched."""
    axes, config, first = plan.axes, plan.config, best(list(trials))
    epochs = "" if "epochs" in plan.space.search else f", {config.epochs} epochs"
    title = f"{Path(config.dataset).name}, {config.algorithm}{epochs}; {summary(trials)}\n"
    if first is not None:
        title += f"best: {plan.words} {plan.shown(first.value)} (trial {first.number})"
    figure, (mattered, *shown) = panels(title, len(axes) + 1, COLUMNS, size=0.8)
    with matplotlib.rc_context(STYLE):
        _importances(mattered, found)
        measured = [trial for trial in trials if trial.value is not None]
        for place, (panel, axis) in enumerate(zip(shown, axes, strict=True), start=1):
            _scatter(panel, axis, measured)
            if place == 1 or place % COLUMNS == 0:
                panel.set_ylabel(f"{plan.title}{' (%)' if plan.in_percent else ''}")
        handles, labels = shown[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def _importances(panel: Axes, found: Sequence[Importance]) -> None:
    """A bar for each share, and a line where chance ends; what does not pass it is grey."""
    panel.set_title("what mattered", fontsize=9)
    if not found:
        panel.axis("off")
        panel.text(0.5, 0.5, f"fewer than {FEWEST} trials\ncannot tell", ha="center", va="center", color=INK)
        return
    places = np.arange(len(found))[::-1]
    for place, item in zip(places, found, strict=True):
        panel.barh(place, item.share, 0.6, color=BLUE if item.matters else GREY, alpha=1 if item.matters else 0.5)
        panel.plot([item.chance] * 2, [place - 0.4, place + 0.4], color=INK, linewidth=1.2, solid_capstyle="butt")
    panel.set_yticks(places, [TITLES[item.name] for item in found])
    panel.set_xlim(0, 1.05 * max(max(item.share, item.chance) for item in found))
    panel.set_xlabel("share of the variance of the ranks\n| the most that chance takes", fontsize=8)
    panel.tick_params(axis="y", length=0)


def _scatter(panel: Axes, axis: Axis, trials: Sequence[Trial]) -> None:
    """The objective of each trial where it ended, on a logarithmic scale if no trial is without error."""
    for state, opacity, label in (("pruned", PALE, "pruned, where it stopped"), ("complete", 0.9, "complete")):
        there = [(_place(axis, trial), trial.value) for trial in trials if trial.state == state]
        x, y = np.array(there, dtype=float).reshape(-1, 2).T
        panel.scatter(x, y, s=22, label=label, color=BLUE, alpha=opacity, linewidths=0)
    # The first trial has the usual values, as far as they are within the ranges.
    first = next((trial for trial in trials if trial.number == 0), None)
    for trial, marker, colour, label in (
        (first, "s", INK, "the first trial"),
        (best(list(trials)), "o", RED, "the best"),
    ):
        if trial is not None and trial.value is not None:
            ring: dict[str, Any] = {"facecolors": "none", "edgecolors": colour, "linewidths": 1.2, "marker": marker}
            panel.scatter([_place(axis, trial)], [trial.value], s=70, label=label, **ring)
    if min((trial.value for trial in trials if trial.value is not None), default=0.0) > 0:
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        panel.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        panel.yaxis.set_minor_locator(NullLocator())
    panel.set_title(TITLES[axis.name], fontsize=9)
    panel.grid(axis="y", color=RULE, linewidth=0.6)
    panel.set_axisbelow(True)
    _ticks(panel, axis)


def _place(axis: Axis, trial: Trial) -> float:
    """Where a trial stands: its coordinate; choices are spread, so that equal results do not hide each other."""
    if isinstance(axis, Choices):
        return axis.words.index(trial.coordinates[axis.key]) + SPREAD * (trial.number * GOLDEN % 1 - 0.5)
    return float(trial.coordinates[axis.key])


def _ticks(panel: Axes, axis: Axis) -> None:
    """Ticks of the values themselves, at the places of their coordinates."""
    if isinstance(axis, Choices):
        panel.set_xticks(range(len(axis.words)), [word.replace(",", "\n") for word in axis.words])
        panel.set_xlim(-0.5, len(axis.words) - 0.5)
        return
    ends = axis.coordinate(axis.low), axis.coordinate(axis.high)
    gap = 0.04 * (ends[1] - ends[0])
    panel.set_xlim(ends[0] - gap, ends[1] + gap)
    marks = [mark for mark in _marks(axis) if axis.holds(mark)]
    if isinstance(axis, AroundOne):
        panel.set_title(f"{TITLES[axis.name]} − 1", fontsize=9)
        words = [f"{mark - 1:+.0e}".replace("e-0", "e-") if abs(mark - 1) > 1e-12 else "0" for mark in marks]
    else:
        words = [f"{mark:g}" for mark in marks]
    panel.set_xticks([axis.coordinate(mark) for mark in marks], words)
    panel.xaxis.set_minor_locator(NullLocator())


def _marks(axis: Logarithmic) -> list[float]:
    """Round values, as close as there is room for them."""
    if isinstance(axis, AroundOne):
        powers = [sign * 10.0**power for sign in (-1, 1) for power in range(-8, 1) if 10.0**power > 2 * axis.unit]
        return [1 + distance for distance in sorted([0.0, *powers])]
    if isinstance(axis, BelowOne):
        return [0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999]
    return [digit * 10.0**power for power in range(-9, 9) for digit in (1, 3)]
