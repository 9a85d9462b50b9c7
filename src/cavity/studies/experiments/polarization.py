"""Polarisation and overlaps of each layer during training: the paper's Fig. "polarization".

Fashion-MNIST, 2 hidden layers of 501 units, batch size 128, ρ = (1.0001, 1.0001, 0.9), α = 0.8. In the
paper, hidden layers polarise towards q₀ = 1, the last one does not, and overlaps stay well below 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cavity.studies.experiments.experiment import Cell, Experiment, Record
from cavity.studies.experiments.scale import Request, Size, smoke
from cavity.studies.experiments.select import train_cell
from cavity.studies.experiments.setup import Setup
from cavity.studies.experiments.table import markdown, measured, number, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = {
    "smoke": smoke(),
    "laptop": Size(30, 1, ("fashion-mnist",), 501),
    "paper": Size(100, 5, ("fashion-mnist",), 501),
}


def cells(request: Request) -> list[Cell]:
    size = request.size(SIZES)
    return [
        Cell(
            f"{dataset}-bp",
            Setup("bp", dataset, (size.width,) * 2, size.epochs, seed, samples=size.samples),
            request.scale,
        )
        for seed in range(size.seeds)
        for dataset in size.datasets
    ]


def layer_curve(record: Record, name: str, layer: int) -> list[float]:
    return [values[layer] for values in record.result["curves"][name]]


def _layers(records: Sequence[Record]) -> range:
    return range(len(records[0].result["curves"]["polarization"][0]))


def table(records: Sequence[Record]) -> str:
    epochs = min(len(record.result["curves"]["polarization"]) for record in records)
    shown = sorted({1, max(1, epochs // 4), max(1, epochs // 2), epochs})
    layers = _layers(records)
    head = ["epoch", *(f"q0 layer {layer + 1}" for layer in layers), *(f"q_ab layer {layer + 1}" for layer in layers)]
    rows = []
    for epoch in shown:
        values = [
            number(measured(layer_curve(record, name, layer)[epoch - 1] for record in records), 3)
            for name in ("polarization", "overlap")
            for layer in layers
        ]
        rows.append([str(epoch), *values])
    return page(
        "Polarisation and overlaps",
        records,
        "The paper: hidden layers go towards q0 = 1, the last layer stays well below 1, overlaps stay small.",
        markdown(head, rows),
    )


def plot(records: Sequence[Record]) -> Figure:
    from cavity.report.palette import LIGHT
    from cavity.studies.experiments.plots import band, epochs_band, finish, sheet

    figure, (errors, polarizations, overlaps) = sheet("Polarisation and overlaps, BP", records, columns=3)
    epochs_band(errors, records, "train_error", "training", color=LIGHT[2])
    epochs_band(errors, records, "test_error", "test", color=LIGHT[0])
    epochs_band(errors, records, "test_error_bayes", "test, Bayesian", color=LIGHT[0], linestyle="--")
    finish(errors, "epoch", "error (%)")
    for axes, name, label in ((polarizations, "polarization", "⟨q₀⟩"), (overlaps, "overlap", "⟨q_ab⟩")):
        for layer in _layers(records):
            curves = [layer_curve(record, name, layer) for record in records]
            band(axes, range(1, 1 + max(map(len, curves))), curves, f"layer {layer + 1}", color=LIGHT[layer])
        finish(axes, "epoch", label)
    return figure


EXPERIMENT = Experiment("polarization", cells, train_cell, table, plot)
