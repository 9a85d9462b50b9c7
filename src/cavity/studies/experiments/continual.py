"""Six permuted MNIST tasks in sequence: the paper's Fig. "cl_bpi_vs_sgd_H2001" and section "Continual learning".

2 hidden layers of 2001 units, 40 epochs for each task, ρ = 1 and α = 0.8 in every layer (appendix, "Architectures").
The posterior of one task is the prior of the next; nothing else is kept. How much is forgotten depends on the width, so
the reduced version keeps the width, cuts the epochs, and adds a narrow network. It also depends on the batch size: the
samples of a mini-batch all push at once, and when a task begins they are all predicted wrongly.

Beside the paper's recipe stands ours for streams (docs/how-to/continual.md): gate units and a memory of all six tasks.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

from cavity.studies.experiments import Progress, Size, smoke
from cavity.studies.experiments.experiment import Cell, Experiment, Grid, Record, Records
from cavity.studies.experiments.permuted_stream import GATED, task_samples
from cavity.studies.experiments.plots import COLOURS, Figure, band, finish, sheet
from cavity.studies.experiments.setup import TITLES, build, field_damped, fit, load, setups, summary, whole_errors
from cavity.studies.experiments.table import by, groups, markdown, measured, number, page
from cavity.training.recipes import ANNEALED
from cavity.training.trainer import Trainer

#: The paper's recipe, its rival, and our rule for streams.
METHODS = ("bp", "binarynet", "mf")
OURS = "mf"
#: ρ = 1 in all layers, so nothing is forgotten on purpose. The last layer's field is damped, not its mean, as in the
#: authors' code (see ``table_datasets``).
RULE = field_damped((1.0, 1.0, 1.0))
#: The paper's batch size, and a smaller one.
PAPER_BATCH, SMALL_BATCH = 128, 16
NAMES = {name: TITLES[name] for name in METHODS} | {OURS: f"{TITLES[OURS]}, gate units, with a memory"}
SIZES = {
    "smoke": smoke(tasks=2, widths=(11, 21), batch_sizes=(PAPER_BATCH, SMALL_BATCH)),
    "laptop": Size(
        3, 1, ("mnist",), options={"tasks": 6, "widths": (501, 2001), "batch_sizes": (PAPER_BATCH, SMALL_BATCH)}
    ),
    "paper": Size(40, 5, ("mnist",), options={"tasks": 6, "widths": (2001,), "batch_sizes": (PAPER_BATCH,)}),
}


def grid(size: Size) -> Grid:
    for base in setups(size):
        tasks = size.options["tasks"]
        for batch_size, width, method in product(size.options["batch_sizes"], size.options["widths"], METHODS):
            setup = base.replace(method=method, hidden=(width,) * 2, batch_size=batch_size)
            if method == OURS:
                memory = float(tasks * size.epochs * task_samples(base))
                setup = setup.replace(recipe=ANNEALED.name, activation=GATED, memory=memory)
            else:
                setup = setup.replace(**RULE)
            label = f"permuted-{base.dataset}-{width}-{method}-batch-{batch_size}"
            yield label, setup, {"tasks": tasks}


def result(cell: Cell, folder: Path, progress: Progress) -> dict[str, Any]:
    """Test error on the first task after each epoch, and on all tasks at the end."""
    base = load(cell.setup)
    tasks = [base.permuted(number) for number in range(cell.options["tasks"])]
    trainer = build(cell.setup, base)
    if isinstance(trainer, Trainer):
        # How badly a network does is what is measured; the smallest ones do badly indeed.
        trainer.watch = False
    train = [(task.x_train, task.y_train) for task in tasks]
    first = tasks[0]
    fit(trainer, cell.setup, train, (first.x_test, first.y_test), folder, progress)
    errors = [whole_errors(trainer, task.x_test, task.y_test) for task in tasks]
    # The training error of the curves is that of the current task.
    points, bayes = zip(*errors, strict=True)
    return {**summary(trainer, tasks[-1]), "tasks": points, "tasks_bayes": bayes}


def _accuracies(records: Records, name: str) -> list[list[float]]:
    """Accuracies in per cent on each task, for each record."""
    return [[100 - error for error in record.result[name]] for record in records]


def _runs(records: Records) -> dict[tuple[int, int, str], list[Record]]:
    """Records by batch size, width and method, in the order of the grid."""
    found = groups(records, lambda r: (r.cell.setup.batch_size, r.cell.setup.hidden[0], r.cell.setup.method))
    return dict(sorted(found.items(), key=lambda item: (-item[0][0], item[0][1], METHODS.index(item[0][2]))))


def table(records: Records) -> str:
    count = records[0].cell.options["tasks"]
    rows = []
    for (batch_size, width, method), chosen in _runs(records).items():
        kinds = {"": "tasks", ", Bayesian": "tasks_bayes"} if method != "binarynet" else {"": "tasks"}
        for kind, name in kinds.items():
            values = [number(measured(task)) for task in zip(*_accuracies(chosen, name), strict=True)]
            rows.append([f"{NAMES[method]}{kind}", f"2 × {width}", str(batch_size), *values])
    return page(
        "Continual learning",
        records,
        f"Test accuracy (%) on each task after all {count} were learnt one after the other, each for the epochs above. "
        "The paper (2 × 2001, batches of 128) shows a figure without numbers: BP is good on all tasks, BinaryNet less.",
        markdown(["method", "network", "batch", *(f"task {task + 1}" for task in range(count))], rows),
    )


def plot(records: Records) -> Figure:
    """A row for each width: all tasks at the end, and the first task against epochs; dashed for small batches."""
    widths = by(records, "hidden")
    figure, panels = sheet("Permuted tasks in sequence, each for the epochs below", records, 2 * len(widths), columns=2)
    for ((width, *_), same_width), tasks, first in zip(widths.items(), panels[::2], panels[1::2], strict=True):
        for (batch_size, _, method), chosen in _runs(same_width).items():
            label = f"{NAMES[method]}, batches of {batch_size}"
            line = "-" if batch_size == PAPER_BATCH else "--"
            style: dict[str, Any] = {"color": COLOURS[method], "linestyle": line}
            band(tasks, _accuracies(chosen, "tasks"), label, marker="o", markersize=4, **style)
            curve = "test_error_bayes" if method == OURS else "test_error"
            curves = [[100 - error for error in record.result["curves"][curve]] for record in chosen]
            band(first, curves, label, **style)
        for axes in (tasks, first):
            axes.set_ylim(0, 102)
        finish(tasks, "task", "test accuracy at the end (%)", f"2 × {width} units")
        finish(first, "epoch", "test accuracy on the first task (%)", f"2 × {width} units")
    return figure


EXPERIMENT = Experiment("continual", SIZES, grid, table, plot, result)
