"""Who is measured, and how each is built: this is the one place that knows the trainers' options."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cavity.baselines import BaselineTrainer, BinaryNet, BinaryNetTrainer
from cavity.baselines.trainer import AnyTrainer
from cavity.core.algorithms import ALGORITHMS
from cavity.runs.building import build_network, build_trainer
from cavity.runs.config import Config
from cavity.studies.bench.idiomatic import IdiomaticBinaryNet, IdiomaticTrainer
from cavity.studies.bench.products import Corrections

EAGER, COMPILED, TUNED = "binarynet", "binarynet-compiled", "binarynet-tuned"
#: What ratios are to: the faster of BinaryNet as people write it, plain and compiled.
YARDSTICKS = (EAGER, COMPILED)
BINARYNET = (*YARDSTICKS, TUNED)
#: What there is only where something can be compiled.
NEED_COMPILER = (COMPILED, TUNED)
#: BP edge by edge, which takes part only if asked for: a turn of it takes minutes.
EXACT = "bp-exact"
BASELINES = {EAGER: "BinaryNet", COMPILED: "BinaryNet, compiled", TUNED: "BinaryNet, tuned"}


def default() -> tuple[str, ...]:
    """Who takes part unless others are named: BinaryNet, and the algorithms in the order in which they cost more."""
    algorithms = sorted(reversed(list(ALGORITHMS)), key=lambda name: ALGORITHMS[name].passes)
    return (*BINARYNET, *algorithms)


def names() -> tuple[str, ...]:
    """Who can take part."""
    return (*default(), EXACT)


def title_of(name: str) -> str:
    """What a contender is called in tables and plots."""
    return {**BASELINES, EXACT: "BP, edge by edge"}.get(name, name.upper())


def build(name: str, sizes: Sequence[int], device: torch.device, *, seed: int, compile: bool) -> AnyTrainer:
    """A fresh trainer on a network of ``sizes`` (inputs, hidden…, outputs); plain BinaryNet never compiles."""
    inputs, *hidden, outputs = sizes
    if name == TUNED:
        return BinaryNetTrainer(BinaryNet(inputs, hidden, outputs, seed=seed).to(device), compile=True, seed=seed)
    if name in YARDSTICKS:
        baseline = IdiomaticBinaryNet(inputs, hidden, outputs, seed=seed).to(device)
        return IdiomaticTrainer(baseline, compile=name == COMPILED, seed=seed)
    config = Config(hidden=tuple(hidden), algorithm="bp" if name == EXACT else name, seed=seed)
    accuracy = {"accuracy": "exact"} if name == EXACT else {}
    net = build_network(config, inputs, outputs).to(device)
    return build_trainer(config, net, compile=compile, **accuracy)


def corrections_in_use(trainer: AnyTrainer, x: Tensor) -> list[Corrections]:
    """What each layer adds to the products of mean field for a mini-batch like x."""
    if isinstance(trainer, BaselineTrainer):
        return [Corrections()] * len(trainer.net.point_weights())
    algorithm, sites = trainer.method.algorithm, trainer.method.sites
    first = algorithm.corrections == "first order"
    return [
        Corrections(
            1 if first and site.channel.elementwise else 0 if how.series is None else how.series.order, how.half
        )
        for site, how in zip(sites, trainer.runner.arithmetic(algorithm, sites, x, len(x)), strict=True)
    ]
