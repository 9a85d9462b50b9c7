"""From a configuration to a network and its trainer: the one way, for everything that trains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from cavity.core import architecture
from cavity.core.builder import network
from cavity.core.channels import OUTPUTS, GaussianOutput
from cavity.core.network import Network
from cavity.engine import allocation
from cavity.training.recipes import PAPER
from cavity.training.trainer import Trainer

if TYPE_CHECKING:
    from cavity.core.channels import Output
    from cavity.runs.config import Config


#: What a weight takes at least: field, mean and variance.
BYTES = 12
#: Variance of the noise on labels that are numbers, in units of theirs, before anything is learnt.
FIRST_NOISE = 0.3
#: Options that networks and trainers take by the same names.
OF_NETWORKS = ("weights", "activation", "bias", "threshold", "density", "init", "seed")
UPDATE = ("algorithm", "rate", "schedule", "rho", "damping", "memory", "readout_samples")
REINFORCEMENT = ("reinforcement", "reinforcement_step", "focusing")
OF_TRAINERS = (*UPDATE, *REINFORCEMENT, "inner_iterations", "tolerance", "seed")


def build_output(name: str) -> Output:
    """The output of that name; what stands behind a dash is its method."""
    kind, _, method = (name, "", "") if name in OUTPUTS else name.partition("-")
    if kind == GaussianOutput.name:
        return GaussianOutput(FIRST_NOISE)
    return OUTPUTS[kind](**({"method": method} if method else {}))


def build_network(config: Config, inputs: int | tuple[int, ...], outputs: int, **parts: Any) -> Network:
    """A fresh network of ``config`` for that many inputs, or inputs of that shape; ``parts`` are objects (weights,
    activation, output) to use for its names."""
    assert config.architecture is not None
    if config.output is not None:
        paper = config.output == "argmax" and config.recipe == PAPER.name
        parts.setdefault("output", build_output("argmax-pairwise" if paper else config.output))
    shape = (inputs,) if isinstance(inputs, int) else inputs
    weights = architecture.weights(config.architecture, shape, outputs)
    what = f"a network of {weights:.3g} weights, {config.architecture},"
    allocation.require(weights * BYTES, torch.device("cpu"), what, "use narrower layers")
    net = network(config.architecture, shape, outputs, **{**_values(config, OF_NETWORKS), **parts})
    for number, layer in enumerate(net.weighted()):
        if layer.free_weights == 0:
            numbers = layer.field.numel()
            raise ValueError(
                f"density must leave weights in every layer, {config.density} of {numbers} leaves none "
                f"in layer {number}"
            )
    return net


def build_trainer(config: Config, net: Network, **options: Any) -> Trainer:
    """A trainer of ``net`` as ``config`` has it; ``options`` are what else it takes, or takes instead."""
    return Trainer(net, **{**trainer_options(config), **options})


def trainer_options(config: Config) -> dict[str, Any]:
    """What a trainer takes of ``config``."""
    values = _values(config, OF_TRAINERS)
    if config.memory is None:
        values["rate"] = (values["rate"] or 1.0) if config.recipe == PAPER.name else "auto"
    return values


def _values(config: Config, names: tuple[str, ...]) -> dict[str, Any]:
    """Options by name; of a list of one number that number, which is for all layers."""
    values = {name: getattr(config, name) for name in names}
    return {name: value[0] if isinstance(value, tuple) and len(value) == 1 else value for name, value in values.items()}
