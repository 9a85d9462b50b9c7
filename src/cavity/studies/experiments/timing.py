"""Time per epoch against batch size, by ``cavity bench``: the paper's Fig. "times".

784-101-101-1 on Fashion-MNIST, two classes, for which the paper's numbers are known (``bench/paper.py``); they
are of a GPU, so that only the ratios to BinaryNet can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator, StrMethodFormatter
from rich.console import Console

from cavity.studies.bench import paper
from cavity.studies.bench.options import Options
from cavity.studies.bench.running import run
from cavity.studies.experiments.experiment import Cell, Experiment, Grid, Record
from cavity.studies.experiments.plots import COLOURS, finish, sheet
from cavity.studies.experiments.scale import TWO_CLASS, Size, smoke
from cavity.studies.experiments.select import by
from cavity.studies.experiments.setup import TITLES, setups
from cavity.studies.experiments.table import Measured, markdown, measured, number, page
from cavity.studies.experiments.training import Progress

METHODS = ("binarynet", "bp", "bpi", "amp", "mf")
RATIOS = ("ours / BinaryNet", "paper / BinaryNet", "verdict")
CONTENDERS = ("binarynet", "binarynet-compiled", "mf", "amp", "bpi", "bp")
DATASETS = ("fashion-mnist-two-class",)
SIZES = {
    "smoke": smoke(two_class=True, batches=(16, 128), measurement={"repeats": 1, "steps": 2, "eager": True}),
    "laptop": Size(1, 1, DATASETS, 101, options={"batches": paper.BATCH_SIZES, "measurement": {"repeats": 3}}),
    "paper": Size(1, 1, DATASETS, 101, options={"batches": paper.BATCH_SIZES, "measurement": {}}),
}


def grid(size: Size) -> Grid:
    arguments: list[str] = []
    # How it is measured is in the names of the records as on the command line of ``cavity bench``.
    for name, value in size.options["measurement"].items():
        arguments += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    for base in setups(size):
        for batch in size.options["batches"]:
            setup = base.replace(epochs=1, batch_size=batch, samples=None)
            yield f"{base.dataset}-batch-{batch}", setup, {"arguments": arguments}


def result(cell: Cell, folder: Path, progress: Progress) -> dict[str, Any]:
    """What ``cavity bench`` measures at one batch size."""
    setup = cell.setup
    options = Options(
        batch_size=[setup.batch_size],
        hidden=setup.hidden,
        algorithms=CONTENDERS,
        dataset=setup.dataset.removesuffix(TWO_CLASS),
        two_class=setup.two_class,
        seed=setup.seed,
        **SIZES[cell.scale].options["measurement"],
    )
    found = run(options, Console()).as_dict()
    progress(1, 1)
    return {"timings": found["timings"], "network": found["network"]}


def seconds(records: Sequence[Record], method: str) -> Measured | None:
    """Seconds per epoch; for BinaryNet the faster of plain and compiled."""
    names = ("binarynet", "binarynet-compiled") if method == "binarynet" else (method,)
    times = [[t["seconds_per_epoch"] for t in r.result["timings"] if t["algorithm"] in names] for r in records]
    return measured(min(found, default=None) for found in times)


def theirs(method: str, batch: int) -> float | None:
    """The paper's seconds per epoch, where it has that batch size."""
    return dict(zip(paper.BATCH_SIZES, paper.SECONDS_PER_EPOCH[method], strict=True)).get(batch)


def table(records: Sequence[Record]) -> str:
    rows = []
    for batch, chosen in by(records, "batch_size").items():
        rival, paper_rival = seconds(chosen, "binarynet"), theirs("binarynet", batch)
        for method in METHODS:
            ours, published = seconds(chosen, method), theirs(method, batch)
            ratio = ours.mean / rival.mean if ours and rival else None
            paper_ratio = published / paper_rival if published and paper_rival else None
            verdict = "–"
            if ratio is not None and paper_ratio is not None and method != "binarynet":
                verdict = "lower ratio" if ratio <= paper_ratio else "higher ratio"
            times = [number(ours), "–" if published is None else f"{published:g}"]
            shown = ["–" if value is None else f"{value:.2f}" for value in (ratio, paper_ratio)]
            rows.append([str(batch), TITLES[method], *times, *shown, verdict])
    network = "-".join(map(str, records[0].result["network"]))
    text = f"Seconds per epoch of {network}, {records[0].cell.setup.dataset}; the paper's on a GPU."
    head = ["batch", "method", "ours (s)", f"paper (s, {paper.MACHINE})", *RATIOS]
    return page("Time per epoch", records, text, markdown(head, rows))


def plot(records: Sequence[Record]) -> Figure:
    figure, (ours, published) = sheet("Time per epoch", records, 2)
    by_batch = by(records, "batch_size")
    sizes = list(by_batch)
    for method in METHODS:
        there = [(batch, value.mean) for batch, chosen in by_batch.items() if (value := seconds(chosen, method))]
        if there:
            ours.loglog(*zip(*there, strict=True), marker="o", color=COLOURS[method], label=TITLES[method])
        times = paper.SECONDS_PER_EPOCH[method]
        published.loglog(paper.BATCH_SIZES, times, marker="o", color=COLOURS[method], label=TITLES[method])
    for axes in (ours, published):
        axes.set_xticks(sizes, labels=list(map(str, sizes)))
        axes.xaxis.set_minor_locator(NullLocator())
        # The formatter of logarithmic axes writes mathematics, which these figures do not parse.
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    finish(ours, "batch size", "seconds per epoch", f"cavity\n{records[0].machine}")
    finish(published, "batch size", "seconds per epoch", f"paper, {paper.MACHINE}")
    return figure


EXPERIMENT = Experiment("timing", SIZES, grid, table, plot, result)
