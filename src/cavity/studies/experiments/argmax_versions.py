"""The paper's two versions of the ArgMax output, and the exact one: the paper's Fig. "argmax".

Fashion-MNIST, 2 hidden layers of 101 units, batch size 128, BP below. The paper finds no difference between its
two versions.
"""

from __future__ import annotations

from cavity.report.palette import LIGHT
from cavity.studies.experiments import Size, smoke
from cavity.studies.experiments.experiment import Experiment, Grid, Records
from cavity.studies.experiments.plots import Figure, epochs_band, finish, sheet
from cavity.studies.experiments.setup import setups
from cavity.studies.experiments.table import by, finals, markdown, page

TITLES = {"sampled": "version 1 (sampled)", "pairwise": "version 2 (pairwise)", "exact": "exact"}
SIZES = {
    "smoke": smoke(),
    "laptop": Size(20, 1, ("fashion-mnist",), 101),
    "paper": Size(100, 5, ("fashion-mnist",), 101),
}


def grid(size: Size) -> Grid:
    return [(f"{s.dataset}-{output}", s.replace(output=output), {}) for s in setups(size) for output in TITLES]


def table(records: Records) -> str:
    rows = []
    for output, chosen in by(records, "output", TITLES).items():
        values = finals(chosen, "test_error", "test_error_bayes", "train_error", "test_nll", "test_ece")
        rows.append([TITLES[output], str(chosen[0].cell.setup.epochs), str(len(chosen)), *values])
    return page(
        "ArgMax outputs",
        records,
        "Errors (%) after the last epoch. The paper: a negligible difference between its two versions.",
        markdown(["output", "epochs", "seeds", "test", "test, Bayesian", "train", "NLL", "ECE"], rows),
    )


def plot(records: Records) -> Figure:
    figure, panels = sheet("ArgMax outputs, BP, 2 hidden layers", records, 2)
    colours = dict(zip(TITLES, LIGHT, strict=False))
    for axes, name, label in zip(panels, ("test_error", "train_error"), ("test", "training"), strict=True):
        for output, chosen in by(records, "output", TITLES).items():
            epochs_band(axes, chosen, name, TITLES[output], color=colours[output])
        finish(axes, "epoch", f"{label} error (%)")
    return figure


EXPERIMENT = Experiment("argmax-versions", SIZES, grid, table, plot)
