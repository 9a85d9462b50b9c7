"""A trainer in a few lines, for ``print``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cavity.core.channels import GaussianOutput

if TYPE_CHECKING:
    from cavity.training.trainer import Trainer


def summary(trainer: Trainer) -> str:
    """What it trains and how, where it is, and what was last measured."""
    net = trainer.net
    shape = " x ".join(map(str, net.input_shape))
    weights = sum(layer.free_weights for layer in net.weighted())
    kinds = dict.fromkeys(layer.prior.name for layer in net.weighted())
    lines = {
        "network": f"{len(net.layers)} layers from {shape} to {net.outputs}, {weights:,} {' and '.join(kinds)} weights",
        "algorithm": trainer.method.algorithm.name,
        "update": trainer.plan.words,
        "done": f"{_several(trainer.epoch, 'epoch')}, {_several(trainer.steps, 'step')}",
        "errors": _errors(trainer),
    }
    return "\n".join(["Trainer", *(f"  {name:<10} {text}" for name, text in lines.items() if text)])


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _errors(trainer: Trainer) -> str:
    """What was measured after the last epoch that was measured; empty where none was."""
    real = isinstance(trainer.net.output, GaussianOutput)
    for record in reversed(trainer.history):
        found = {
            "train": (record.train_error, record.train_error_bayes),
            "test": (record.test_error, record.test_error_bayes),
        }
        pairs = [(part, point, bayes) for part, (point, bayes) in found.items() if None not in (point, bayes)]
        if pairs:
            unit = "standard deviations" if real else "%"
            said = (f"{part} {point:.3g} {unit} (Bayesian {bayes:.3g})" for part, point, bayes in pairs)
            return f"{', '.join(said)} after epoch {record.epoch}"
    return ""
