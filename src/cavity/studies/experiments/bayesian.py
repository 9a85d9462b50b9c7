"""Point-wise and Bayesian errors on two-class MNIST, for both panels of the paper's Fig. "bayes_main".

2 hidden layers of 101 units, batch size 128 (10 for EBP), α = 0.8; BP with ρ = (1.0001, 1.0001, 0.9) for the point-wise
error and ρ = (0.9999, 0.9999, 0.9), which keeps the weights from polarising, for the Bayesian one (appendix,
"Architectures"); the gradient method uses Adam (appendix, "SGD implementation"). Every run measures both errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from cavity.studies.experiments.experiment import Cell, Experiment, Record
from cavity.studies.experiments.scale import Request, Size, smoke
from cavity.studies.experiments.select import by_variant, final, train_cell
from cavity.studies.experiments.setup import Setup
from cavity.studies.experiments.table import markdown, number, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINT_RHO, BAYES_RHO = (1.0001, 1.0001, 0.9), (0.9999, 0.9999, 0.9)
#: The paper reports numerical problems of EBP with larger batches.
EBP_BATCH = 10
SIZES = {
    "smoke": smoke(two_class=True),
    "laptop": Size(30, 2, ("mnist-two-class",), 101),
    "paper": Size(100, 5, ("mnist-two-class",), 101),
}
BP_POINT, BP_BAYES, EBP, GRADIENT = "BP, rho 1.0001", "BP, rho 0.9999", "EBP", "gradient, Adam"
COLOURS = {BP_POINT: "bp", BP_BAYES: "amp", EBP: "ebp", GRADIENT: "sgd"}


def cells(request: Request, weights: str, gradient: str) -> list[Cell]:
    """BP with both ρ, the gradient method, and EBP, for each seed."""
    size = request.size(SIZES)
    found = []
    for seed in range(size.seeds):
        for dataset in size.datasets:
            base = Setup("bp", dataset, (size.width,) * 2, size.epochs, seed, weights=weights, samples=size.samples)
            variants = {
                BP_POINT: ("bp-point", base.replace(rho=POINT_RHO)),
                BP_BAYES: ("bp-bayes", base.replace(rho=BAYES_RHO)),
                GRADIENT: (gradient, base.replace(method=gradient)),
                EBP: ("ebp", base.replace(method="ebp", batch_size=EBP_BATCH)),
            }
            for name, (word, setup) in variants.items():
                found.append(Cell(f"{dataset}-{weights}-{word}", setup, request.scale, {"variant": name}))
    return found


def table(records: Sequence[Record], title: str) -> str:
    """Errors of each variant, and whether the Bayesian one is smaller than the point-wise one of the same run."""
    head = ["method", "seeds", "point-wise", "Bayesian", "Bayesian better", "NLL", "ECE", "train, point-wise"]
    rows = []
    for name, chosen in by_variant(records, COLOURS).items():
        point, bayes = final(chosen, "test_error"), final(chosen, "test_error_bayes")
        better = "–"
        if point is not None and bayes is not None:
            wins = [r.result["final"]["test_error_bayes"] < r.result["final"]["test_error"] for r in chosen]
            better = f"{sum(wins)} of {len(wins)}"
        others = [number(final(chosen, "test_nll"), 4), number(final(chosen, "test_ece"), 4)]
        rows.append([name, str(len(chosen)), number(point), number(bayes), better, *others])
        rows[-1].append(number(final(chosen, "train_error"), 3))
    return page(
        title,
        records,
        "Errors (%) after the last epoch. The paper shows curves on two-class MNIST without numbers, and says that "
        "Bayesian predictions are better than point-wise ones.",
        markdown(head, rows),
    )


def plot(records: Sequence[Record], title: str) -> Figure:
    """Test error against epochs, solid point-wise and dashed Bayesian."""
    from cavity.studies.experiments.plots import COLOURS as METHOD_COLOURS
    from cavity.studies.experiments.plots import epochs_band, finish, sheet

    figure, (axes,) = sheet(title, records)
    last: list[float] = []
    for name, chosen in by_variant(records, COLOURS).items():
        colour = METHOD_COLOURS[COLOURS[name]]
        epochs_band(axes, chosen, "test_error", f"{name}, point-wise", color=colour)
        epochs_band(axes, chosen, "test_error_bayes", f"{name}, Bayesian", color=colour, linestyle="--")
        last += [record.result["final"]["test_error"] for record in chosen]
    axes.set_ylim(0, 2.5 * sorted(last)[len(last) // 2])
    finish(axes, "epoch", "test error (%)")
    return figure


def experiment(name: str, weights: str, gradient: str, title: str) -> Experiment:
    """One panel: a kind of weights, and the gradient method that trains it."""
    return Experiment(
        name,
        partial(cells, weights=weights, gradient=gradient),
        train_cell,
        partial(table, title=title),
        partial(plot, title=title),
    )
