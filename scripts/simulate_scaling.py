"""What a step costs when its mini-batch is split over many processes: a simulation of the way down.

A process computes, layer after layer from the last to the first; each all-reduce waits for the one before it and then
takes its own time, of which a part (``stolen``) is the processor's; a layer's update waits for its all-reduce.

First the measurement of ``bench_distributed.py`` is reproduced from its parts: computing times of processes that do not
talk, and the times of all-reduces by themselves. On a CPU whose processors all compute, gloo's copying and adding takes
time from them: stolen = 1. Then GPUs are predicted, whose figures are assumptions (``GPU``, ``NETWORKS``); NCCL's time
is taken to be hidden where computing goes on: stolen = 0.

    python scripts/simulate_scaling.py docs/data/distributed-mf.json docs/data/distributed-bp.json
"""

from __future__ import annotations

import argparse
import json
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

BYTES = 4
#: Matrix products for each weight and sample, and passes over a layer's weights in its update. BP with series of
#: order 2 in all layers.
PRODUCTS = {"mf": 4, "amp": 6, "bp": 8}
PASSES = 12
COUNTS = (8, 64, 256, 1024)
NETS = {"784-501-501-10": (784, 501, 501, 10), "1e8 weights": (4096,) * 7}
#: Samples of each GPU.
BATCHES = (128, 1024)


class Gpu(NamedTuple):
    """Multiplications and additions per second that products reach, and bytes per second of its memory."""

    flops: float
    memory: float


class Network(NamedTuple):
    """Bytes per second of an all-reduce along a ring of GPUs, and seconds for each doubling of their number."""

    bandwidth: float
    latency: float


GPU = Gpu(flops=4e13, memory=1.5e12)
GPUS_IN_MACHINE = 8
INSIDE = Network(2e11, 5e-6)
#: Between machines: one card of 200 Gbit/s, or one for each GPU.
NETWORKS = {"one card": Network(2.2e10, 1e-5), "one card per GPU": Network(1.6e11, 1e-5)}


class Layer(NamedTuple):
    """Bytes of the fields of one layer, and seconds of its way down and its update."""

    bytes: int
    down: float
    update: float


def step_seconds(
    before: float, layers: Sequence[Layer], talk: Callable[[int], float], stolen: float, first: int = 0
) -> float:
    """A step: ``before`` the way down, then the layers, given from the last to the first; ``first`` bytes that must be
    agreed on before the way down."""
    now = before + (talk(first) if first else 0.0)
    network, arrivals = 0.0, []
    for layer in layers:
        took = talk(layer.bytes)
        now += layer.down + stolen * took
        network = max(network, now) + (1 - stolen) * took
        arrivals.append(network)
    for layer, arrival in zip(layers, arrivals, strict=True):
        now = max(now, arrival) + layer.update
    return now


def interpolated(table: dict[str, float]) -> Callable[[int], float]:
    """Seconds of an all-reduce of so many bytes, between the sizes that were measured."""
    sizes = sorted(map(int, table))

    def talk(size: int) -> float:
        place = min(max(bisect_left(sizes, size), 1), len(sizes) - 1)
        low, high = sizes[place - 1], sizes[place]
        at_low, at_high = table[str(low)], table[str(high)]
        return at_low + (at_high - at_low) * (size - low) / (high - low)

    return talk


class Reproduction(NamedTuple):
    """Seconds of a step as measured and as simulated."""

    algorithm: str
    alone: float
    silent: float
    measured: float
    simulated: float


def reproduce(found: dict[str, Any]) -> Reproduction:
    """The measured step from its parts."""
    parts, silent = found["parts"], found["seconds"]["silent"]
    shapes = list(pairwise(found["sizes"]))[::-1]
    layers = [Layer(BYTES * n * k, parts[f"down {n}x{k}"], parts[f"update {n}x{k}"]) for n, k in shapes]
    before = silent - sum(layer.down + layer.update for layer in layers)
    # BP and BPI agree on the largest edge of each layer but the last.
    first = BYTES * (len(layers) - 1) if found["algorithm"] in ("bp", "bpi") else 0
    simulated = step_seconds(before, layers, interpolated(found["all_reduce"]), stolen=1.0, first=first)
    return Reproduction(found["algorithm"], found["seconds"]["alone"], silent, found["seconds"]["together"], simulated)


def ring(gpus: int, network: Network) -> Callable[[int], float]:
    """An all-reduce over that many GPUs: each sends and receives 2(p−1)/p of the bytes."""
    inside = gpus <= GPUS_IN_MACHINE
    bandwidth = INSIDE.bandwidth if inside else min(network.bandwidth, INSIDE.bandwidth)
    doublings = math.log2(gpus)
    within = min(doublings, math.log2(GPUS_IN_MACHINE))
    latency = INSIDE.latency * within + network.latency * (doublings - within)
    return lambda size: 2 * (gpus - 1) / gpus * size / bandwidth + latency


def gpu_step(widths: Sequence[int], algorithm: str, batch: int, talk: Callable[[int], float]) -> float:
    """A step of a network of binary weights with ``batch`` samples on each GPU."""
    layers, up = [], 0.0
    for inputs, outputs in list(pairwise(widths))[::-1]:
        weights = inputs * outputs
        product = 2 * weights * batch / GPU.flops
        up += 2 * product
        down = (PRODUCTS[algorithm] - 2) * product
        layers.append(Layer(BYTES * weights, down, PASSES * BYTES * weights / GPU.memory))
    first = BYTES * (len(layers) - 1) if algorithm == "bp" else 0
    return step_seconds(up, layers, talk, stolen=0.0, first=first)


def measured_table(rows: Sequence[Reproduction]) -> str:
    lines = ["| algorithm | one, ms | two, no communication | two, measured | two, simulated | samples/s, two to one |"]
    lines.append("|---" * 6 + "|")
    for row in rows:
        times = (row.alone, row.silent, row.measured, row.simulated)
        cells = " | ".join(f"{1e3 * seconds:.1f}" for seconds in times)
        lines.append(f"| {row.algorithm.upper()} | {cells} | {2 * row.alone / row.measured:.2f} |")
    return "\n".join(lines)


def predicted_table(algorithm: str) -> str:
    """Milliseconds of a step on one GPU, and the share of ideal weak scaling that is left on many."""
    lines = ["| network | samples per GPU | one GPU, ms | between machines | " + " | ".join(map(str, COUNTS)) + " |"]
    lines.append("|---" * (4 + len(COUNTS)) + "|")
    for name, widths in NETS.items():
        for batch in BATCHES:
            one = gpu_step(widths, algorithm, batch, lambda size: 0.0)
            for cards, network in NETWORKS.items():
                shares = [one / gpu_step(widths, algorithm, batch, ring(gpus, network)) for gpus in COUNTS]
                cells = " | ".join(f"{100 * share:.0f} %" for share in shares)
                lines.append(f"| {name} | {batch} | {1e3 * one:.3g} | {cards} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path, nargs="+", help="what bench_distributed.py wrote")
    parser.add_argument("--algorithm", default="mf", choices=tuple(PRODUCTS))
    options = parser.parse_args()
    print(measured_table([reproduce(json.loads(path.read_text())) for path in options.measured]))
    print()
    print(predicted_table(options.algorithm))


if __name__ == "__main__":
    main()
