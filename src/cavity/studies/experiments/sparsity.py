"""Test error against sparsity: the paper's Fig. "architecture", right panel, and section "Sparse layers".

MNIST, 2 hidden layers of 101 units, batch size 128, a fixed random mask on the weights of every layer. The paper finds
BP and MF better than BinaryNet and AMP worse. A masked weight must have mean 0 and variance 0; with variance 1, AMP's
correction terms would include noise that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cavity.studies.experiments.experiment import Cell, Experiment, Record
from cavity.studies.experiments.scale import Request, Size, smoke
from cavity.studies.experiments.select import final, train_cell, where
from cavity.studies.experiments.setup import TITLES, Setup
from cavity.studies.experiments.table import markdown, number, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("bp", "amp", "mf", "binarynet")
#: Fractions of zeroed weights, 0 to 0.9 as in the paper.
SPARSITIES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9)
SIZES = {
    "smoke": smoke(sparsities=(0.0, 0.5)),
    "laptop": Size(20, 1, ("mnist",), 101, options={"sparsities": (0.0, 0.3, 0.5, 0.7, 0.9)}),
    "paper": Size(100, 5, ("mnist",), 101, options={"sparsities": SPARSITIES}),
}


def cells(request: Request) -> list[Cell]:
    size = request.size(SIZES)
    return [
        Cell(
            f"{dataset}-{method}-sparsity-{sparsity:g}",
            Setup(
                method,
                dataset,
                (size.width,) * 2,
                size.epochs,
                seed,
                density=round(1 - sparsity, 6),
                samples=size.samples,
            ),
            request.scale,
            {"sparsity": sparsity},
        )
        for seed in range(size.seeds)
        for dataset in size.datasets
        # From sparse to dense: the most interesting cells first.
        for sparsity in reversed(size.option("sparsities"))
        for method in METHODS
    ]


def sparsities(records: Sequence[Record]) -> list[float]:
    return sorted({record.cell.options["sparsity"] for record in records})


def _chosen(records: Sequence[Record], method: str, sparsity: float) -> list[Record]:
    return [record for record in where(records, method=method) if record.cell.options["sparsity"] == sparsity]


def table(records: Sequence[Record]) -> str:
    return page(
        "Sparse layers",
        records,
        "Test error (%), point-wise, after the last epoch. The paper shows a figure without numbers: BP and MF better "
        "than BinaryNet up to sparsity 0.9, AMP worse.",
        _errors(records),
        "For the same runs: Bayesian test error (%), negative log-likelihood and expected calibration error.",
        _calibration(records),
    )


def _errors(records: Sequence[Record]) -> str:
    head = ["sparsity", *(TITLES[method] for method in METHODS), "AMP against BinaryNet"]
    rows = []
    for sparsity in sparsities(records):
        errors = {method: final(_chosen(records, method, sparsity), "test_error") for method in METHODS}
        amp, rival = errors["amp"], errors["binarynet"]
        judgement = "–"
        if amp is not None and rival is not None:
            judgement = "better" if amp.mean < rival.mean else "worse"
        rows.append([f"{sparsity:g}", *(number(errors[method]) for method in METHODS), judgement])
    return markdown(head, rows)


def _calibration(records: Sequence[Record]) -> str:
    words = {"test_error_bayes": ("Bayesian", 2), "test_nll": ("NLL", 3), "test_ece": ("ECE", 3)}
    head = ["sparsity", *(f"{TITLES[method]} {word}" for method in METHODS for word, _ in words.values())]
    rows = [
        [
            f"{sparsity:g}",
            *(
                number(final(_chosen(records, method, sparsity), name), digits)
                for method in METHODS
                for name, (_, digits) in words.items()
            ),
        ]
        for sparsity in sparsities(records)
    ]
    return markdown(head, rows)


def plot(records: Sequence[Record]) -> Figure:
    """Test accuracy against sparsity, as in the paper."""
    from cavity.studies.experiments.plots import COLOURS, finish, sheet

    figure, (axes,) = sheet("Sparse layers, 2 hidden layers", records)
    for method in METHODS:
        points = [(s, final(_chosen(records, method, s), "test_error")) for s in sparsities(records)]
        there = [(s, error) for s, error in points if error is not None]
        if there:
            axes.errorbar(
                [s for s, _ in there],
                [100 - error.mean for _, error in there],
                [error.std or 0.0 for _, error in there],
                marker="o",
                markersize=3,
                color=COLOURS[method],
                label=TITLES[method],
            )
    finish(axes, "sparsity", "test accuracy (%)")
    return figure


EXPERIMENT = Experiment("sparsity", cells, train_cell, table, plot)
