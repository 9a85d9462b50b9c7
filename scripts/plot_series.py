"""How good and how fast the series are, against order and polarisation: the picture in docs/benchmarks.md.

A layer of 501 sign units sees 128 standard normal samples of 784 inputs, with weight means m = tanh(c·z), z standard
normal, c such that the mean of m² is q₀, and standard normal fields B from above. The error is that of H and B relative
to their largest entries: of the plain series, with one factor in a hundred evaluated exactly, and with products beyond
order 0 of bfloat16 numbers. The time is that of both sums, relative to exact evaluation in the same run.

    python scripts/plot_series.py --json docs/data/series.json --plot docs/images/series.png
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import cavity
from cavity.core.algorithms.series import series_sums
from cavity.core.algorithms.sums import exact_sums
from cavity.core.arithmetic import Series
from cavity.core.couplings import Dense
from cavity.core.messages import Fields, Preactivation
from cavity.core.state import Factor
from cavity.engine.compiling import kernels
from cavity.engine.looking import relative_error

POLARISATIONS = (0.1, 0.4, 0.75, 0.9, 0.97, 0.99, 0.998)
ORDERS = (1, 2, 3, 4, 6, 8)
#: Title, share of exact factors, half precision, line.
KINDS = (
    ("series", 0.0, False, "o-"),
    ("1 % of the factors exact", 0.01, False, "s--"),
    ("bfloat16 beyond order 0", 0.0, True, "v:"),
)
SAMPLES, INPUTS, UNITS = 128, 784, 501
TOLERANCE = 1e-3

Row = dict[str, Any]


def means(q: float, generator: torch.Generator) -> torch.Tensor:
    """m = tanh(c·z) with mean square q, (units, inputs); c by bisection."""
    z = torch.randn(UNITS, INPUTS, generator=generator)
    low, high = 1e-3, 1e4
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if float(torch.tanh(middle * z).square().mean()) < q else (low, middle)
    return torch.tanh(high * z)


def best_seconds(function: Callable[[], object], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best


def measure(q: float, repeats: int) -> list[Row]:
    """Error and time of every series at one polarisation."""
    generator = torch.Generator().manual_seed(0)
    coupling, m = Dense(INPUTS, UNITS), means(q, generator)
    x, B = torch.randn(SAMPLES, INPUTS, generator=generator), torch.randn(SAMPLES, UNITS, generator=generator)
    pre = Preactivation(coupling.apply(m, x), coupling.apply(1 - m.square(), x.square()).clamp_min(1e-4))
    factor, fuse = Factor(cavity.Sign(), Fields(B, None), pre), kernels(True).fuse
    exact = exact_sums(coupling, factor, m, x, True, fuse=fuse)
    reference = best_seconds(lambda: exact_sums(coupling, factor, m, x, True, fuse=fuse), repeats)
    assert exact.inputs is not None
    found = []
    for kind, share, half, _ in KINDS:
        for order in ORDERS:
            series = Series(order, share)
            guess = series_sums(coupling, factor, m, x, series, True, half)
            assert guess.inputs is not None
            error = max(relative_error(guess.inputs, exact.inputs), relative_error(guess.weights, exact.weights))
            sums = partial(series_sums, coupling, factor, m, x, series, True, half)
            seconds = best_seconds(sums, repeats)
            found.append({"q0": q, "kind": kind, "order": order, "error": error, "time": seconds / reference})
    return found


def draw(found: list[Row], path: Path) -> None:
    figure = Figure(figsize=(15, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    *errors, times = figure.subplots(1, len(KINDS) + 1)
    for axes, (kind, *_) in zip(errors, KINDS, strict=True):
        for number, q in enumerate(POLARISATIONS):
            rows = [row for row in found if row["q0"] == q and row["kind"] == kind]
            orders, gaps = [row["order"] for row in rows], [row["error"] for row in rows]
            axes.semilogy(orders, gaps, "o-", color=f"C{number}", label=f"q₀ = {q}")
        axes.axhline(TOLERANCE, color="black", linestyle=":", linewidth=1)
        axes.set(xlabel="order of the series", ylim=(1e-7, 10), title=f"error: {kind}")
        axes.grid(alpha=0.3)
    errors[0].set(ylabel="largest error of B and H / largest entry")
    for kind, _, _, style in KINDS:
        rows = [row for row in found if row["q0"] == POLARISATIONS[1] and row["kind"] == kind]
        times.semilogy([row["order"] for row in rows], [row["time"] for row in rows], style, color="black", label=kind)
    times.set(xlabel="order of the series", ylabel="time / time of exact evaluation", title="time")
    times.axhline(1.0, color="black", linestyle=":", linewidth=1)
    times.grid(alpha=0.3, which="both")
    times.legend(fontsize=8)
    figure.legend(*errors[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--plot", type=Path, required=True)
    parser.add_argument("--redraw", action="store_true", help="only draw what is in --json")
    options = parser.parse_args()
    if options.redraw:
        draw(json.loads(options.json.read_text()), options.plot)
        return
    torch.set_num_threads(options.threads)
    found = []
    for q in POLARISATIONS:
        found += measure(q, options.repeats)
        for row in found[-len(ORDERS) * len(KINDS) :]:
            q0, kind, order, error, seconds = row.values()
            print(f"q0 {q0}  {kind}, order {order}: error {error:.2e}, time {seconds:.3g}", flush=True)
    options.json.write_text(json.dumps(found, indent=1) + "\n")
    draw(found, options.plot)


if __name__ == "__main__":
    main()
