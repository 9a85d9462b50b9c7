"""Accuracy (point-wise and Bayesian), confusion, NLL, ECE and Brier score of a run on its test set or on other data.

    cavity evaluate runs/first
    cavity evaluate runs/first --dataset other.npz --json

In Python: run = cavity.runs.open_run("runs/first"); data = run.load_dataset()
           cavity.runs.evaluate(run.load_network(), data.x_test, data.y_test, data.classes)
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from cavity.cli.output import say, say_notes
from cavity.cli.parser import UsageError, add_data_changed
from cavity.util.text import shown

if TYPE_CHECKING:
    from cavity.data import Dataset
    from cavity.runs.checkpoint import Task
    from cavity.runs.evaluation import Evaluation
    from cavity.runs.folder import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument("--dataset", metavar="DATA", help="a data set or your own file or folder (default: the run's)")
    parser.add_argument("--data-dir", metavar="DIR", help="folder to search first for data")
    parser.add_argument("--label", metavar="COLUMN", help="name of the label column if DATA is a table")
    parser.add_argument("--part", choices=("test", "train"), default="test", help="which samples (default: test)")
    add_data_changed(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(args: argparse.Namespace) -> int:
    from cavity.runs.evaluation import evaluate
    from cavity.runs.folder import open_run

    opened = open_run(args.run)
    net, task = opened.load_network(), opened.load_checkpoint().task
    assert task is not None
    data, notes = _data(opened, task, args)
    say_notes(notes)
    x, y = (data.x_test, data.y_test) if args.part == "test" else (data.x_train, data.y_train)
    result = evaluate(net, x, y, task.classes)
    if args.json:
        print(json.dumps({"run": str(opened.path), "dataset": data.name, "part": args.part, **result.as_dict()}))
    else:
        _show(result, f"{opened.path} on {data.name}, {args.part}")
    return 0


def _data(opened: Run, task: Task, args: argparse.Namespace) -> tuple[Dataset, tuple[str, ...]]:
    """The run's own data, or others in the run's own standardisation, and what is to be said about them."""
    from cavity.runs.folder import Run, load_data
    from cavity.runs.matching import find_data, in_units_of, trained_on

    config = opened.config if args.data_dir is None else opened.config.replace(data_dir=args.data_dir)
    if args.dataset is None:
        found = find_data(Run(opened.path, config), args.data_changed)
        return found.dataset, found.notes
    if args.data_changed is not None:
        raise UsageError("--data-changed is about the run's own data: it does not go with --dataset")
    data = load_data(config.replace(dataset=args.dataset, label=args.label, data_options=None), standardize=False)
    if data.n_features != task.inputs or data.n_classes != len(task.classes):
        raise ValueError(
            f"{args.dataset} has {data.n_features} features in {data.n_classes} classes, the run was trained on "
            f"{task.inputs} in {len(task.classes)}"
        )
    seen = trained_on(task, data, args.part) if args.part == "test" else 0
    note = f"the network was trained on {seen} of these {len(data.x_test)} samples: the result is too good"
    return in_units_of(task, data), (note,) if seen else ()


def _show(result: Evaluation, title: str) -> None:
    from rich.console import Console
    from rich.table import Column, Table

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = 200
    numbers = Table(show_header=False, box=None, pad_edge=False)
    numbers.add_row("accuracy, point-wise", f"{result.accuracy:.2f} %")
    numbers.add_row("accuracy, Bayesian", f"{result.accuracy_bayes:.2f} %")
    numbers.add_row("negative log-likelihood", f"{result.nll:.4f}")
    numbers.add_row("expected calibration error", f"{result.ece:.4f}")
    numbers.add_row("Brier score", f"{result.brier:.4f}")
    classes = [shown(name) for name in result.classes]
    confusion = Table("", *(Column(name, justify="right") for name in classes), box=None, pad_edge=False)
    for name, row in zip(classes, result.confusion, strict=True):
        confusion.add_row(name, *(str(count) if count else "·" for count in row))
    say(f"{title}: {result.samples} samples")
    console.print(numbers)
    say("\nconfusion matrix (rows: truth, columns: Bayesian prediction)")
    console.print(confusion)
