"""From a configuration to a network and its trainer: the one way, for runs, sweeps, experiments, benchmarks and
estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cavity.core.channels import OUTPUTS
from cavity.core.network import Network, mlp
from cavity.training.trainer import Trainer

if TYPE_CHECKING:
    from cavity.core.channels import Output
    from cavity.runs.config import Config


def build_output(name: str) -> Output:
    """The output of that name; what stands behind a dash is its method."""
    kind, _, method = (name, "", "") if name in OUTPUTS else name.partition("-")
    return OUTPUTS[kind](**({"method": method} if method else {}))


def build_network(config: Config, inputs: int, outputs: int, **parts: Any) -> Network:
    """A fresh network of ``config``; ``parts`` are objects (weights, activation, output) to use for its names."""
    assert config.hidden is not None
    if config.output is not None and "output" not in parts:
        paper = config.output == "argmax" and config.takes_numbers
        parts["output"] = build_output("argmax-pairwise" if paper else config.output)
    return mlp(
        inputs,
        config.hidden,
        outputs,
        **{"weights": config.weights, "activation": config.activation, **parts},
        bias=config.bias,
        density=config.density,
        init=config.init,
        seed=config.seed,
    )


def build_trainer(config: Config, net: Network, **options: Any) -> Trainer:
    """A trainer of ``net`` as ``config`` has it; ``options`` are what else it takes, or takes instead."""
    given: dict[str, Any] = {
        "algorithm": config.algorithm,
        "rate": (_one_or_all(config.rate) or 1.0) if config.takes_numbers else "auto",
        "schedule": config.schedule,
        "rho": _one_or_all(config.rho),
        "damping": _one_or_all(config.damping),
        "inner_iterations": config.inner_iterations,
        "reinforcement": _one_or_all(config.reinforcement),
        "reinforcement_step": config.reinforcement_step,
        "focusing": config.focusing,
        "tolerance": config.tolerance,
        "seed": config.seed,
    }
    return Trainer(net, **{**given, **options})


def _one_or_all(values: tuple[float, ...] | None) -> float | tuple[float, ...] | None:
    return values[0] if values is not None and len(values) == 1 else values
