"""Results for people (a table) and for programs (JSON), with the machine, named by its cores and its processor only."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from rich.box import SIMPLE_HEAD
from rich.table import Table

from cavity.studies.bench.contenders import title_of
from cavity.studies.bench.timing import Timing
from cavity.studies.bench.whole import WholeRun

#: Raised when a field of the JSON changes its meaning.
SCHEMA = 4


@dataclass(frozen=True)
class Machine:
    """``processor`` is the CPU, ``device`` what was computed on: "cpu" or the GPU's model."""

    processor: str
    cores: int
    threads: int
    device: str
    torch: str

    def __str__(self) -> str:
        words = f"{self.cores} × {self.processor}, {self.threads} thread{'s' * (self.threads > 1)}, torch {self.torch}"
        return words if self.device == "cpu" else f"{self.device}, {words}"


def describe(device: torch.device) -> Machine:
    """This machine, as torch is set up now."""
    model = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return Machine(processor(), os.cpu_count() or 1, torch.get_num_threads(), model, torch.__version__)


def processor() -> str:
    """The model of the CPU, as far as the system tells."""
    table = Path("/proc/cpuinfo")
    if table.exists():
        for line in table.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine() or "unknown processor"


@dataclass(frozen=True)
class Result:
    """All that one run of the benchmark found; ``network`` is (inputs, hidden…, outputs)."""

    machine: Machine
    dataset: str
    network: list[int]
    steps: int
    repeats: int
    timings: list[Timing]
    whole_runs: list[WholeRun]

    def as_dict(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def timing_table(result: Result) -> Table:
    """One row for each algorithm, one section for each batch size.

    The columns are: orders of the series by layer, with ½ where products are of bfloat16 numbers; time, its ratio to
    the faster of plain and compiled BinaryNet and to the tuned one, the share of the bare matrix products in it, and
    the most memory that a step holds.
    """
    network = "-".join(map(str, result.network))
    caption = f"best of {result.repeats} turns, {result.machine}"
    titles = ("batch", "algorithm", "order", "ms/step", "ratio", "tuned", "share", "peak MB")
    table = _table(f"{network}, {result.dataset}", caption, titles)
    for _, section in groupby(result.timings, lambda timing: timing.batch_size):
        for timing in section:
            table.add_row(
                str(timing.batch_size),
                title_of(timing.algorithm),
                series_note(timing),
                f"{1e3 * timing.seconds_per_step:.3g}",
                "–" if timing.ratio is None else f"{timing.ratio:.2f}",
                "–" if timing.ratio_tuned is None else f"{timing.ratio_tuned:.2f}",
                f"{100 * timing.product_share:.0f} %",
                "–" if timing.peak_bytes is None else f"{timing.peak_bytes / 1e6:.3g}",
            )
        table.add_section()
    return table


def series_note(timing: Timing) -> str:
    """The orders of the series of the layers, such as "3 2 –", with "½" where their products are of half precision;
    nothing where no layer has one."""
    orders = [str(order) if order else "–" for order in timing.series_orders]
    return " ".join([*orders, "½"] if timing.half_products else orders) if any(timing.series_orders) else ""


def whole_table(result: Result) -> Table:
    """Seconds of whole runs and the errors they end with, one row for each algorithm; with a target, also the seconds
    of training until the 1-bit and the Bayesian error were first at or below it."""
    first = result.whole_runs[0]
    titles = ["algorithm", "seconds", "ratio", "error %", "Bayesian %"]
    if first.target is not None:
        titles += [f"s to {first.target:g} %", "Bayesian"]
    table = _table(f"{first.epochs} epochs, batch {first.batch_size}", "metrics and all", titles)
    for row in result.whole_runs:
        cells = [
            title_of(row.algorithm),
            f"{row.seconds:.1f}",
            "–" if row.ratio is None else f"{row.ratio:.2f}",
            f"{row.error:.2f}",
            "–" if row.error_bayes is None else f"{row.error_bayes:.2f}",
        ]
        if first.target is not None:
            times = row.seconds_to_target, row.seconds_to_target_bayes
            cells += ["–" if seconds is None else f"{seconds:.1f}" for seconds in times]
        table.add_row(*cells)
    return table


def _table(title: str, caption: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, justify="left" if column == "algorithm" else "right", no_wrap=True)
    return table
