"""An experiment from its grid to its table and plot: ``reproduce("sparsity", Request("laptop"), Path("results"))``."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cavity.studies.experiments import EXPERIMENTS
from cavity.studies.experiments.experiment import Experiment, find, longest
from cavity.studies.experiments.grid import Failure, run_grid
from cavity.studies.experiments.plots import save
from cavity.studies.experiments.progress import Display
from cavity.studies.experiments.scale import Request
from cavity.studies.experiments.select import groups
from cavity.studies.experiments.store import Store
from cavity.training.display import say
from cavity.util.files import write_whole
from cavity.util.regular import own_folder
from cavity.util.text import shown_lines

__all__ = ["Request", "reproduce"]

TABLE = "table.md"


def reproduce(name: str, request: Request, out: Path, *, jobs: int = 1, tables_only: bool = False) -> list[Failure]:
    """Run one experiment, write its table and its plot, and return the cells that failed."""
    experiment, store, console = find(name), Store(out / name), Console()
    failures = []
    if not tables_only:
        say(console, f"{name}: {EXPERIMENTS[name]}")
        failures = run_grid(experiment, experiment.cells(request), store, jobs, Display(console))
    publish(experiment, store, request.scale, console)
    return failures


def publish(experiment: Experiment, store: Store, scale: str, console: Console) -> None:
    """Write ``table.md`` and the plot of the records there are of this scale."""
    records = longest(store.records(scale))
    if not records:
        say(console, f"{store.folder} has no finished cell of scale {scale}")
        return
    parts = {"": records} if experiment.datasets_beside else groups(records, lambda record: record.cell.setup.dataset)
    tables, paths = [], [own_folder(store.folder) / TABLE]
    for dataset, part in parts.items():
        head, tail = ("", "") if len(parts) == 1 else (f"Data: {dataset}.\n\n", f"-{dataset}")
        tables.append(head + experiment.table(part))
        paths += save(experiment.plot(part), store.folder / f"{experiment.name}{tail}")
    text = shown_lines("\n\n".join(tables))
    write_whole(paths[0], f"{text}\n".encode())
    say(console, text)
    say(console, "written: " + ", ".join(map(str, paths)))
