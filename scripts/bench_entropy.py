"""What an evaluation of the free entropy costs, against a training step on the same samples by the same algorithm.

    python scripts/bench_entropy.py [--compile]

An evaluation is what is left to do once message passing has converged; the iterations that lead there are timed beside
it. A step is ``Trainer.step`` with its defaults: one iteration, cavity sums by a series. With --compile all three run
as fused kernels. Sign units and an argmax (noisy signs and labels for mean field), 128 samples, one thread, processor
time, the three in turn, the best of twelve. BP keeps three numbers for every edge of every sample: its networks are
smaller.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

import cavity
from cavity.analysis.entropy.evidence import runner
from cavity.core.algorithms import ALGORITHMS
from cavity.core.entropy import fixed_point, free_entropy, prior_states
from cavity.core.entropy.fixed_point import with_cavities

NETWORKS = (
    ("mf", 784, (501, 501)),
    ("amp", 784, (501, 501)),
    ("amp", 64, (101, 101)),
    ("bp", 784, (101,)),
    ("bp", 64, (101, 101)),
    ("bpi", 784, (101,)),
    ("bpi", 64, (101, 101)),
)
SAMPLES, REPEATS = 128, 12


def seconds(*works: Callable[[], object]) -> list[float]:
    """The least processor time of each, taken in turn."""
    found: list[list[float]] = [[] for _ in works]
    for _ in range(REPEATS):
        for work, times in zip(works, found, strict=True):
            started = time.process_time()
            work()
            times.append(time.process_time() - started)
    return list(map(min, found))


@torch.no_grad()
def measured(name: str, inputs: int, hidden: tuple[int, ...], compiled: bool) -> list[float]:
    """Seconds of a training step, of an iteration and of an evaluation."""
    noisy = name == "mf"
    output = cavity.Label(1.0) if noisy else cavity.ArgMax()
    net = cavity.mlp(inputs, hidden, 10, activation=cavity.Sign(1.0 if noisy else 0.0), output=output)
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(SAMPLES, inputs, generator=generator), torch.randint(0, 10, (SAMPLES,), generator=generator)
    if noisy:
        y = 2 * torch.nn.functional.one_hot(y, 10) - 1
    method, sites, run = ALGORITHMS.make(name), net.sites, runner(net, compiled)
    point = fixed_point(method, sites, prior_states(sites, net.states(), 0.5), x, y, 6, 1e-9, run)
    given, chain = (method, sites, point.states, point.pres, x, y), with_cavities(sites)
    evaluate, trainer = run.kernels.of(free_entropy, None, given), cavity.Trainer(net, name, compile=compiled)
    for _ in range(9):
        # The first steps look for a series, and each that is found is compiled.
        trainer.step(x, y)
    return seconds(
        lambda: trainer.step(x, y),
        lambda: run(method, chain, point.states, x, y, remember=True),
        lambda: evaluate(*given),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile", action="store_true", help="fused kernels, which takes some minutes")
    args = parser.parse_args()
    torch.set_num_threads(1)
    print("| algorithm | network | training step | iteration | evaluation | evaluation / step |")
    print("|---" * 6 + "|")
    for name, inputs, hidden in NETWORKS:
        step, iteration, evaluation = measured(name, inputs, hidden, args.compile)
        times = " | ".join(f"{1e3 * one:.1f} ms" for one in (step, iteration, evaluation))
        print(f"| {name.upper()} | {'-'.join(map(str, (inputs, *hidden, 10)))} | {times} | {evaluation / step:.2f} |")


if __name__ == "__main__":
    main()
