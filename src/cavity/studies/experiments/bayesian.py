"""Point-wise and Bayesian errors on two-class MNIST, for both panels of the paper's Fig. "bayes_main".

2 hidden layers of 101 units, batch size 128 (10 for EBP), α = 0.8; BP with ρ = (1.0001, 1.0001, 0.9) for the point-wise
error and ρ = (0.9999, 0.9999, 0.9), which keeps the weights from polarising, for the Bayesian one (appendix,
"Architectures"); the gradient method uses Adam (appendix, "SGD implementation"). Every run measures both errors.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from cavity.studies.experiments import Size, smoke
from cavity.studies.experiments.experiment import Experiment, Grid, Records
from cavity.studies.experiments.plots import COLOURS, Figure, epochs_band, finish, sheet
from cavity.studies.experiments.setup import setups
from cavity.studies.experiments.table import by, final, finals, markdown, number, page

POINT_RHO, BAYES_RHO = (1.0001, 1.0001, 0.9), (0.9999, 0.9999, 0.9)
#: The paper reports numerical problems of EBP with larger batches.
EBP_BATCH = 10
SIZES = {
    "smoke": smoke(two_class=True),
    "laptop": Size(30, 2, ("mnist-two-class",), 101),
    "paper": Size(100, 5, ("mnist-two-class",), 101),
}
BP_POINT, BP_BAYES, EBP, GRADIENT = "BP, rho 1.0001", "BP, rho 0.9999", "EBP", "gradient, Adam"
#: Each variant has the colour of a method.
LIKE = {BP_POINT: "bp", BP_BAYES: "amp", EBP: "ebp", GRADIENT: "sgd"}


def grid(size: Size, weights: str, gradient: str) -> Grid:
    """BP with both ρ, the gradient method, and EBP, for each seed."""
    variants: dict[str, tuple[str, dict[str, Any]]] = {
        BP_POINT: ("bp-point", {"rho": POINT_RHO}),
        BP_BAYES: ("bp-bayes", {"rho": BAYES_RHO}),
        GRADIENT: (gradient, {"method": gradient}),
        EBP: ("ebp", {"method": "ebp", "batch_size": EBP_BATCH}),
    }
    for base in setups(size):
        for name, (word, values) in variants.items():
            setup = base.replace(weights=weights, **values)
            yield f"{base.dataset}-{weights}-{word}", setup, {"variant": name}


def table(records: Records, title: str) -> str:
    """Errors of each variant, and whether the Bayesian one is smaller than the point-wise one of the same run."""
    head = ["method", "seeds", "point-wise", "Bayesian", "Bayesian better", "NLL", "ECE", "train, point-wise"]
    rows = []
    for name, chosen in by(records, "variant", LIKE).items():
        better = "–"
        if final(chosen, "test_error_bayes") is not None:
            wins = [r.result["final"]["test_error_bayes"] < r.result["final"]["test_error"] for r in chosen]
            better = f"{sum(wins)} of {len(wins)}"
        errors = finals(chosen, "test_error", "test_error_bayes")
        calibration = finals(chosen, "test_nll", "test_ece", digits=4)
        training = number(final(chosen, "train_error"), 3)
        rows.append([name, str(len(chosen)), *errors, better, *calibration, training])
    return page(
        title,
        records,
        "Errors (%) after the last epoch. The paper shows curves on two-class MNIST without numbers, and says that "
        "Bayesian predictions are better than point-wise ones.",
        markdown(head, rows),
    )


def plot(records: Records, title: str) -> Figure:
    """Test error against epochs, solid point-wise and dashed Bayesian."""
    figure, (axes,) = sheet(title, records)
    last: list[float] = []
    for name, chosen in by(records, "variant", LIKE).items():
        colour = COLOURS[LIKE[name]]
        epochs_band(axes, chosen, "test_error", f"{name}, point-wise", color=colour)
        epochs_band(axes, chosen, "test_error_bayes", f"{name}, Bayesian", color=colour, linestyle="--")
        last += [record.result["final"]["test_error"] for record in chosen]
    axes.set_ylim(0, 2.5 * sorted(last)[len(last) // 2])
    finish(axes, "epoch", "test error (%)")
    return figure


def experiment(name: str, weights: str, gradient: str) -> Experiment:
    """One panel: a kind of weights, and the gradient method that trains it."""
    points, title = partial(grid, weights=weights, gradient=gradient), f"Bayesian and point-wise error, {name} weights"
    return Experiment(f"bayesian-{name}", SIZES, points, partial(table, title=title), partial(plot, title=title))


BINARY, CONTINUOUS = experiment("binary", "binary", "binarynet-adam"), experiment("continuous", "gaussian", "adam")
