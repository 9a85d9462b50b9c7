"""Who is measured, and how each is built: this is the one place that knows the trainers' options."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cavity.baselines import BaselineTrainer, BinaryNet, BinaryNetTrainer
from cavity.bench.idiomatic import IdiomaticBinaryNet, IdiomaticTrainer
from cavity.network import mlp
from cavity.trainer import Trainer

AnyTrainer = Trainer | BaselineTrainer

EAGER, COMPILED, TUNED = "binarynet", "binarynet-compiled", "binarynet-tuned"
#: What ratios are to: the faster of BinaryNet as people write it, plain and compiled.
YARDSTICKS = (EAGER, COMPILED)
BINARYNET = (*YARDSTICKS, TUNED)
#: What there is only where something can be compiled.
NEED_COMPILER = (COMPILED, TUNED)
MESSAGE_PASSING = ("mf", "amp", "bpi", "bp")
NAMES = (*BINARYNET, *MESSAGE_PASSING)
TITLES = {
    EAGER: "BinaryNet",
    COMPILED: "BinaryNet, compiled",
    TUNED: "BinaryNet, tuned",
    **{name: name.upper() for name in MESSAGE_PASSING},
}


def build(name: str, sizes: Sequence[int], device: torch.device, *, seed: int, compile: bool) -> AnyTrainer:
    """A fresh trainer on a network of ``sizes`` (inputs, hidden…, outputs); plain BinaryNet never compiles."""
    inputs, *hidden, outputs = sizes
    if name == TUNED:
        return BinaryNetTrainer(BinaryNet(inputs, hidden, outputs, seed=seed).to(device), compile=True, seed=seed)
    if name in YARDSTICKS:
        baseline = IdiomaticBinaryNet(inputs, hidden, outputs, seed=seed).to(device)
        return IdiomaticTrainer(baseline, compile=name == COMPILED, seed=seed)
    net = mlp(inputs, hidden, outputs, seed=seed).to(device)
    return Trainer(net, name, compile=compile, seed=seed)


def series_orders(trainer: AnyTrainer) -> list[int]:
    """The order of the series that each layer used last; 0 where it was evaluated exactly or has no series."""
    if isinstance(trainer, BaselineTrainer):
        return [0] * len(trainer.net.point_weights())
    used = [evaluation.series if evaluation.calls else None for evaluation in trainer.evaluations]
    return [0 if series is None else series.order for series in used]
