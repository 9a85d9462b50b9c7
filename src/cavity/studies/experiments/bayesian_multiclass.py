"""When is the Bayesian prediction of ten classes reliably better than the point-wise one? Not in the paper.

Fashion-MNIST, 2 hidden layers of 101 or 501 units, batch size 128, BP. With the paper's ρ_L = 0.9 the last layer
remembers ten mini-batches, so its posterior, and the Bayesian prediction, follow the last few of them. The variants
give it a longer memory (ρ_L), keep the layers below from polarising (ρ), slow its updates (α_L), or damp its field
instead of its mean, as the authors' code does (see ``table_datasets``).
"""

from __future__ import annotations

from typing import NamedTuple

from cavity.report.palette import LIGHT
from cavity.studies.experiments import Size, smoke
from cavity.studies.experiments.experiment import Experiment, Grid, Record, Records
from cavity.studies.experiments.plots import Figure, band, epochs_band, finish, sheet
from cavity.studies.experiments.setup import setups
from cavity.studies.experiments.table import by, markdown, measured, number, page


class Variant(NamedTuple):
    """ρ of the hidden layers; ρ, α and the fraction of the evidence for the last one."""

    rho: float
    last_rho: float
    last_damping: float
    last_evidence: float = 1.0


VARIANTS = {
    "paper": Variant(1.0001, 0.9, 0.8),
    "field damped": Variant(1.0001, 0.98, 0.0, 0.2),
    "alpha_L 0.95": Variant(1.0001, 0.9, 0.95),
    "alpha_L 0.98": Variant(1.0001, 0.9, 0.98),
    "rho_L 0.99": Variant(1.0001, 0.99, 0.8),
    "rho_L 0.999": Variant(1.0001, 0.999, 0.8),
    "rho 0.9999": Variant(0.9999, 0.9, 0.8),
    "rho 0.9999, rho_L 0.99": Variant(0.9999, 0.99, 0.8),
}
SIZES = {
    "smoke": smoke(widths=(21,)),
    "laptop": Size(20, 1, ("fashion-mnist",), options={"widths": (101, 501)}),
    "paper": Size(100, 5, ("fashion-mnist",), options={"widths": (101, 501)}),
}
#: Errors of single epochs are noisy: the table has the mean over this many last ones.
LAST = 5


def grid(size: Size) -> Grid:
    for base in setups(size, widths=size.options["widths"]):
        for name, (rho, last_rho, last_damping, last_evidence) in VARIANTS.items():
            damping = 0.8, 0.8, last_damping
            setup = base.replace(rho=(rho, rho, last_rho), damping=damping, last_evidence=last_evidence)
            yield f"{base.dataset}-rho-{rho:g}-{last_rho:g}-alpha-{last_damping:g}", setup, {"variant": name}


def gains(record: Record) -> list[float]:
    """Point-wise minus Bayesian test error of each epoch."""
    curves = record.result["curves"]
    return [point - bayes for point, bayes in zip(curves["test_error"], curves["test_error_bayes"], strict=True)]


def late(records: Records, name: str, digits: int) -> str:
    """Mean over the last epochs, with its standard deviation over seeds."""
    ends = [record.result["curves"][name][-LAST:] for record in records]
    return number(measured(sum(end) / len(end) for end in ends), digits)


def table(records: Records) -> str:
    settings = ["rho", "rho_L", "alpha_L", "evidence_L"]
    head = ["network", *settings, "seeds", "point-wise", "Bayesian", "Bayesian better at", "NLL", "ECE"]
    rows = []
    for (width, *_), same_width in by(records, "hidden").items():
        for name, chosen in by(same_width, "variant", VARIANTS).items():
            won = [gain > 0 for record in chosen for gain in gains(record)]
            values = [late(chosen, "test_error", 2), late(chosen, "test_error_bayes", 2)]
            values.append(f"{sum(won)} of {len(won)} epochs")
            values += [late(chosen, "test_nll", 4), late(chosen, "test_ece", 4)]
            rows.append([f"2 × {width}", *(f"{value:g}" for value in VARIANTS[name]), str(len(chosen)), *values])
    return page(
        "Bayesian and point-wise error, ten classes",
        records,
        f"Test errors (%), NLL and ECE are means of the last {LAST} epochs. An epoch counts for the Bayesian "
        "prediction if its test error is below the point-wise one of the same weights.",
        markdown(head, rows),
    )


def plot(records: Records) -> Figure:
    """A row for each width: errors, solid point-wise and dashed Bayesian; and the difference of both."""
    rows = by(records, "hidden")
    figure, panels = sheet("Point-wise and Bayesian error, ten classes", records, 2 * len(rows), columns=2)
    for ((width, *_), same_width), errors, differences in zip(rows.items(), panels[::2], panels[1::2], strict=True):
        shown = [value for record in same_width for value in record.result["curves"]["test_error_bayes"]]
        for (name, chosen), colour in zip(by(same_width, "variant", VARIANTS).items(), LIGHT, strict=False):
            epochs_band(errors, chosen, "test_error", "", color=colour)
            epochs_band(errors, chosen, "test_error_bayes", "", color=colour, linestyle="--")
            band(differences, [gains(record) for record in chosen], name, color=colour)
        errors.set_ylim(0.9 * min(shown), 1.2 * max(shown))
        differences.axhline(0, color="#1c2430", linewidth=0.8)
        finish(errors, "epoch", "test error (%), dashed: Bayesian", f"2 × {width}")
        finish(differences, "epoch", "point-wise minus Bayesian error (%)", f"2 × {width}", beside=True)
    return figure


EXPERIMENT = Experiment("bayesian-multiclass", SIZES, grid, table, plot)
