"""Distribution of the initial magnetisations m = tanh(ε·𝒩(0, 1)) for several ε: the paper's Fig. "init".

The exact density p(m) = 𝒩(atanh(m)/ε; 0, 1)/(ε(1 − m²)) is drawn beside the histogram of a network's means.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch

from cavity.core.network import Network
from cavity.report.palette import LIGHT
from cavity.studies.experiments import Progress, Size, smoke
from cavity.studies.experiments.experiment import Cell, Experiment, Grid, Records
from cavity.studies.experiments.plots import Figure, finish, sheet
from cavity.studies.experiments.setup import build, load, setups
from cavity.studies.experiments.table import by, markdown, page

BINS = 50
FULL = Size(1, 1, ("fashion-mnist",), 501, options={"epsilons": (0.1, 0.5, 1.0, 1.5, 3.0)})
SIZES = {"smoke": smoke(epochs=1, epsilons=(0.5, 1.5)), "laptop": FULL, "paper": FULL}


def grid(size: Size) -> Grid:
    for base in setups(size):
        for epsilon in size.options["epsilons"]:
            yield f"epsilon-{epsilon:g}", base.replace(epochs=1, init=epsilon), {}


def result(cell: Cell, folder: Path, progress: Progress) -> dict[str, Any]:
    """A histogram of the untrained first layer's means, as a density, and its polarisation."""
    net = build(cell.setup, load(cell.setup)).net
    assert isinstance(net, Network)
    m = net.weighted()[0].mean
    counts = torch.histc(m, bins=BINS, min=-1.0, max=1.0)
    density = (counts / counts.sum() * BINS / 2).tolist()
    progress(1, 1)
    return {"density": [round(value, 5) for value in density], "polarization": round(float(m.square().mean()), 5)}


def density(m: float, epsilon: float) -> float:
    """p(m) of m = tanh(ε·𝒩(0, 1))."""
    h = math.atanh(m) / epsilon
    return math.exp(-0.5 * h * h) / math.sqrt(2 * math.pi) / (epsilon * (1 - m * m))


def expected_polarization(epsilon: float, points: int = 4001, reach: float = 8.0) -> float:
    """E tanh²(ε z) by the trapezoidal rule."""
    step = 2 * reach / (points - 1)
    places = (place * step - reach for place in range(points))
    return step * sum(math.tanh(epsilon * z) ** 2 * math.exp(-0.5 * z * z) for z in places) / math.sqrt(2 * math.pi)


def table(records: Records) -> str:
    rows = [
        [f"{epsilon:g}", f"{record.result['polarization']:.4f}", f"{expected_polarization(epsilon):.4f}"]
        for epsilon, chosen in by(records, "init").items()
        for record in chosen
    ]
    return page(
        "Initial magnetisations",
        records,
        "Polarisation q0 = E m² of the first layer before training. The paper shows histograms: the larger ε, the more "
        "weights near ±1.",
        markdown(["ε", "ours", "E tanh²(ε z)"], rows),
    )


def plot(records: Records) -> Figure:
    figure, (axes,) = sheet("Initial distribution of the magnetisations", records)
    edges = [-1 + place * 2 / BINS for place in range(BINS + 1)]
    middles = [-1 + (place + 0.5) * 2 / BINS for place in range(BINS)]
    for number, record in enumerate(sorted(records, key=lambda record: record.cell.setup.init)):
        epsilon, colour = record.cell.setup.init, LIGHT[number % len(LIGHT)]
        axes.stairs(record.result["density"], edges, color=colour, label=f"ε = {epsilon:g}")
        axes.plot(middles, [density(m, epsilon) for m in middles], ":", color=colour, linewidth=1)
    axes.set_ylim(0, 3)
    finish(axes, "magnetisation m", "density; dotted: exact")
    return figure


EXPERIMENT = Experiment("initialization", SIZES, grid, table, plot, result)
