"""The cost of one setting for all data sets. The paper claims (appendix, "Architectures") that ρ = 1 and α = 0.8 in
every layer increase the test error by no more than about 20 % (relative) across data sets and architectures.

BP, 2 hidden layers, against the tuned ρ = (1.0001, 1.0001, 0.9) of the table of data sets.
"""

from __future__ import annotations

from cavity.report.palette import LIGHT
from cavity.studies.experiments import TWO_CLASS, Size, smoke
from cavity.studies.experiments.experiment import Experiment, Grid, Record, Records
from cavity.studies.experiments.plots import Figure, finish, sheet
from cavity.studies.experiments.setup import setups
from cavity.studies.experiments.table import final, finals, groups, markdown, page

#: The paper's "~20 %", relative to the tuned error.
CLAIM = 20.0
DATASETS = ("mnist", "fashion-mnist", "mnist-two-class", "fashion-mnist-two-class", "cifar-10", "cifar-10-two-class")
SIZES = {
    "smoke": Size(2, 1, ("digits", "digits" + TWO_CLASS), samples=smoke().samples, options={"widths": (21,)}),
    "laptop": Size(20, 1, DATASETS[:4], options={"widths": (101,)}),
    "paper": Size(100, 5, DATASETS, options={"widths": (101, 501)}),
}


def grid(size: Size) -> Grid:
    for tuned in setups(size, widths=size.options["widths"]):
        # The same name as in the table of data sets, so that a cell computed there is not computed again.
        yield f"{tuned.dataset}-bp", tuned, {}
        yield f"{tuned.dataset}-bp-fixed", tuned.replace(rho=(1.0,) * 3), {}


def pairs(records: Records) -> dict[tuple[str, int], tuple[list[Record], list[Record]]]:
    """(data set, width) → tuned and fixed records, where there are both."""
    found = groups(records, lambda record: (record.cell.setup.dataset, record.cell.setup.hidden[0]))
    split = {
        key: ([r for r in chosen if r.cell.setup.rho is None], [r for r in chosen if r.cell.setup.rho is not None])
        for key, chosen in found.items()
    }
    return {key: both for key, both in split.items() if all(both)}


def loss(tuned: Records, fixed: Records) -> float:
    """How much larger the error of the fixed setting is, in percent of the tuned one."""
    best, other = final(tuned, "test_error"), final(fixed, "test_error")
    assert best is not None
    assert other is not None
    return 100 * (other.mean / best.mean - 1) if best.mean else 0.0


def table(records: Records) -> str:
    head = ["data", "width", "tuned", "ρ = 1, α = 0.8", "relative loss (%)", "verdict"]
    rows = []
    for (dataset, width), (tuned, fixed) in pairs(records).items():
        lost = loss(tuned, fixed)
        errors = finals(tuned, "test_error") + finals(fixed, "test_error")
        rows.append([dataset, str(width), *errors, f"{lost:.1f}", "holds" if lost <= CLAIM else "does not hold"])
    return page(
        "One setting for everything",
        records,
        f"Test error (%) of BP, point-wise, after the last epoch. The paper: a loss of no more than about {CLAIM:g} %.",
        markdown(head, rows),
    )


def plot(records: Records) -> Figure:
    figure, (axes,) = sheet("Loss by ρ = 1 and α = 0.8 everywhere, BP", records)
    found = pairs(records)
    names = [f"{dataset}\n{width}" for dataset, width in found]
    axes.bar(names, [loss(*both) for both in found.values()], color=LIGHT[0])
    axes.axhline(CLAIM, linestyle=":", color=LIGHT[4], label="the paper's bound")
    axes.tick_params(axis="x", labelsize=6, rotation=30)
    finish(axes, "", "relative loss of test error (%)")
    return figure


EXPERIMENT = Experiment("fixed-hyperparameters", SIZES, grid, table, plot, datasets_beside=True)
