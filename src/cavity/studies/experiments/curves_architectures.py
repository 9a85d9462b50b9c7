"""Learning curves on Fashion-MNIST: the paper's Fig. "architecture" (left, 3 × 501) and Fig. "othercurves".

Batch size 128, and batch sizes from 1 to 1024 on 2 × 501, for which the paper reports similar results. ρ and α for each
architecture are from appendix "Architectures". The paper claims that BP and AMP reach a low error in fewer epochs than
BinaryNet, with SGD or with Adam.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from cavity.studies.experiments import Size, smoke
from cavity.studies.experiments.experiment import Experiment, Grid, Record, Records
from cavity.studies.experiments.plots import COLOURS, Figure, epochs_band, finish, sheet
from cavity.studies.experiments.setup import TITLES, Setup, setups
from cavity.studies.experiments.table import by, finals, groups, markdown, measured, number, page

METHODS = ("bp", "amp", "mf", "binarynet", "binarynet-adam")
#: The table has the number of epochs until these test errors (%) are first reached.
TARGETS = (16.0, 14.0, 13.0)
MAIN = (501, 501, 501)
ARCHITECTURES = (MAIN, (101, 101), (101, 101, 101), (501,) * 4, (1001, 1001))
LAPTOP = {"architectures": ((101, 101), (101,) * 3, MAIN), "batches": (16,), "batch_architecture": (101, 101)}
PAPER = {"architectures": ARCHITECTURES, "batches": (16, 1024, 1), "batch_architecture": (501, 501)}
SIZES = {
    "smoke": smoke(architectures=((21, 21),), batches=(64,), batch_architecture=(21,)),
    "laptop": Size(15, 1, ("fashion-mnist",), options=LAPTOP),
    "paper": Size(100, 5, ("fashion-mnist",), options=PAPER),
}


def tuned(setup: Setup) -> Setup:
    """With the appendix's ρ and α, where they differ from the defaults."""
    if setup.hidden == MAIN:
        return setup.replace(damping=(0.1, 0.1, 0.1, 0.9))
    if setup.hidden == (101, 101, 101):
        below = 1.001 if setup.method == "mf" else 1.0
        return setup.replace(rho=(below,) * 3 + (0.9,))
    return setup


def grid(size: Size) -> Grid:
    networks = [(hidden, 128) for hidden in size.options["architectures"]]
    networks += [(size.options["batch_architecture"], batch) for batch in size.options["batches"]]
    for base in setups(size):
        for (hidden, batch), method in product(networks, METHODS):
            label = f"{base.dataset}-{'x'.join(map(str, hidden))}-batch-{batch}-{method}"
            yield label, tuned(base.replace(method=method, hidden=hidden, batch_size=batch)), {}


def epochs_to(curve: Sequence[float], target: float) -> int | None:
    """The first epoch with an error of at most ``target``."""
    return next((epoch for epoch, error in enumerate(curve, start=1) if error <= target), None)


def _reached(chosen: Records, target: float) -> str:
    """Mean number of epochs over seeds, if all of them reached the target."""
    epochs = [epochs_to(record.result["curves"]["test_error"], target) for record in chosen]
    return "–" if None in epochs else number(measured(epochs), 1)


def panels_of(records: Records) -> dict[tuple[str, tuple[int, ...], int], list[Record]]:
    """Records by data set, architecture and batch size, 128 first."""
    found = groups(records, lambda r: (r.cell.setup.dataset, r.cell.setup.hidden, r.cell.setup.batch_size))
    return dict(sorted(found.items(), key=lambda item: (item[0][2] != 128, item[0][0], len(item[0][1]), item[0][1:])))


def table(records: Records) -> str:
    head = ["hidden", "batch", "method", "seeds", "test", "train", *(f"epochs to {target:g} %" for target in TARGETS)]
    rows = []
    for (_, hidden, batch), group in panels_of(records).items():
        for method, chosen in by(group, "method", METHODS).items():
            values = finals(chosen, "test_error", "train_error") + [_reached(chosen, target) for target in TARGETS]
            rows.append(["-".join(map(str, hidden)), str(batch), TITLES[method], str(len(chosen)), *values])
    return page(
        "Learning curves across architectures",
        records,
        "Errors (%) after the last epoch, point-wise, and epochs until the test error first reached a value, if ever. "
        "The paper shows curves without numbers and claims that BP and AMP need fewer epochs than BinaryNet.",
        markdown(head, rows),
    )


def plot(records: Records) -> Figure:
    """Test errors (solid) and training errors (dotted), a panel for each architecture and batch size."""
    found = panels_of(records)
    figure, panels = sheet("Learning curves", records, len(found))
    for axes, ((dataset, hidden, batch), group) in zip(panels, found.items(), strict=True):
        for method, chosen in by(group, "method", METHODS).items():
            epochs_band(axes, chosen, "test_error", TITLES[method], color=COLOURS[method])
            epochs_band(axes, chosen, "train_error", "_nolegend_", color=COLOURS[method], linestyle=":")
        axes.set_ylim(0, 30 if dataset == "fashion-mnist" else 100)
        finish(axes, "epoch", "error (%), dotted: training", f"{'-'.join(map(str, hidden))}, batch {batch}")
    return figure


EXPERIMENT = Experiment("curves-architectures", SIZES, grid, table, plot)
