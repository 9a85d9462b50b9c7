"""What an evaluation of the free entropy costs, in iterations of message passing on the same samples.

    python scripts/bench_entropy.py

784-501-501-10 for mean field and AMP, 64-101-101-10 for BP, which keeps a number for every edge and sample; sign units
and an argmax (noisy signs and labels for mean field), 128 samples, processor time, the best of five.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch

import cavity
from cavity.core.algorithms import ALGORITHMS
from cavity.core.entropy import fixed_point, free_entropy
from cavity.core.entropy.fixed_point import prior_state, with_cavities
from cavity.core.sweep import iterate

SIZES = {"mf": (784, (501, 501)), "amp": (784, (501, 501)), "bp": (64, (101, 101))}
SAMPLES, REPEATS = 128, 5


def seconds(work: Callable[[], object]) -> float:
    """The least processor time."""
    found = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


@torch.no_grad()
def measured(name: str) -> tuple[float, float]:
    """Seconds of an iteration and of an evaluation."""
    inputs, hidden = SIZES[name]
    noisy = name == "mf"
    output = cavity.Label(1.0) if noisy else cavity.ArgMax()
    net = cavity.mlp(inputs, hidden, 10, activation=cavity.Sign(1.0 if noisy else 0.0), output=output)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(SAMPLES, inputs, generator=generator)
    y = torch.randint(0, 10, (SAMPLES,), generator=generator)
    if noisy:
        y = 2 * torch.nn.functional.one_hot(y, 10) - 1
    method, sites = ALGORITHMS.make(name), net.sites
    states = [
        prior_state(site, layer.natural, layer.state, 0.5) for site, layer in zip(sites, net.weighted(), strict=True)
    ]
    point = fixed_point(method, sites, states, x, y, 3, 1e-9)
    work = partial(iterate, method, with_cavities(sites), point.states, x, y, remember=True)
    return seconds(work), seconds(partial(free_entropy, method, sites, point, x, y))


def main() -> None:
    torch.set_num_threads(1)
    print("| algorithm | network | iteration | evaluation | ratio |\n|---|---|---|---|---|")
    for name, (inputs, hidden) in SIZES.items():
        iteration, evaluation = measured(name)
        shape = "-".join(map(str, (inputs, *hidden, 10)))
        times = f"{1e3 * iteration:.0f} ms | {1e3 * evaluation:.0f} ms | {evaluation / iteration:.2f}"
        print(f"| {name.upper()} | {shape} | {times} |")


if __name__ == "__main__":
    main()
