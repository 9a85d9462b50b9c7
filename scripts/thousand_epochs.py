"""What happens to fields in 1,000 epochs at ρ up to 1.1: when a floor or the bound first acts, and how often.

Trains 64-11-1 on 64 zeros and ones of scikit-learn's digits, one mini-batch an epoch, for every kind of weights,
algorithm and ρ, and prints a table.

    python scripts/thousand_epochs.py
"""

from __future__ import annotations

import argparse
from typing import Any

import torch

import cavity
from cavity import data
from cavity.core.algorithms import ALGORITHMS
from cavity.core.priors import PRIORS
from cavity.training.callbacks import Callback

RHOS = (1.0, 1.01, 1.1)


class Clamped(Callback):
    """The clamped fraction of every step."""

    def __init__(self) -> None:
        self.fractions: list[float] = []

    def on_step(self, trainer: Any, info: Any) -> None:
        self.fractions.append(float(info.clamped))

    def words(self) -> str:
        first = next((step for step, fraction in enumerate(self.fractions, 1) if fraction), None)
        mean = sum(self.fractions) / len(self.fractions)
        return "never" if first is None else f"step {first}, {mean:.2g}"


def run(weights: str, algorithm: str, rho: float, epochs: int, samples: tuple[torch.Tensor, torch.Tensor]) -> str:
    """When and how often something was clamped, and the training error if there is any left."""
    net = cavity.mlp(64, (11,), 1, weights=weights, seed=1)
    trainer, clamped = cavity.Trainer(net, algorithm, rho=rho, compile=False, seed=1), Clamped()
    trainer.fit(samples, epochs=epochs, batch_size=None, evaluate_every=epochs, callbacks=[clamped])
    assert all(bool(tensor.isfinite().all()) for tensor in net.state_dict().values())
    error = trainer.history[-1].train_error
    return clamped.words() + (f", error {error:.1f} %" if error else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    digits = data.load("digits")
    chosen = digits.y_train < 2
    samples = digits.x_train[chosen][:64], 2 * digits.y_train[chosen][:64] - 1
    print("| weights | algorithm |" + "".join(f" ρ = {rho:g} |" for rho in RHOS))
    print("|---|---|" + "---|" * len(RHOS))
    for weights in PRIORS:
        for algorithm in ALGORITHMS:
            found = [run(weights, algorithm, rho, options.epochs, samples) for rho in RHOS]
            print(f"| {weights} | {algorithm} | " + " | ".join(found) + " |", flush=True)


if __name__ == "__main__":
    main()
