"""The ArgMax output in the paper's two versions and exactly: the paper's Fig. "argmax".

Fashion-MNIST, 2 hidden layers of 101 units, batch size 128, BP below. The paper sees no difference between its two
versions. The exact one takes a second for a mini-batch, so the three are compared on a small part of the data, beside
the two on all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cavity.experiments.experiment import Cell, Experiment, Record
from cavity.experiments.scale import Request, Size, smoke
from cavity.experiments.select import final, train_cell, where
from cavity.experiments.setup import Setup
from cavity.experiments.table import markdown, number, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"sampled": "version 1 (sampled)", "pairwise": "version 2 (pairwise)", "exact": "exact"}
#: Samples and epochs of the comparison with the exact output.
PART = {"samples": (3000, 10000), "epochs": 10}
SIZES = {
    "smoke": smoke(part={"samples": (128, 100), "epochs": 1}),
    "laptop": Size(30, 1, ("fashion-mnist",), 101, options={"part": PART}),
    "paper": Size(100, 5, ("fashion-mnist",), 101, options={"part": PART}),
}


def cells(request: Request) -> list[Cell]:
    size = request.size(SIZES)
    part = size.option("part")
    found = []
    for seed in range(size.seeds):
        for dataset in size.datasets:
            base = Setup("bp", dataset, (size.width,) * 2, size.epochs, seed, samples=size.samples)
            small = base.replace(samples=part["samples"], epochs=part["epochs"])
            grid = [("", base, ("sampled", "pairwise")), ("-part", small, tuple(TITLES))]
            found += [
                Cell(f"{dataset}-{output}{word}", setup.replace(output=output), request.scale)
                for word, setup, outputs in grid
                for output in outputs
            ]
    return found


def parts(records: Sequence[Record]) -> list[tuple[int, int] | None]:
    """The sizes of training data there are, the whole of it first."""
    return sorted({r.cell.setup.samples for r in records}, key=lambda part: -part[0] if part else -float("inf"))


def words(part: tuple[int, int] | None) -> str:
    return "all" if part is None else str(part[0])


def table(records: Sequence[Record]) -> str:
    head = ["output", "training samples", "epochs", "seeds", "test", "test, Bayesian", "train", "NLL", "ECE"]
    rows = []
    for part in parts(records):
        for output, title in TITLES.items():
            chosen = where(records, samples=part, output=output)
            if chosen:
                values = [number(final(chosen, name)) for name in ("test_error", "test_error_bayes", "train_error")]
                values += [number(final(chosen, name), 3) for name in ("test_nll", "test_ece")]
                rows.append([title, words(part), str(chosen[0].cell.setup.epochs), str(len(chosen)), *values])
    return page(
        "ArgMax outputs",
        records,
        "Errors (%) after the last epoch. The paper: a negligible difference between its two versions.",
        markdown(head, rows),
    )


def plot(records: Sequence[Record]) -> Figure:
    from cavity.experiments.plots import epochs_band, finish, sheet
    from cavity.report.palette import LIGHT

    there = parts(records)
    figure, panels = sheet("ArgMax outputs, BP, 2 hidden layers", records, columns=len(there))
    for part, axes in zip(there, panels, strict=True):
        for place, (output, title) in enumerate(TITLES.items()):
            chosen = where(records, samples=part, output=output)
            if chosen:
                epochs_band(axes, chosen, "test_error", f"{title}, test", color=LIGHT[place])
                epochs_band(axes, chosen, "train_error", f"{title}, training", color=LIGHT[place], linestyle=":")
        finish(axes, "epoch", "error (%)", f"training samples: {words(part)}")
    return figure


EXPERIMENT = Experiment("argmax-versions", cells, train_cell, table, plot)
