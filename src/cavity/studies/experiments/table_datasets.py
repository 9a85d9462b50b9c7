"""Test and training errors on three data sets, two-class and multi-class: the paper's Tab. "test" and Tab. "train".

2 hidden layers of 501 units, binary weights and sign activations, batch size 128, 100 epochs;
ρ = (1.0001, 1.0001, 0.9) and α = 0.8 for message passing, learning rate 10 for BinaryNet (appendix, "Varying the
dataset").

The paper damps the means of all weights. In the authors' code (github.com/ArtLabBocconi/DeepMP.jl,
src/layers/argmax.jl) the layer below an argmax damps its field instead. Ten classes are trained both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cavity.studies.experiments import TWO_CLASS, Size, smoke
from cavity.studies.experiments.experiment import Experiment, Grid, Record, Records
from cavity.studies.experiments.plots import COLOURS, Figure, epochs_band, finish, sheet
from cavity.studies.experiments.setup import BASELINES, TITLES, field_damped, setups
from cavity.studies.experiments.table import Published, final, finals, markdown, number, page, published, verdict, where

METHODS = ("bp", "mf", "amp", "binarynet")
FIELD_DAMPED = field_damped((1.0001, 1.0001, 0.9))
FIELD_TITLE = ", last field damped"
#: Panels are scaled without the first tenth of the epochs, where errors are several times as large.
EARLY = 10
#: The most informative first.
DATASETS = ("fashion-mnist", "mnist", "fashion-mnist-two-class", "mnist-two-class", "cifar-10", "cifar-10-two-class")
SIZES = {
    "smoke": Size(2, 1, ("digits", "digits" + TWO_CLASS), 21, smoke().samples),
    "laptop": Size(30, 1, DATASETS),
    "paper": Size(100, 5, DATASETS),
}


def _row(*columns: tuple[float, float]) -> dict[str, Published]:
    """In the order of the paper's columns: BinaryNet, BP, AMP, MF."""
    return dict(zip(("binarynet", "bp", "amp", "mf"), (Published(*values) for values in columns), strict=True))


#: Paper, Tab. "Test error (%) … of various algorithms".
TEST: Mapping[str, Mapping[str, Published]] = {
    "mnist-two-class": _row((1.3, 0.1), (1.4, 0.2), (1.4, 0.1), (1.3, 0.2)),
    "fashion-mnist-two-class": _row((2.4, 0.1), (2.3, 0.1), (2.4, 0.1), (2.3, 0.1)),
    "cifar-10-two-class": _row((30.0, 0.3), (31.4, 0.1), (31.1, 0.3), (31.1, 0.4)),
    "mnist": _row((2.2, 0.1), (2.6, 0.1), (2.6, 0.1), (2.3, 0.1)),
    "fashion-mnist": _row((12.0, 0.6), (11.8, 0.3), (11.9, 0.2), (12.1, 0.2)),
    "cifar-10": _row((59.0, 0.7), (58.7, 0.3), (58.5, 0.2), (60.4, 1.1)),
}
#: Paper, appendix, Tab. "Train error (%)".
TRAIN: Mapping[str, Mapping[str, Published]] = {
    "mnist-two-class": _row((0.05, 0.05), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),
    "fashion-mnist-two-class": _row((0.3, 0.1), (0.06, 0.01), (0.06, 0.01), (0.09, 0.01)),
    "cifar-10-two-class": _row((1.2, 0.5), (0.37, 0.01), (0.4, 0.1), (0.9, 0.2)),
    "mnist": _row((0.09, 0.01), (0.12, 0.01), (0.12, 0.01), (0.03, 0.01)),
    "fashion-mnist": _row((4.0, 0.5), (3.4, 0.1), (3.7, 0.1), (2.5, 0.2)),
    "cifar-10": _row((13.0, 0.9), (4.7, 0.1), (4.7, 0.2), (9.2, 0.5)),
}


def grid(size: Size) -> Grid:
    """All as printed first, then as released."""
    for setup in setups(size, METHODS):
        yield f"{setup.dataset}-{setup.method}", setup, {}
    for setup in setups(size, METHODS):
        if setup.method not in BASELINES and not setup.two_class:
            yield f"{setup.dataset}-{setup.method}-field", setup.replace(**FIELD_DAMPED), {}


def runs(records: Records, dataset: str) -> Iterator[tuple[str, str, list[Record]]]:
    """(method, title, records) of a data set, in the order of the grid."""
    for method in METHODS:
        for evidence, title in ((1.0, ""), (FIELD_DAMPED["last_evidence"], FIELD_TITLE)):
            chosen = where(records, dataset=dataset, method=method, last_evidence=evidence)
            if chosen:
                yield method, TITLES[method] + title, chosen


def datasets(records: Records) -> list[str]:
    """The data sets there are, in the order of the grid."""
    there = {record.cell.setup.dataset for record in records}
    return [name for name in DATASETS if name in there] + sorted(there - set(DATASETS))


def table(records: Records) -> str:
    return page(
        "Errors across data sets",
        records,
        "Test error (%), point-wise, after the last epoch; the Bayesian one of the same run, with its NLL and ECE.",
        _table(records, "test_error", TEST, ("test_error_bayes", "test_nll", "test_ece")),
        "Training error (%), on the whole training set.",
        _table(records, "train_error", TRAIN, ("train_error_bayes",)),
    )


def _table(records: Records, name: str, paper: Mapping[str, Mapping[str, Published]], others: Sequence[str]) -> str:
    words = {"test_error_bayes": "Bayesian", "train_error_bayes": "Bayesian", "test_nll": "NLL", "test_ece": "ECE"}
    head = ["data", "method", "epochs", "seeds", "ours", "paper", "verdict", *(words[other] for other in others)]
    rows = []
    for dataset in datasets(records):
        for method, title, chosen in runs(records, dataset):
            ours, theirs = final(chosen, name), paper.get(dataset, {}).get(method)
            epochs = max(record.cell.setup.epochs for record in chosen)
            row = [dataset, title, str(epochs), str(len(chosen)), number(ours), published(theirs)]
            rows.append([*row, verdict(ours, theirs), *finals(chosen, *others)])
    return markdown(head, rows)


def plot(records: Records) -> Figure:
    """Test error against epochs, a panel for each data set; the paper's final values at the right edge."""
    there = datasets(records)
    figure, panels = sheet("Test error, 2 hidden layers", records, len(there))
    for dataset, axes in zip(there, panels, strict=True):
        shown = []
        for method, title, chosen in runs(records, dataset):
            place, style = METHODS.index(method), "--" if title.endswith(FIELD_TITLE) else "-"
            epochs_band(axes, chosen, "test_error", title, color=COLOURS[method], linestyle=style)
            for record in chosen:
                curve = record.result["curves"]["test_error"]
                shown += curve[len(curve) // EARLY :]
            theirs = TEST.get(dataset, {}).get(method)
            if theirs is not None:
                end = (1.02 + 0.015 * place) * max(record.cell.setup.epochs for record in chosen)
                axes.errorbar([end], [theirs.mean], [theirs.std], fmt="_", color=COLOURS[method], capsize=3)
                shown += [theirs.mean - theirs.std, theirs.mean + theirs.std]
        margin = 0.05 * (max(shown) - min(shown))
        axes.set_ylim(min(shown) - margin, max(shown) + margin)
        finish(axes, "epoch", "test error (%), bars: paper", dataset)
    return figure


EXPERIMENT = Experiment("table-datasets", SIZES, grid, table, plot, datasets_beside=True)
