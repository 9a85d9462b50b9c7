"""Increase of the training error when a fraction of the weights is flipped: the paper's Fig. "bayes", "Local energy".

Two-class MNIST, 2 hidden layers of 101 units, BP and BinaryNet in their point-wise configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from cavity.analysis.landscape import local_energy
from cavity.analysis.metrics import percent_wrong, train_sample
from cavity.baselines.trainer import AnyTrainer
from cavity.core.network import Network
from cavity.studies.experiments import Progress, Size, smoke
from cavity.studies.experiments.experiment import Cell, Experiment, Grid, Records
from cavity.studies.experiments.plots import COLOURS, Figure, band, finish, sheet
from cavity.studies.experiments.setup import TITLES, setups, summary, trained
from cavity.studies.experiments.table import by, markdown, measured, number, page

METHODS = ("bp", "binarynet")
FRACTIONS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2)
SIZES = {
    "smoke": smoke(two_class=True, fractions=(0.0, 0.1, 0.2), repeats=2),
    "laptop": Size(30, 2, ("mnist-two-class",), 101, options={"fractions": FRACTIONS, "repeats": 10}),
    "paper": Size(100, 5, ("mnist-two-class",), 101, options={"fractions": FRACTIONS, "repeats": 20}),
}


def grid(size: Size) -> Grid:
    options = {"fractions": list(size.options["fractions"]), "repeats": size.options["repeats"]}
    return [(f"{setup.dataset}-{setup.method}", setup, options) for setup in setups(size, METHODS)]


def point_weights(trainer: AnyTrainer) -> list[Tensor]:
    """The binary weights (outputs, inputs) of each layer that the network predicts with."""
    net = trainer.net
    return [layer.point() for layer in net.weighted()] if isinstance(net, Network) else net.point_weights()


def preactivations(weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """Last pre-activations (samples, outputs) of a network of sign units without biases; sign(0) = +1."""
    for w in weights[:-1]:
        x = torch.copysign(torch.ones(()), x @ w.T + 0.0)
    return x @ weights[-1].T


def result(cell: Cell, folder: Path, progress: Progress) -> dict[str, Any]:
    """Train, then flip random weights in all layers."""
    trainer, dataset = trained(cell.setup, folder, progress)
    x, y = train_sample(dataset.x_train, dataset.y_train, 10_000)
    output = trainer.net.output

    def error(weights: Sequence[Tensor]) -> float:
        return percent_wrong(output.predict(preactivations(weights, x)), y)

    weights = point_weights(trainer)
    generator = torch.Generator().manual_seed(cell.setup.seed)
    rises = local_energy(error, weights, **cell.options, generator=generator)
    energies = [round(float(value), 4) for value in rises.mean(dim=1)]
    return {**summary(trainer, dataset), "start": round(error(weights), 4), "local_energy": energies}


def table(records: Records) -> str:
    there = by(records, "method", METHODS)
    rows = [
        [f"{p:g}", *(number(measured(r.result["local_energy"][place] for r in chosen)) for chosen in there.values())]
        for place, p in enumerate(records[0].cell.options["fractions"])
    ]
    starts = ", ".join(
        f"{TITLES[name]} {mean(r.result['start'] for r in chosen):.3f}" for name, chosen in there.items()
    )
    return page(
        "Local energy",
        records,
        "Rise of the training error (percentage points, on 10,000 samples) when a fraction of all weights is flipped. "
        f"Training errors before: {starts} %. The paper shows curves without numbers: both rise slowly and are convex.",
        markdown(["fraction flipped", *(TITLES[method] for method in there)], rows),
    )


def plot(records: Records) -> Figure:
    figure, (axes,) = sheet("Local energy, 2 hidden layers", records)
    for method, chosen in by(records, "method", METHODS).items():
        energies, fractions = [r.result["local_energy"] for r in chosen], chosen[0].cell.options["fractions"]
        band(axes, energies, TITLES[method], fractions, color=COLOURS[method], marker="o", markersize=3)
    finish(axes, "fraction of flipped weights", "rise of the training error (%)")
    return figure


EXPERIMENT = Experiment("local-energy", SIZES, grid, table, plot, result)
