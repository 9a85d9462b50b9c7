"""Test error against sparsity: the paper's Fig. "architecture", right panel, and section "Sparse layers".

MNIST, 2 hidden layers of 101 units, batch size 128, a fixed random mask on the weights of every layer. The paper finds
BP and MF better than BinaryNet and AMP worse. A masked weight must have mean 0 and variance 0; with variance 1, AMP's
correction terms would include noise that does not exist.
"""

from __future__ import annotations

from itertools import product

from cavity.studies.experiments import Size, smoke
from cavity.studies.experiments.experiment import Experiment, Grid, Records
from cavity.studies.experiments.plots import COLOURS, Figure, finish, sheet
from cavity.studies.experiments.setup import TITLES, setups
from cavity.studies.experiments.table import by, final, finals, markdown, number, page, where

METHODS = ("bp", "amp", "mf", "binarynet")
#: Fractions of zeroed weights, 0 to 0.9 as in the paper.
SPARSITIES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9)
SIZES = {
    "smoke": smoke(sparsities=(0.0, 0.5)),
    "laptop": Size(20, 1, ("mnist",), 101, options={"sparsities": (0.0, 0.3, 0.5, 0.7, 0.9)}),
    "paper": Size(100, 5, ("mnist",), 101, options={"sparsities": SPARSITIES}),
}
CALIBRATION = {"test_error_bayes": "Bayesian", "test_nll": "NLL", "test_ece": "ECE"}


def grid(size: Size) -> Grid:
    for base in setups(size):
        # From sparse to dense: the most interesting cells first.
        for sparsity, method in product(reversed(size.options["sparsities"]), METHODS):
            setup = base.replace(method=method, density=round(1 - sparsity, 6))
            yield f"{base.dataset}-{method}-sparsity-{sparsity:g}", setup, {"sparsity": sparsity}


def table(records: Records) -> str:
    titles = [TITLES[method] for method in METHODS]
    errors, calibration = [], []
    for sparsity, group in by(records, "sparsity").items():
        chosen = {method: where(group, method=method) for method in METHODS}
        error = {method: final(chosen[method], "test_error") for method in METHODS}
        amp, rival = error["amp"], error["binarynet"]
        judgement = "–"
        if amp is not None and rival is not None:
            judgement = "better" if amp.mean < rival.mean else "worse"
        errors.append([f"{sparsity:g}", *map(number, error.values()), judgement])
        calibration.append([f"{sparsity:g}", *(text for c in chosen.values() for text in finals(c, *CALIBRATION))])
    return page(
        "Sparse layers",
        records,
        "Test error (%), point-wise, after the last epoch. The paper shows a figure without numbers: BP and MF better "
        "than BinaryNet up to sparsity 0.9, AMP worse.",
        markdown(["sparsity", *titles, "AMP against BinaryNet"], errors),
        "For the same runs: Bayesian test error (%), negative log-likelihood and expected calibration error.",
        markdown(["sparsity", *map(" ".join, product(titles, CALIBRATION.values()))], calibration),
    )


def plot(records: Records) -> Figure:
    """Test accuracy against sparsity, as in the paper."""
    figure, (axes,) = sheet("Sparse layers, 2 hidden layers", records)
    for method, chosen in by(records, "method", METHODS).items():
        found = {sparsity: final(group, "test_error") for sparsity, group in by(chosen, "sparsity").items()}
        points = [(sparsity, 100 - error.mean, error.std or 0.0) for sparsity, error in found.items() if error]
        x, means, stds = zip(*points, strict=True)
        axes.errorbar(x, means, stds, marker="o", markersize=3, color=COLOURS[method], label=TITLES[method])
    finish(axes, "sparsity", "test accuracy (%)")
    return figure


EXPERIMENT = Experiment("sparsity", SIZES, grid, table, plot)
