"""Increase of the training error when a fraction of the weights is flipped: the paper's Fig. "bayes", "Local energy".

Two-class MNIST, 2 hidden layers of 101 units, BP and BinaryNet in their point-wise configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from cavity.studies.experiments.experiment import Cell, Experiment, Record
from cavity.studies.experiments.scale import Request, Size, smoke
from cavity.studies.experiments.select import where
from cavity.studies.experiments.setup import TITLES, Setup
from cavity.studies.experiments.table import markdown, measured, number, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from cavity.studies.experiments.setup import AnyTrainer
    from cavity.studies.experiments.training import Progress

METHODS = ("bp", "binarynet")
FRACTIONS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2)
SIZES = {
    "smoke": smoke(two_class=True, fractions=(0.0, 0.1, 0.2), repeats=2),
    "laptop": Size(30, 2, ("mnist-two-class",), 101, options={"fractions": FRACTIONS, "repeats": 10}),
    "paper": Size(100, 5, ("mnist-two-class",), 101, options={"fractions": FRACTIONS, "repeats": 20}),
}


def cells(request: Request) -> list[Cell]:
    size = request.size(SIZES)
    options = {"fractions": list(size.option("fractions")), "repeats": size.option("repeats")}
    return [
        Cell(
            f"{dataset}-{method}",
            Setup(method, dataset, (size.width,) * 2, size.epochs, seed, samples=size.samples),
            request.scale,
            options,
        )
        for seed in range(size.seeds)
        for dataset in size.datasets
        for method in METHODS
    ]


def point_weights(trainer: AnyTrainer) -> list[Tensor]:
    """The binary weights (outputs, inputs) of each layer that the network predicts with."""
    from cavity.core.network import Network

    net = trainer.net
    return [layer.point() for layer in net.weighted()] if isinstance(net, Network) else net.point_weights()


def preactivations(weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """Last pre-activations (samples, outputs) of a network of sign units without biases; sign(0) = +1."""
    import torch

    for w in weights[:-1]:
        x = torch.copysign(torch.ones(()), x @ w.T + 0.0)
    return x @ weights[-1].T


def result(cell: Cell, folder: Path, progress: Progress) -> dict[str, Any]:
    """Train, then flip random weights in all layers."""
    import torch

    from cavity.analysis.landscape import local_energy
    from cavity.analysis.metrics import percent_wrong, train_sample
    from cavity.studies.experiments.training import summary, trained

    trainer, dataset = trained(cell.setup, folder, progress)
    x, y = train_sample(dataset.x_train, dataset.y_train, 10_000)
    output = trainer.net.output

    def error(weights: Sequence[Tensor]) -> float:
        return percent_wrong(output.predict(preactivations(weights, x)), y)

    weights = point_weights(trainer)
    rises = local_energy(
        error,
        weights,
        cell.options["fractions"],
        repeats=cell.options["repeats"],
        generator=torch.Generator().manual_seed(cell.setup.seed),
    )
    energies = [round(float(value), 4) for value in rises.mean(dim=1)]
    return {**summary(trainer, dataset), "start": round(error(weights), 4), "local_energy": energies}


def _by_fraction(chosen: Sequence[Record]) -> dict[float, list[float]]:
    fractions = chosen[0].cell.options["fractions"]
    return {p: [record.result["local_energy"][place] for record in chosen] for place, p in enumerate(fractions)}


def table(records: Sequence[Record]) -> str:
    there = [method for method in METHODS if where(records, method=method)]
    curves = {method: _by_fraction(where(records, method=method)) for method in there}
    fractions = list(curves[there[0]])
    rows = [[f"{p:g}", *(number(measured(curves[method].get(p, []))) for method in there)] for p in fractions]
    starts = ", ".join(
        f"{TITLES[method]} {mean(record.result['start'] for record in where(records, method=method)):.3f}"
        for method in there
    )
    return page(
        "Local energy",
        records,
        "Rise of the training error (percentage points, on 10,000 samples) when a fraction of all weights is flipped. "
        f"Training errors before: {starts} %. The paper shows curves without numbers: both rise slowly and are convex.",
        markdown(["fraction flipped", *(TITLES[method] for method in there)], rows),
    )


def plot(records: Sequence[Record]) -> Figure:
    from cavity.studies.experiments.plots import COLOURS, band, finish, sheet

    figure, (axes,) = sheet("Local energy, 2 hidden layers", records)
    for method in METHODS:
        chosen = where(records, method=method)
        if chosen:
            energies = [record.result["local_energy"] for record in chosen]
            fractions = chosen[0].cell.options["fractions"]
            band(axes, fractions, energies, TITLES[method], color=COLOURS[method], marker="o", markersize=3)
    finish(axes, "fraction of flipped weights", "rise of the training error (%)")
    return figure


EXPERIMENT = Experiment("local-energy", cells, result, table, plot)
