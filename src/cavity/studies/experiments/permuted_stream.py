"""A stream of permuted tasks: each is seen once, for one epoch, by one readout that is not told where a task ends.

What is asked at the end is the accuracy on the last 5, 20 and 100 tasks, how well each task was learnt when it was new,
and whether the network tells images of another data set from its own. Message passing has one number, its memory in
tasks. Elastic weight consolidation is the only rule that is told of the ends of tasks: it cannot do without.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from cavity import data
from cavity.analysis.calibration import auroc
from cavity.baselines.trainer import AnyTrainer, BaselineTrainer
from cavity.data import Dataset
from cavity.engine.compiling import kernels, pays
from cavity.runs.checkpoint import SaveCheckpoint, load_checkpoint
from cavity.runs.folder import CHECKPOINT
from cavity.studies.experiments import Progress, Size, smoke
from cavity.studies.experiments.experiment import Cell, Experiment, Grid, Record, Records
from cavity.studies.experiments.plots import COLOURS, Figure, band, finish, sheet
from cavity.studies.experiments.setup import TITLES, Setup, build, load, whole_errors
from cavity.studies.experiments.table import groups, markdown, measured, number, page
from cavity.training.callbacks import Callback, OnEpoch
from cavity.training.recipes import ANNEALED
from cavity.training.trainer import Trainer

GATED = "relative-gate"
RIVALS = ("binarynet", "binarynet-adam", "bayesbinn", "ewc", "metaplastic")
#: Method and activation, the most important first. Rivals have their own gate: one of theirs is 1 where |z| > √N.
METHODS = (
    ("mf", GATED),
    ("mf", "sign"),
    *((rival, "sign") for rival in RIVALS),
    *((rival, "gate") for rival in RIVALS),
)
#: What is told of the ends of tasks, and of how many of their samples.
TOLD, TOLD_SAMPLES = ("ewc",), 10_000
#: Over how many of the last tasks the accuracy at the end is averaged.
SPANS = (5, 20, 100)
#: Images that belong to no task, for data of the same shape.
FOREIGN = {"mnist": "fashion-mnist", "fashion-mnist": "mnist"}
SIZES = {
    "smoke": smoke(epochs=1, tasks=3, memory=2.0),
    "laptop": Size(1, 1, ("mnist",), 100, options={"tasks": 100, "memory": 1000.0}),
    "paper": Size(1, 1, ("mnist",), 100, options={"tasks": 1000, "memory": 40.0}),
}


def grid(size: Size) -> Grid:
    tasks, memory = size.options["tasks"], float(size.options["memory"])
    for seed in range(size.seeds):
        for dataset in size.datasets:
            for method, activation in METHODS:
                # What a run counts as epochs are its tasks.
                setup = Setup(method, dataset, (size.width,), tasks, seed, activation=activation, samples=size.samples)
                if method == "mf":
                    setup = setup.replace(recipe=ANNEALED.name, memory=memory * task_samples(setup))
                label = f"{dataset}-{tasks}-tasks-{size.width}-{method}-{activation}"
                yield label, setup, {"tasks": tasks, "memory": memory if method == "mf" else None}


def task_samples(setup: Setup) -> int:
    """Training samples of a task."""
    return setup.samples[0] if setup.samples is not None else TASK_SAMPLES[setup.dataset]


#: Known without loading the data.
TASK_SAMPLES = {"mnist": 60_000, "fashion-mnist": 60_000, "digits": 1_437}


def result(cell: Cell, folder: Path, progress: Progress) -> dict[str, Any]:
    """Accuracies in percent, point-wise and Bayesian: of each task when it was new, and of the last ones at the end."""
    base, tasks = load(cell.setup), cell.options["tasks"]
    trainer = build(cell.setup, base)
    learn(trainer, cell.setup, base, folder, progress)
    there = range(max(0, tasks - max(SPANS)), tasks)
    errors = [whole_errors(trainer, task.x_test, task.y_test) for task in map(base.permuted, there)]
    points, bayes = zip(*errors, strict=True)
    history = trainer.history
    return {
        "new": [_accuracy(record.test_error) for record in history],
        "new_bayes": [_accuracy(record.test_error_bayes) for record in history],
        "last": [_accuracy(error) for error in points],
        "last_bayes": [_accuracy(error) for error in bayes],
        "seconds": [round(record.seconds, 3) for record in history],
        "bytes": sum(tensor.nbytes for tensor in trainer.net.state_dict().values()),
        "foreign_auroc": foreign_auroc(trainer, base, tasks - 1),
    }


def learn(
    trainer: AnyTrainer,
    setup: Setup,
    base: Dataset,
    folder: Path,
    progress: Progress,
    listeners: Sequence[Callback] = (),
    seconds: float = 30.0,
) -> None:
    """All tasks, one after the other, on from the checkpoint in ``folder``, if any, in mid-task if need be; one is
    written after each task, and within it after ``seconds`` seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    path, tasks = folder / CHECKPOINT, setup.epochs
    if path.exists():
        load_checkpoint(path).restore(trainer.net, trainer)
    if isinstance(trainer, Trainer):
        trainer.watch = False
        # ``fit`` sees the tasks so far; what a stream earns back is known from the start.
        weights = sum(layer.field.numel() for layer in trainer.net.weighted())
        trainer.compile = pays(weights * setup.batch_size, tasks * (len(base.x_train) // setup.batch_size))
        trainer.runner.kernels = kernels(trainer.compile)
    told = OnEpoch(lambda trainer, record: progress(record.epoch, tasks))
    callbacks = [SaveCheckpoint(path, seconds=seconds), told, *listeners]
    for place in range(trainer.epoch, tasks):
        if place and trainer.batch == 0 and setup.method in TOLD and isinstance(trainer, BaselineTrainer):
            # Before the first step of the next task, so that a checkpoint has it or it is done again.
            last = base.permuted(place - 1)
            trainer.end_task(last.x_train[:TOLD_SAMPLES], last.y_train[:TOLD_SAMPLES])
        task = base.permuted(place)
        trainer.fit(
            (task.x_train, task.y_train),
            epochs=place + 1,
            validation=(task.x_test, task.y_test),
            batch_size=setup.batch_size,
            callbacks=callbacks,
        )


def foreign_auroc(trainer: AnyTrainer, base: Dataset, place: int) -> float | None:
    """How well the entropy of the prediction tells images of another data set from the last task's; None where there
    is no such data set."""
    other = FOREIGN.get(base.name)
    if other is None:
        return None
    task, foreign = base.permuted(place), data.load(other)
    # The other images in the units of ours.
    raw = foreign.x_test * foreign.std + foreign.mean
    strange = ((raw - base.mean) / base.std)[:, base.order(place)]
    return round(100 * auroc(_entropy(trainer, task.x_test), _entropy(trainer, strange)), 2)


def _entropy(trainer: AnyTrainer, x: Tensor) -> Tensor:
    entropy: Tensor = torch.special.entr(trainer.net.predict_proba(x)).sum(dim=1)
    return entropy


def _accuracy(error: float | None) -> float | None:
    return None if error is None else round(100 - error, 4)


def _curve(record: Record, name: str) -> list[float]:
    """Bayesian accuracies where there is a posterior, else those of the weights."""
    chosen: list[float] = record.result[name if record.result[f"{name}_bayes"][-1] is None else f"{name}_bayes"]
    return chosen


def _runs(records: Records) -> dict[str, list[Record]]:
    """Records of one number of tasks, width and method each, by a title; in the order of ``METHODS``."""

    def place(record: Record) -> tuple[int, int, int]:
        setup = record.cell.setup
        return setup.hidden[0], setup.epochs, METHODS.index((setup.method, setup.activation))

    return groups(sorted(records, key=place), lambda record: _title(record.cell))


def _title(cell: Cell) -> str:
    setup, memory = cell.setup, cell.options["memory"]
    kind = f", {setup.activation}" if memory is not None or setup.activation != "sign" else ""
    held = f", memory {memory:g}" if memory is not None else ""
    return f"{TITLES[setup.method]}{kind}{held}, {cell.options['tasks']} × {setup.hidden[0]} units"


def spans(values: Sequence[float]) -> list[float | None]:
    """The mean of the last 5, 20 and 100; None where there are fewer."""
    return [mean(values[-span:]) if len(values) >= span else None for span in SPANS]


def table(records: Records) -> str:
    rows = []
    for title, chosen in _runs(records).items():
        kinds = {", Bayesian": "_bayes", ", 1-bit": ""}
        for kind, ending in kinds.items():
            curves = [record.result[f"last{ending}"] for record in chosen]
            if curves[0][-1] is None:
                continue
            means = [number(measured(values)) for values in zip(*map(spans, curves), strict=True)]
            news = number(measured(mean(record.result[f"new{ending}"]) for record in chosen))
            seconds = number(measured(mean(record.result["seconds"]) for record in chosen))
            foreign = number(measured(record.result["foreign_auroc"] for record in chosen))
            size = f"{chosen[0].result['bytes'] / 1e3:.0f} kB"
            rows.append([title + kind, *means, news, foreign, size, seconds])
    heads = [f"last {span}" for span in SPANS]
    return page(
        "A stream of permuted tasks",
        records,
        "Test accuracy (%) on the last tasks after all of them, and of each task when it was new (mean); AUROC (%) of "
        "the predictive entropy for images of another data set; what is stored; seconds of training a task.",
        markdown(["method, tasks × units", *heads, "when new", "AUROC", "stored", "s/task"], rows),
    )


def plot(records: Records) -> Figure:
    """Accuracy at the end against the age of a task, and of each task when it was new."""
    figure, (ages, news) = sheet("A stream of permuted tasks, one epoch each", records, 2)
    for title, chosen in _runs(records).items():
        setup = chosen[0].cell.setup
        gated = setup.activation != "sign"
        style: dict[str, Any] = {"color": COLOURS[setup.method], "linestyle": "-" if gated else "--"}
        last = [_curve(record, "last")[::-1] for record in chosen]
        band(ages, last, f"_{title}", x=range(len(last[0])), **style)
        band(news, [_curve(record, "new") for record in chosen], title, **style)
    for axes in (ages, news):
        axes.set_ylim(0, 102)
    finish(ages, "tasks since", "test accuracy at the end (%)")
    finish(news, "task", "test accuracy when it was new (%)")
    return figure


EXPERIMENT = Experiment("permuted-stream", SIZES, grid, table, plot, result)
