"""Run an experiment of the paper and set it beside the published numbers.

    cavity reproduce --list
    cavity reproduce table-datasets --seeds 1 --datasets fashion-mnist,mnist-two-class
    cavity reproduce sparsity --scale laptop --jobs 2
    cavity reproduce permuted-stream --tasks 1000 --hidden 100 --methods mf
    cavity reproduce all --scale smoke --out /tmp/smoke

Finished cells are skipped and an interrupted one continues from its checkpoint: after an interruption, run the same
command again. Results are written below --out: NAME/records, NAME/table.md, NAME/NAME.png and .svg.

In Python: from cavity.studies.experiments.running import Request, reproduce
           reproduce("sparsity", Request("laptop"), Path("results"), jobs=2)
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.cli.output import say
from cavity.cli.parser import UsageError, positive
from cavity.studies.experiments import EXPERIMENTS, SCALES, Request

if TYPE_CHECKING:
    from cavity.studies.experiments.running import Failure


def count(text: str) -> int:
    return 0 if text == "0" else positive(text)


def words(text: str) -> tuple[str, ...]:
    """``mnist,fashion-mnist-two-class``."""
    return tuple(word for word in text.split(",") if word)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="an experiment (see --list), or all of them: all")
    add("--list", action="store_true", help="list the experiments")
    add("--scale", choices=SCALES, default="paper", help="size: the paper's (default), reduced, or a smoke test")
    add("--seeds", type=positive, metavar="N", help="seeds 0 to N-1 (default: by --scale, the paper's is 5)")
    add("--epochs", type=positive, metavar="N", help="epochs (default: by --scale)")
    add("--datasets", type=words, metavar="A,B", help="data sets, each also with -two-class (default: by --scale)")
    add("--methods", type=words, metavar="A,B", help="only cells of these methods, e.g. mf,binarynet (default: all)")
    add("--hidden", type=positive, metavar="N", help="units of a hidden layer (default: by --scale)")
    add("--tasks", type=positive, metavar="N", help="tasks of a sequence or stream (default: by --scale)")
    add("--memory", type=positive, metavar="N", help="tasks that a stream is remembered for (default: by --scale)")
    add("--jobs", type=count, default=1, metavar="N", help="cells at once, with equal threads; 0: in this process")
    add("--out", type=Path, default=Path("results"), metavar="DIR", help="where results go (default: results)")
    add("--tables", action="store_true", help="only redraw tables and plots from existing records")


def run(args: argparse.Namespace) -> int:
    if args.list:
        width = max(map(len, EXPERIMENTS))
        print("\n".join(f"{name:<{width}}  {text}" for name, text in EXPERIMENTS.items()))
        return 0
    if args.name is None:
        raise UsageError("name an experiment, or list them with --list (see cavity reproduce --help)")
    from cavity.studies.experiments.running import reproduce

    request = Request(
        args.scale, args.seeds, args.epochs, args.datasets, args.methods, args.hidden, args.tasks, args.memory
    )
    failures: list[Failure] = []
    try:
        for name in EXPERIMENTS if args.name == "all" else [args.name]:
            failures += reproduce(name, request, args.out, jobs=args.jobs, tables_only=args.tables)
    except KeyboardInterrupt:
        print("stopped; run the same command to go on")
        raise
    for failure in failures:
        details = f" (see {failure.details})" if failure.details.exists() else ""
        say(f"failed: {failure.cell.key}: {failure.reason}{details}")
    return 1 if failures else 0
