"""The default recipe, in which the messages choose the rate, on the six tasks of the paper's table, beside BinaryNet:
with the constant learning rate of the paper, and with a cosine schedule by SGD and by Adam: a rival deserves one too.

2 hidden layers of 501 units, binary weights and sign activations, batch size 128. Nothing is chosen per data set.
"""

from __future__ import annotations

from cavity.studies.experiments import TWO_CLASS, Size, smoke
from cavity.studies.experiments.experiment import Experiment, Grid, Records
from cavity.studies.experiments.plots import COLOURS, Figure, epochs_band, finish, sheet
from cavity.studies.experiments.setup import TITLES, setups
from cavity.studies.experiments.table import finals, markdown, page, where
from cavity.studies.experiments.table_datasets import DATASETS, datasets
from cavity.training.recipes import ANNEALED

ALGORITHMS = ("mf", "amp", "bp")
#: Method, schedule of its learning rate, and how a figure draws it.
RIVALS = (("binarynet", None, "-"), ("binarynet", "cosine", "--"), ("binarynet-adam", "cosine", ":"))
SIZES = {
    "smoke": Size(2, 1, ("digits", "digits" + TWO_CLASS), 21, smoke().samples),
    "laptop": Size(30, 3, DATASETS),
    "paper": Size(100, 3, DATASETS),
}
SHOWN = {"test_error": "1-bit", "test_error_bayes": "Bayesian", "test_nll": "NLL", "test_ece": "ECE"}


def grid(size: Size) -> Grid:
    """The default algorithm and the rivals on everything, then the other algorithms."""
    for setup in setups(size, ALGORITHMS[:1]):
        yield f"{setup.dataset}-{setup.method}", setup.replace(recipe=ANNEALED.name), {}
        for method, schedule, _ in RIVALS:
            yield f"{setup.dataset}-{method}-{schedule}", setup.replace(method=method, schedule=schedule), {}
    for setup in setups(size, ALGORITHMS[1:]):
        yield f"{setup.dataset}-{setup.method}", setup.replace(recipe=ANNEALED.name), {}


def lines() -> list[tuple[str, str | None, str, str]]:
    """Method, schedule, title and line style, in the order of the table."""
    ours = [(name, None, TITLES[name], "-") for name in ALGORITHMS]
    return ours + [
        (name, schedule, TITLES[name] + (f", {schedule}" if schedule else ", constant"), style)
        for name, schedule, style in RIVALS
    ]


def table(records: Records) -> str:
    rows = []
    for dataset in datasets(records):
        for method, schedule, title, _ in lines():
            chosen = where(records, dataset=dataset, method=method, schedule=schedule)
            if chosen:
                epochs = max(record.cell.setup.epochs for record in chosen)
                rows.append([dataset, title, str(epochs), str(len(chosen)), *finals(chosen, *SHOWN)])
    words = "Test error (%) of the most probable weights and of the posterior, with its NLL and ECE; last epoch."
    head = ["data", "method", "epochs", "seeds", *SHOWN.values()]
    return page("The annealed recipe", records, words, markdown(head, rows))


def plot(records: Records) -> Figure:
    """Test error against epochs, a panel for each data set: Bayesian for message passing."""
    there = datasets(records)
    figure, panels = sheet("Test error, 2 hidden layers, annealed", records, len(there))
    for dataset, axes in zip(there, panels, strict=True):
        for method, schedule, title, style in lines():
            chosen = where(records, dataset=dataset, method=method, schedule=schedule)
            curve = "test_error_bayes" if method in ALGORITHMS else "test_error"
            if chosen:
                epochs_band(axes, chosen, curve, title, color=COLOURS[method], linestyle=style)
        finish(axes, "epoch", "test error (%), Bayesian for message passing", dataset)
    return figure


EXPERIMENT = Experiment("table-annealed", SIZES, grid, table, plot, datasets_beside=True)
