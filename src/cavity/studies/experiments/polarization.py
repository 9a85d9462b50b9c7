"""Polarisation and overlaps of each layer during training: the paper's Fig. "polarization".

Fashion-MNIST, 2 hidden layers of 501 units, batch size 128, ρ = (1.0001, 1.0001, 0.9), α = 0.8. In the
paper, hidden layers polarise towards q₀ = 1, the last one does not, and overlaps stay well below 1.
"""

from __future__ import annotations

from cavity.report.palette import LIGHT
from cavity.studies.experiments import Size, smoke
from cavity.studies.experiments.experiment import Experiment, Grid, Records
from cavity.studies.experiments.plots import Figure, band, epochs_band, finish, sheet
from cavity.studies.experiments.setup import setups
from cavity.studies.experiments.table import markdown, measured, number, page

SIZES = {
    "smoke": smoke(),
    "laptop": Size(30, 1, ("fashion-mnist",), 501),
    "paper": Size(100, 5, ("fashion-mnist",), 501),
}


def grid(size: Size) -> Grid:
    return [(f"{setup.dataset}-bp", setup, {}) for setup in setups(size)]


def layer_curves(records: Records, name: str) -> list[list[list[float]]]:
    """For each layer, the curve of each record."""
    layers = range(len(records[0].result["curves"][name][0]))
    return [[[values[layer] for values in record.result["curves"][name]] for record in records] for layer in layers]


def table(records: Records) -> str:
    epochs = min(len(record.result["curves"]["polarization"]) for record in records)
    columns = {
        f"{title} layer {layer}": curves
        for title, name in (("q0", "polarization"), ("q_ab", "overlap"))
        for layer, curves in enumerate(layer_curves(records, name), start=1)
    }
    rows = [
        [str(epoch), *(number(measured(curve[epoch - 1] for curve in curves), 3) for curves in columns.values())]
        for epoch in sorted({1, max(1, epochs // 4), max(1, epochs // 2), epochs})
    ]
    return page(
        "Polarisation and overlaps",
        records,
        "The paper: hidden layers go towards q0 = 1, the last layer stays well below 1, overlaps stay small.",
        markdown(["epoch", *columns], rows),
    )


def plot(records: Records) -> Figure:
    figure, (errors, polarizations, overlaps) = sheet("Polarisation and overlaps, BP", records, 3)
    epochs_band(errors, records, "train_error", "training", color=LIGHT[2])
    epochs_band(errors, records, "test_error", "test", color=LIGHT[0])
    epochs_band(errors, records, "test_error_bayes", "test, Bayesian", color=LIGHT[0], linestyle="--")
    finish(errors, "epoch", "error (%)")
    for axes, name, label in ((polarizations, "polarization", "⟨q₀⟩"), (overlaps, "overlap", "⟨q_ab⟩")):
        for layer, curves in enumerate(layer_curves(records, name)):
            band(axes, curves, f"layer {layer + 1}", color=LIGHT[layer])
        finish(axes, "epoch", label)
    return figure


EXPERIMENT = Experiment("polarization", SIZES, grid, table, plot)
