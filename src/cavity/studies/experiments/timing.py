"""Time per epoch against batch size, by ``cavity bench``: the paper's Fig. "times".

784-101-101-1 on Fashion-MNIST, two classes, for which the paper's numbers are known (``bench/paper.py``); they
are of a GPU, so that only the ratios to BinaryNet can be compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console

from cavity.studies.bench import paper
from cavity.studies.bench.options import Options
from cavity.studies.bench.plot import beside
from cavity.studies.bench.running import run
from cavity.studies.experiments import TWO_CLASS, Progress, Size, smoke
from cavity.studies.experiments.experiment import Cell, Experiment, Grid, Records
from cavity.studies.experiments.setup import TITLES, setups
from cavity.studies.experiments.table import Measured, by, markdown, measured, number, page, settings

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


def seconds(records: Records, method: str) -> Measured | None:
    """Seconds per epoch; for BinaryNet the faster of plain and compiled."""
    names = ("binarynet", "binarynet-compiled") if method == "binarynet" else (method,)
    times = [[t["seconds_per_epoch"] for t in r.result["timings"] if t["algorithm"] in names] for r in records]
    return measured(min(found, default=None) for found in times)


def theirs(method: str, batch: int) -> float | None:
    """The paper's seconds per epoch, where it has that batch size."""
    return dict(zip(paper.BATCH_SIZES, paper.SECONDS_PER_EPOCH[method], strict=True)).get(batch)


def table(records: Records) -> str:
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


def plot(records: Records) -> Figure:
    by_batch = by(records, "batch_size")
    ours = {
        method: [(batch, value.mean) for batch, chosen in by_batch.items() if (value := seconds(chosen, method))]
        for method in METHODS
    }
    title = f"Time per epoch\n{settings(records)}"
    measured = {method: points for method, points in ours.items() if points}
    return beside(title, measured, f"cavity\n{records[0].machine}", f"paper, {paper.MACHINE}")


EXPERIMENT = Experiment("timing", SIZES, grid, table, plot, result)
