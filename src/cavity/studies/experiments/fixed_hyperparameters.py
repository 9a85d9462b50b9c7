"""The cost of one setting for all data sets. The paper claims (appendix, "Architectures") that ρ = 1 and α = 0.8 in
every layer increase the test error by no more than about 20 % (relative) across data sets and architectures.

BP, 2 hidden layers, against the tuned ρ = (1.0001, 1.0001, 0.9) of the table of data sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cavity.studies.experiments.experiment import Cell, Experiment, Record
from cavity.studies.experiments.scale import TWO_CLASS, Request, Size, smoke
from cavity.studies.experiments.select import final, groups, train_cell
from cavity.studies.experiments.setup import Setup
from cavity.studies.experiments.table import markdown, number, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The paper's "~20 %", relative to the tuned error.
CLAIM = 20.0
DATASETS = ("mnist", "fashion-mnist", "mnist-two-class", "fashion-mnist-two-class", "cifar-10", "cifar-10-two-class")
SIZES = {
    "smoke": Size(2, 1, ("digits", "digits" + TWO_CLASS), samples=smoke().samples, options={"widths": (21,)}),
    "laptop": Size(20, 1, DATASETS[:4], options={"widths": (101,)}),
    "paper": Size(100, 5, DATASETS, options={"widths": (101, 501)}),
}


def cells(request: Request) -> list[Cell]:
    size = request.size(SIZES)
    found = []
    for seed in range(size.seeds):
        for width in size.option("widths"):
            for dataset in size.datasets:
                tuned = Setup("bp", dataset, (width,) * 2, size.epochs, seed, samples=size.samples)
                fixed = tuned.replace(rho=(1.0,) * 3)
                # The same name as in the table of data sets, so that a cell computed there is not computed again.
                found.append(Cell(f"{dataset}-bp", tuned, request.scale))
                found.append(Cell(f"{dataset}-bp-fixed", fixed, request.scale))
    return found


def pairs(records: Sequence[Record]) -> dict[tuple[str, int], tuple[list[Record], list[Record]]]:
    """(data set, width) → tuned and fixed records, where there are both."""
    found = groups(records, lambda record: (record.cell.setup.dataset, record.cell.setup.hidden[0]))
    split = {
        key: ([r for r in chosen if r.cell.setup.rho is None], [r for r in chosen if r.cell.setup.rho is not None])
        for key, chosen in found.items()
    }
    return {key: both for key, both in split.items() if all(both)}


def loss(tuned: Sequence[Record], fixed: Sequence[Record]) -> float:
    """How much larger the error of the fixed setting is, in percent of the tuned one."""
    best, other = final(tuned, "test_error"), final(fixed, "test_error")
    assert best is not None
    assert other is not None
    return 100 * (other.mean / best.mean - 1) if best.mean else 0.0


def table(records: Sequence[Record]) -> str:
    head = ["data", "width", "tuned", "ρ = 1, α = 0.8", "relative loss (%)", "verdict"]
    rows = []
    for (dataset, width), (tuned, fixed) in pairs(records).items():
        lost = loss(tuned, fixed)
        errors = [number(final(chosen, "test_error")) for chosen in (tuned, fixed)]
        rows.append([dataset, str(width), *errors, f"{lost:.1f}", "holds" if lost <= CLAIM else "does not hold"])
    return page(
        "One setting for everything",
        records,
        f"Test error (%) of BP, point-wise, after the last epoch. The paper: a loss of no more than about {CLAIM:g} %.",
        markdown(head, rows),
    )


def plot(records: Sequence[Record]) -> Figure:
    from cavity.report.palette import LIGHT
    from cavity.studies.experiments.plots import finish, sheet

    figure, (axes,) = sheet("Loss by ρ = 1 and α = 0.8 everywhere, BP", records)
    found = pairs(records)
    names = [f"{dataset}\n{width}" for dataset, width in found]
    axes.bar(names, [loss(*both) for both in found.values()], color=LIGHT[0])
    axes.axhline(CLAIM, linestyle=":", color=LIGHT[4], label="the paper's bound")
    axes.tick_params(axis="x", labelsize=6, rotation=30)
    finish(axes, "", "relative loss of test error (%)")
    return figure


EXPERIMENT = Experiment("fixed-hyperparameters", cells, train_cell, table, plot, datasets_beside=True)
