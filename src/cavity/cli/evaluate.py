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
    from cavity.runs.evaluation import Evaluation, NumberEvaluation
    from cavity.runs.folder import Run
    from cavity.runs.task import Task

#: Which network a number belongs to.
NETWORKS = {"bayes": "the posterior", "point": "the most probable weights, as exported"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="RUN", help="run folder")
    add("--dataset", metavar="DATA", help="a data set or your own file or folder (default: the run's)")
    add("--data-dir", metavar="DIR", help="folder to search first for data (default: $CAVITY_DATA, else a cache)")
    add("--label", metavar="COLUMN", help="label column if DATA is a table (default: the name that the run's has)")
    add("--part", choices=("test", "train"), default="test", help="which samples (default: test)")
    add(
        "--confusion",
        choices=tuple(NETWORKS),
        default="bayes",
        help="whose confusion matrix: the posterior's, or that of the most probable weights, which are exported",
    )
    add_data_changed(parser)
    add("--json", action="store_true", help="print one JSON object instead of tables")


def run(args: argparse.Namespace) -> int:
    from cavity.runs.evaluation import NumberEvaluation, evaluate, evaluate_numbers
    from cavity.runs.folder import open_run

    opened = open_run(args.run)
    net, task = opened.load_network(), opened.load_checkpoint().task
    assert task is not None
    data, notes = _data(opened, task, args)
    say_notes(notes)
    x, y = (data.x_test, data.y_test) if args.part == "test" else (data.x_train, data.y_train)
    result: Evaluation | NumberEvaluation
    result = evaluate(net, x, y, task.classes) if task.target is None else evaluate_numbers(net, x, y, task.target)
    if args.json:
        print(json.dumps({"run": str(opened.path), "dataset": data.name, "part": args.part, **result.as_dict()}))
    elif isinstance(result, NumberEvaluation):
        say(f"{opened.path} on {data.name}, {args.part}: {result.samples} samples")
        say(f"root mean squared error, point-wise {result.rmse:.4g}, Bayesian {result.rmse_bayes:.4g}")
        say(f"variance explained {100 * result.r2:.1f} %, negative log-likelihood {result.nll:.4f}")
        say(f"labels within the 90 % interval {100 * result.coverage:.1f} %")
    else:
        _show(result, f"{opened.path} on {data.name}, {args.part}", args.confusion)
    return 0


def _data(opened: Run, task: Task, args: argparse.Namespace) -> tuple[Dataset, tuple[str, ...]]:
    """The run's own data, or others in the run's own standardisation, and what is to be said about them."""
    from cavity.runs.folder import Run
    from cavity.runs.matching import find_data, load_other, trained_on

    if args.dataset is None:
        config = opened.config if args.data_dir is None else opened.config.replace(data_dir=args.data_dir)
        found = find_data(Run(opened.path, config), args.data_changed)
        return found.dataset, found.notes
    if args.data_changed is not None:
        raise UsageError("--data-changed is about the run's own data: it does not go with --dataset")
    data = load_other(opened, args.dataset, args.label, args.data_dir)
    seen = trained_on(task, data, args.part) if args.part == "test" else 0
    note = f"the network was trained on {seen} of these {len(data.x_test)} samples: the result is too good"
    return data, (note,) if seen else ()


def _show(result: Evaluation, title: str, method: str) -> None:
    from rich.console import Console
    from rich.table import Column, Table

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = 200
    numbers = Table(show_header=False, box=None, pad_edge=False)
    numbers.add_row("accuracy, point-wise", f"{result.accuracy:.2f} % ({NETWORKS['point']})")
    numbers.add_row("accuracy, Bayesian", f"{result.accuracy_bayes:.2f} % ({NETWORKS['bayes']})")
    numbers.add_row("negative log-likelihood", f"{result.nll:.4f}")
    numbers.add_row("expected calibration error", f"{result.ece:.4f}")
    numbers.add_row("Brier score", f"{result.brier:.4f}")
    classes = [shown(name) for name in result.classes]
    confusion = Table("", *(Column(name, justify="right") for name in classes), box=None, pad_edge=False)
    counts = result.confusion if method == "bayes" else result.confusion_point
    for name, row in zip(classes, counts, strict=True):
        confusion.add_row(name, *(str(count) if count else "·" for count in row))
    say(f"{title}: {result.samples} samples")
    console.print(numbers)
    say(f"\nconfusion matrix of {NETWORKS[method]} (rows: truth, columns: prediction)")
    console.print(confusion)
