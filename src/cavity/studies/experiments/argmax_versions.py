"""The paper's two versions of the ArgMax output, and the exact one: the paper's Fig. "argmax".

Fashion-MNIST, 2 hidden layers of 101 units, batch size 128, BP below. The paper finds no difference between its
two versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cavity.studies.experiments.experiment import Cell, Experiment, Record
from cavity.studies.experiments.scale import Request, Size, smoke
from cavity.studies.experiments.select import final, train_cell, where
from cavity.studies.experiments.setup import Setup
from cavity.studies.experiments.table import markdown, number, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"sampled": "version 1 (sampled)", "pairwise": "version 2 (pairwise)", "exact": "exact"}
SIZES = {
    "smoke": smoke(),
    "laptop": Size(20, 1, ("fashion-mnist",), 101),
    "paper": Size(100, 5, ("fashion-mnist",), 101),
}


def cells(request: Request) -> list[Cell]:
    size = request.size(SIZES)
    return [
        Cell(
            f"{dataset}-{output}",
            Setup("bp", dataset, (size.width,) * 2, size.epochs, seed, samples=size.samples, output=output),
            request.scale,
        )
        for seed in range(size.seeds)
        for dataset in size.datasets
        for output in TITLES
    ]


def table(records: Sequence[Record]) -> str:
    rows = []
    for output, title in TITLES.items():
        chosen = where(records, output=output)
        if chosen:
            values = [number(final(chosen, name)) for name in ("test_error", "test_error_bayes", "train_error")]
            values += [number(final(chosen, name), 3) for name in ("test_nll", "test_ece")]
            rows.append([title, str(chosen[0].cell.setup.epochs), str(len(chosen)), *values])
    return page(
        "ArgMax outputs",
        records,
        "Errors (%) after the last epoch. The paper: a negligible difference between its two versions.",
        markdown(["output", "epochs", "seeds", "test", "test, Bayesian", "train", "NLL", "ECE"], rows),
    )


def plot(records: Sequence[Record]) -> Figure:
    from cavity.report.palette import LIGHT
    from cavity.studies.experiments.plots import epochs_band, finish, sheet

    figure, panels = sheet("ArgMax outputs, BP, 2 hidden layers", records, columns=2)
    for axes, name, label in zip(panels, ("test_error", "train_error"), ("test", "training"), strict=True):
        for place, (output, title) in enumerate(TITLES.items()):
            chosen = where(records, output=output)
            if chosen:
                epochs_band(axes, chosen, name, title, color=LIGHT[place])
        finish(axes, "epoch", f"{label} error (%)")
    return figure


EXPERIMENT = Experiment("argmax-versions", cells, train_cell, table, plot)
