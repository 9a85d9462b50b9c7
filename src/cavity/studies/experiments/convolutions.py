"""Convolutional networks of ±1 weights and sign units by message passing, beside BinaryNet with batch normalisation:
the same network, mini-batches, images changed at random in the same way, and epochs.

Message passing takes the default recipe with thresholds, BinaryNet Adam with a cosine schedule. Nothing was chosen on
test images: ``docs/how-to/convolutions.md`` has what held-out training images say of networks like these.
"""

from __future__ import annotations

from typing import NamedTuple

from cavity.studies.experiments import Size, smoke
from cavity.studies.experiments.experiment import Experiment, Grid, Records
from cavity.studies.experiments.plots import COLOURS, Figure, epochs_band, finish, sheet
from cavity.studies.experiments.setup import TITLES, Setup
from cavity.studies.experiments.table import by, finals, markdown, page, where
from cavity.training.recipes import ANNEALED

#: The most important first.
METHODS = ("mf", "binarynet-bn", "bp")


class Images(NamedTuple):
    """The network of a data set, in words, and how its images are changed at random."""

    layers: str
    augment: str | None = None


SMALL = {
    "digits": Images("conv:8:3,pool:2,dense:21", "shift:1"),
    "mnist": Images("conv:32:5:2,conv:64:5:2,dense:501"),
    "fashion-mnist": Images("conv:32:5:2,conv:64:5:2,dense:501"),
    "cifar-10": Images("white:24:5:2,conv:64:3,pool:2,conv:128:3,dense:201", "flip,shift:2"),
}
#: Networks of scales that have their own.
LARGE = SMALL | {
    "mnist": Images("conv:48:7:2,conv:64:5:2,dense:501"),
    "fashion-mnist": Images("conv:48:7:2,conv:64:5:2,dense:501"),
    "cifar-10": Images("white:48:5:2,conv:128:3,pool:2,conv:256:3,dense:501", "flip,shift:2"),
}
DATASETS = ("mnist", "fashion-mnist", "cifar-10")
SIZES = {
    "smoke": smoke(networks=SMALL),
    "laptop": Size(12, 1, DATASETS, options={"networks": SMALL}),
    "paper": Size(20, 3, DATASETS, options={"networks": LARGE}),
}
SHOWN = {"test_error": "1-bit", "test_error_bayes": "Bayesian", "test_nll": "NLL", "test_ece": "ECE"}


def grid(size: Size) -> Grid:
    networks = size.options["networks"]
    for dataset in size.datasets:
        if dataset not in networks:
            raise ValueError(f"convolutions has no network for {dataset!r}: it has those of {', '.join(networks)}")
    for method in METHODS:
        for seed in range(size.seeds):
            for dataset in size.datasets:
                layers, augment = networks[dataset]
                setup = Setup(method, dataset, (), size.epochs, seed, samples=size.samples)
                setup = setup.replace(recipe=ANNEALED.name, layers=layers, augment=augment)
                yield f"{dataset}-{method}", setup, {}


def table(records: Records) -> str:
    rows = []
    for dataset, of_data in by(records, "dataset").items():
        for layers, alike in by(of_data, "layers").items():
            for method in METHODS:
                chosen = where(alike, method=method)
                if chosen:
                    epochs = max(record.cell.setup.epochs for record in chosen)
                    who = [dataset, f"`{layers}`", TITLES[method], str(epochs), str(len(chosen))]
                    rows.append([*who, *finals(chosen, *SHOWN)])
    words = "Test error (%) of the most probable weights and of the posterior, with its NLL and ECE; last epoch."
    head = ["data", "network", "method", "epochs", "seeds", *SHOWN.values()]
    return page("Convolutional networks", records, words, markdown(head, rows))


def plot(records: Records) -> Figure:
    """Test error against epochs, a panel for each data set: Bayesian as a line, 1-bit dashed."""
    there = by(records, "dataset")
    figure, panels = sheet("Test error of convolutional networks", records, len(there))
    for (dataset, of_data), axes in zip(there.items(), panels, strict=True):
        for method in METHODS:
            chosen, style = where(of_data, method=method), {"color": COLOURS[method]}
            if chosen:
                epochs_band(axes, chosen, "test_error_bayes", f"{TITLES[method]}, Bayesian", **style)
                epochs_band(axes, chosen, "test_error", f"{TITLES[method]}, 1-bit", linestyle="--", **style)
        finish(axes, "epoch", "test error (%)", dataset)
    return figure


EXPERIMENT = Experiment("convolutions", SIZES, grid, table, plot, datasets_beside=True)
