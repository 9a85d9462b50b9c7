"""Time per epoch against batch size, by ``cavity bench``: the paper's Fig. "times".

784-101-101-1 on Fashion-MNIST, two classes, for which the paper's numbers are known (``bench/paper.py``); they
are of a GPU, so that only the ratios to BinaryNet can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cavity.studies.bench import paper
from cavity.studies.experiments.experiment import Cell, Experiment, Record
from cavity.studies.experiments.scale import TWO_CLASS, Request, Size, smoke
from cavity.studies.experiments.setup import TITLES, Setup
from cavity.studies.experiments.table import markdown, measured, number, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cavity.studies.experiments.training import Progress

METHODS = ("binarynet", "bp", "bpi", "amp", "mf")
CONTENDERS = ("binarynet", "binarynet-compiled", "mf", "amp", "bpi", "bp")
#: How each scale is measured. ``arguments`` in the sizes say the same: they are in the names of the records there are.
MEASUREMENT: dict[str, dict[str, Any]] = {
    "smoke": {"repeats": 1, "steps": 2, "eager": True},
    "laptop": {"repeats": 3},
    "paper": {},
}
SIZES = {
    "smoke": smoke(
        two_class=True, epochs=1, batches=(16, 128), arguments=["--repeats", "1", "--steps", "2", "--eager"]
    ),
    "laptop": Size(
        1, 1, ("fashion-mnist-two-class",), 101, options={"batches": paper.BATCH_SIZES, "arguments": ["--repeats", "3"]}
    ),
    "paper": Size(1, 1, ("fashion-mnist-two-class",), 101, options={"batches": paper.BATCH_SIZES, "arguments": []}),
}


def cells(request: Request) -> list[Cell]:
    size = request.size(SIZES)
    return [
        Cell(
            f"{dataset}-batch-{batch}",
            Setup("bp", dataset, (size.width,) * 2, 1, seed, batch),
            request.scale,
            {"arguments": size.option("arguments")},
        )
        for seed in range(size.seeds)
        for dataset in size.datasets
        for batch in size.option("batches")
    ]


def result(cell: Cell, folder: Path, progress: Progress) -> dict[str, Any]:
    """What ``cavity bench`` measures at one batch size."""
    from rich.console import Console

    from cavity.studies.bench.options import Options
    from cavity.studies.bench.running import run

    setup = cell.setup
    options = Options(
        batch_size=[setup.batch_size],
        hidden=setup.hidden,
        algorithms=CONTENDERS,
        dataset=setup.dataset.removesuffix(TWO_CLASS),
        two_class=setup.two_class,
        seed=setup.seed,
        **MEASUREMENT[cell.scale],
    )
    found = run(options, Console()).as_dict()
    progress(1, 1)
    return {"timings": found["timings"], "network": found["network"]}


def seconds(records: Sequence[Record], method: str, batch: int) -> list[float]:
    """Seconds per epoch, one for each seed; for BinaryNet the faster of plain and compiled."""
    names = ("binarynet", "binarynet-compiled") if method == "binarynet" else (method,)
    of_batch = [record for record in records if record.cell.setup.batch_size == batch]
    by_record = [[t["seconds_per_epoch"] for t in r.result["timings"] if t["algorithm"] in names] for r in of_batch]
    return [min(times) for times in by_record if times]


def batches(records: Sequence[Record]) -> list[int]:
    return sorted({record.cell.setup.batch_size for record in records})


def theirs(method: str, batch: int) -> float | None:
    """The paper's seconds per epoch, where it has that batch size."""
    place = paper.BATCH_SIZES.index(batch) if batch in paper.BATCH_SIZES else None
    return None if place is None else paper.SECONDS_PER_EPOCH[method][place]


def table(records: Sequence[Record]) -> str:
    head = [
        "batch",
        "method",
        "ours (s)",
        f"paper (s, {paper.MACHINE})",
        "ours / BinaryNet",
        "paper / BinaryNet",
        "verdict",
    ]
    rows = []
    for batch in batches(records):
        rival, paper_rival = measured(seconds(records, "binarynet", batch)), theirs("binarynet", batch)
        for method in METHODS:
            ours, published = measured(seconds(records, method, batch)), theirs(method, batch)
            ratio = ours.mean / rival.mean if ours and rival else None
            paper_ratio = published / paper_rival if published and paper_rival else None
            verdict = "–"
            if ratio is not None and paper_ratio is not None and method != "binarynet":
                verdict = "lower ratio" if ratio <= paper_ratio else "higher ratio"
            rows.append(
                [
                    str(batch),
                    TITLES[method],
                    number(ours),
                    "–" if published is None else f"{published:g}",
                    "–" if ratio is None else f"{ratio:.2f}",
                    "–" if paper_ratio is None else f"{paper_ratio:.2f}",
                    verdict,
                ]
            )
    network = "-".join(map(str, records[0].result["network"]))
    text = f"Seconds per epoch of {network}, {records[0].cell.setup.dataset}; the paper's on a GPU."
    return page("Time per epoch", records, text, markdown(head, rows))


def plot(records: Sequence[Record]) -> Figure:
    from matplotlib.ticker import NullFormatter, NullLocator, StrMethodFormatter

    from cavity.studies.experiments.plots import COLOURS, finish, sheet

    figure, (ours, published) = sheet("Time per epoch", records, columns=2)
    sizes = batches(records)
    for method in METHODS:
        points = [(batch, measured(seconds(records, method, batch))) for batch in sizes]
        there = [(batch, value.mean) for batch, value in points if value is not None]
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


EXPERIMENT = Experiment("timing", cells, result, table, plot)
