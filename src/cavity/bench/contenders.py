"""Who is measured, and how each is built: this is the one place that knows the trainers' options."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cavity.baselines import BinaryNet, BinaryNetTrainer
from cavity.network import mlp
from cavity.trainer import Trainer

AnyTrainer = Trainer | BinaryNetTrainer

EAGER, COMPILED = "binarynet", "binarynet-compiled"
BINARYNET = (EAGER, COMPILED)
MESSAGE_PASSING = ("mf", "amp", "bpi", "bp")
NAMES = (*BINARYNET, *MESSAGE_PASSING)
TITLES = {EAGER: "BinaryNet", COMPILED: "BinaryNet, compiled", **{name: name.upper() for name in MESSAGE_PASSING}}


def build(name: str, sizes: Sequence[int], device: torch.device, *, seed: int, compile: bool) -> AnyTrainer:
    """A fresh trainer on a network of ``sizes`` (inputs, hidden…, outputs); plain BinaryNet never compiles."""
    inputs, *hidden, outputs = sizes
    if name in BINARYNET:
        baseline = BinaryNet(inputs, hidden, outputs, seed=seed).to(device)
        return BinaryNetTrainer(baseline, compile=name == COMPILED, seed=seed)
    net = mlp(inputs, hidden, outputs, seed=seed).to(device)
    return Trainer(net, name, compile=compile, seed=seed)


def series_orders(trainer: AnyTrainer) -> list[int]:
    """The order of the series that each layer used last; 0 where it was evaluated exactly or has no series."""
    if isinstance(trainer, BinaryNetTrainer):
        return [0] * len(trainer.net.weights)
    used = [evaluation.series if evaluation.calls else None for evaluation in trainer.evaluations]
    return [0 if series is None else series.order for series in used]
