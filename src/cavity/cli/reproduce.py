"""Run an experiment of the paper and set it beside the published numbers.

    cavity reproduce --list
    cavity reproduce table-datasets --seeds 1 --datasets fashion-mnist,mnist-two-class
    cavity reproduce sparsity --scale laptop --jobs 2
    cavity reproduce all --scale smoke --out /tmp/smoke

Finished cells are skipped and an interrupted one goes on from its checkpoint, so the same command goes on after an
interruption. Results are written below --out: NAME/records, NAME/table.md, NAME/NAME.png and .svg.

In Python: cavity.cli.reproduce.reproduce("sparsity", Request("laptop"), Path("results"), jobs=2)
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.cli.parser import UsageError
from cavity.studies.experiments import EXPERIMENTS
from cavity.studies.experiments.scale import SCALES, Request

if TYPE_CHECKING:
    from rich.console import Console

    from cavity.studies.experiments.experiment import Experiment
    from cavity.studies.experiments.grid import Failure
    from cavity.studies.experiments.store import Store

ALL = "all"
FAILED = 1
TABLE = "table.md"


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a positive whole number, got {text!r}")
    return int(text)


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
    add("--jobs", type=count, default=1, metavar="N", help="cells at once, with equal threads; 0: in this process")
    add("--out", type=Path, default=Path("results"), metavar="DIR", help="where results go (default: results)")
    add("--tables", action="store_true", help="only draw tables and plots again from the records there are")


def listing() -> str:
    width = max(map(len, EXPERIMENTS))
    return "\n".join(f"{name:<{width}}  {text}" for name, (_, text) in EXPERIMENTS.items())


def run(args: argparse.Namespace) -> int:
    if args.list:
        print(listing())
        return 0
    if args.name is None:
        raise UsageError("name an experiment, or list them with --list (see cavity reproduce --help)")
    request = Request(args.scale, args.seeds, args.epochs, args.datasets)
    names = list(EXPERIMENTS) if args.name == ALL else [args.name]
    failures: list[Failure] = []
    try:
        for name in names:
            failures += reproduce(name, request, args.out, jobs=args.jobs, tables_only=args.tables)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here")
        raise
    for failure in failures:
        print(f"failed: {failure.cell.key}: {failure.reason} (see {failure.details})")
    return FAILED if failures else 0


def reproduce(name: str, request: Request, out: Path, *, jobs: int = 1, tables_only: bool = False) -> list[Failure]:
    """Run one experiment, write its table and its plot, and return the cells that failed."""
    from rich.console import Console

    from cavity.studies.experiments.experiment import find
    from cavity.studies.experiments.grid import run_grid
    from cavity.studies.experiments.progress import Display
    from cavity.studies.experiments.store import Store

    experiment, store, console = find(name), Store(out / name), Console()
    failures = []
    if not tables_only:
        console.print(f"{name}: {EXPERIMENTS[name][1]}", markup=False, highlight=False, soft_wrap=True)
        failures = run_grid(experiment, experiment.cells(request), store, jobs, Display(console))
    publish(experiment, store, request.scale, console)
    return failures


def publish(experiment: Experiment, store: Store, scale: str, console: Console) -> None:
    """Write ``table.md`` and the plot of the records there are of this scale."""
    from cavity.studies.experiments.experiment import longest
    from cavity.studies.experiments.plots import save
    from cavity.studies.experiments.select import groups

    records = longest(store.records(scale))
    if not records:
        console.print(f"{store.folder} has no finished cell of scale {scale}", soft_wrap=True)
        return
    parts = {"": records} if experiment.datasets_beside else groups(records, lambda record: record.cell.setup.dataset)
    tables = {dataset: experiment.table(part) for dataset, part in parts.items()}
    text = "\n\n".join(
        table if len(parts) == 1 else f"Data: {dataset}.\n\n{table}" for dataset, table in tables.items()
    )
    (store.folder / TABLE).write_text(text + "\n", encoding="utf-8")
    paths = []
    for dataset, part in parts.items():
        name = experiment.name if len(parts) == 1 else f"{experiment.name}-{dataset}"
        paths += save(experiment.plot(part), store.folder / name)
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print("written: " + ", ".join(map(str, [store.folder / TABLE, *paths])), soft_wrap=True)
