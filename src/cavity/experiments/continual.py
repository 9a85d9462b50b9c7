"""Six permuted MNIST tasks in sequence: the paper's Fig. "cl_bpi_vs_sgd_H2001" and section "Continual learning".

2 hidden layers of 2001 units, 40 epochs for each task, ρ = 1 and α = 0.8 in every layer (appendix, "Architectures").
The posterior of one task is the prior of the next; nothing else is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cavity.experiments.experiment import Cell, Experiment, Record
from cavity.experiments.scale import Request, Size, smoke
from cavity.experiments.select import where
from cavity.experiments.setup import TITLES, Setup
from cavity.experiments.table import markdown, measured, number, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cavity.experiments.training import Progress

METHODS = ("bp", "binarynet")
SIZES = {
    "smoke": smoke(tasks=2),
    "laptop": Size(10, 1, ("mnist",), 501, options={"tasks": 6}),
    "paper": Size(40, 5, ("mnist",), 2001, options={"tasks": 6}),
}


def cells(request: Request) -> list[Cell]:
    size = request.size(SIZES)
    return [
        Cell(
            f"permuted-{dataset}-{method}",
            Setup(method, dataset, (size.width,) * 2, size.epochs, seed, rho=(1.0,) * 3, samples=size.samples),
            request.scale,
            {"tasks": size.option("tasks")},
        )
        for seed in range(size.seeds)
        for dataset in size.datasets
        for method in METHODS
    ]


def result(cell: Cell, folder: Path, progress: Progress) -> dict[str, Any]:
    """Test error on the first task after each epoch, and on all tasks at the end."""
    from cavity.experiments.setup import build, load
    from cavity.experiments.training import fit, summary, whole_errors

    base = load(cell.setup)
    tasks = [base.permuted(number) for number in range(cell.options["tasks"])]
    trainer = build(cell.setup, base)
    train = [(task.x_train, task.y_train) for task in tasks]
    first = tasks[0]
    fit(trainer, cell.setup, train, (first.x_test, first.y_test), folder, progress)
    errors = [whole_errors(trainer, task.x_test, task.y_test) for task in tasks]
    # The training error of the curves is that of the task of the moment.
    points, bayes = zip(*errors, strict=True)
    return {**summary(trainer, tasks[-1]), "tasks": points, "tasks_bayes": bayes}


def _accuracies(chosen: Sequence[Record], task: int, name: str) -> list[float | None]:
    values = [record.result[name][task] for record in chosen]
    return [None if value is None else 100 - value for value in values]


def table(records: Sequence[Record]) -> str:
    count = records[0].cell.options["tasks"]
    there = [method for method in METHODS if where(records, method=method)]
    head = ["task", *(TITLES[method] for method in there), "BP, Bayesian"]
    rows = []
    for task in range(count):
        values = [number(measured(_accuracies(where(records, method=m), task, "tasks"))) for m in there]
        bayes = number(measured(_accuracies(where(records, method="bp"), task, "tasks_bayes")))
        rows.append([str(task + 1), *values, bayes])
    width = records[0].cell.setup.hidden[0]
    return page(
        "Continual learning",
        records,
        f"Test accuracy (%) on each task after all {count} were learnt one after the other, hidden layers of {width} "
        "units (the paper: 2001). The paper shows a figure without numbers: BP is good on all tasks, BinaryNet less.",
        markdown(head, rows),
    )


def plot(records: Sequence[Record]) -> Figure:
    from cavity.experiments.plots import COLOURS, band, finish, sheet

    width = records[0].cell.setup.hidden[0]
    figure, (tasks, first) = sheet(f"Permuted tasks in sequence, 2 × {width} units", records, columns=2)
    for method in METHODS:
        chosen = where(records, method=method)
        if chosen:
            at_the_end = [[100 - error for error in record.result["tasks"]] for record in chosen]
            numbers = range(1, 1 + len(at_the_end[0]))
            band(tasks, numbers, at_the_end, TITLES[method], color=COLOURS[method], marker="o", markersize=4)
            curves = [[100 - error for error in record.result["curves"]["test_error"]] for record in chosen]
            band(first, range(1, 1 + len(curves[0])), curves, TITLES[method], color=COLOURS[method])
    finish(tasks, "task", "test accuracy at the end (%)")
    finish(first, "epoch", "test accuracy on the first task (%)")
    return figure


EXPERIMENT = Experiment("continual", cells, result, table, plot)
