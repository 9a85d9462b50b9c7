"""Small networks and ten mini-batches each, trained alone or by several processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import torch
from torch import Tensor

import cavity
from cavity.core.algorithms import ALGORITHMS
from cavity.core.priors import PRIORS

#: Samples of each of the ten mini-batches: uneven for two and for three processes, and too few for some of them.
SIZES = (7, 8, 1, 6, 2, 7, 9, 1, 5, 3)
CLASSES = 3


def dense(prior: str, **options) -> cavity.Network:
    return cavity.mlp(36, (9, 7), CLASSES, weights=prior, bias=True, **options)


def conv(prior: str) -> cavity.Network:
    return cavity.Network(
        [
            cavity.Layer(cavity.Conv2d((1, 6, 6), 3, kernel=3, padding=1, stride=2, bias=True), prior),
            "sign",
            cavity.Layer(cavity.Conv2d((3, 3, 3), 4, kernel=2), prior),
            "sign",
            cavity.Layer(cavity.Dense(16, CLASSES), prior),
            "argmax",
        ]
    )


NETWORKS: dict[str, Callable[[str], cavity.Network]] = {"dense": dense, "conv": conv}


def common(algorithm: str, prior: str, kind: str, **options) -> cavity.Trainer:
    rate = (0.5, 1.0, 1.0) if kind == "conv" else 1.0
    return cavity.Trainer(NETWORKS[kind](prior), algorithm, rate=rate, **options)


def wide(accuracy: cavity.engine.choosing.Accuracy, **options) -> cavity.Trainer:
    """A layer large enough for a series."""
    return cavity.Trainer(cavity.mlp(400, (301,), CLASSES), "bp", accuracy=accuracy, **options)


#: What else depends on the whole mini-batch, or might.
SPECIAL: dict[str, Callable[..., cavity.Trainer]] = {
    "sampled output": lambda **o: cavity.Trainer(dense("binary", output=cavity.ArgMax("sampled")), "bpi", **o),
    "tolerance": lambda **o: cavity.Trainer(dense("binary"), "amp", inner_iterations=20, tolerance=3e-2, **o),
    "reinforcement": lambda **o: cavity.Trainer(
        dense("binary"), "mf", inner_iterations=2, reinforcement=0.2, reinforcement_step=0.01, **o
    ),
    "focusing": lambda **o: cavity.Trainer(dense("binary"), "bp", focusing=(3, 0.5), **o),
    "mask": lambda **o: cavity.Trainer(dense("ternary", density=0.5), "bpi", **o),
    "relu": lambda **o: cavity.Trainer(dense("gaussian", activation="relu", init=0.1), "amp", **o),
    "thresholds": lambda **o: cavity.Trainer(dense("binary", threshold=True), "bp", inner_iterations=2, **o),
    "pooling": lambda **o: cavity.Trainer(
        cavity.network("conv:5:3,pool:2", (1, 6, 6), CLASSES, threshold=True), "amp", inner_iterations=2, **o
    ),
    "series": lambda **o: wide(3, **o),
    "chosen series": lambda **o: wide(None, **o),
}

#: Every algorithm, prior and coupling, and the special ones.
CASES = {
    f"{algorithm} {prior} {kind}": partial(common, algorithm, prior, kind)
    for algorithm, prior, kind in product(ALGORITHMS, PRIORS, NETWORKS)
} | SPECIAL


def batches(inputs: int) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    teacher = torch.randn((inputs, CLASSES), generator=generator)
    x = [torch.randn((samples, inputs), generator=generator) for samples in SIZES]
    return [(part, (part @ teacher).argmax(dim=1)) for part in x]


def trained(name: str, iterations: int, distributed: bool = False) -> dict[str, Tensor]:
    """The state of the layers after ten mini-batches, and how many inner iterations each took; ``iterations`` is for
    the cases that are not special."""
    options = {} if name in SPECIAL else {"inner_iterations": iterations}
    run = CASES[name](distributed=distributed, **options)
    inputs = torch.Size(run.net.input_shape).numel()
    done = [run.step(x.reshape(len(x), *run.net.input_shape), y).iterations for x, y in batches(inputs)]
    return {"iterations": torch.tensor(done), **run.net.state_dict()}
