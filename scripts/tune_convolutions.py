"""Errors of a convolutional network on held-out training images: what networks and numbers were chosen by, and where
the error of the 1-bit network comes from (docs/how-to/convolutions.md).

    python scripts/tune_convolutions.py fashion-mnist conv:16:5:2,conv:32:5:2,dense:201 quench=0.2 growth=40 cold=0.003
    python scripts/tune_convolutions.py fashion-mnist conv:32:5:2,conv:64:5:2,dense:201 --method binarynet-bn lr=0.01

Trains on the first --samples images and measures on --held-out of the last 10,000 training images; the test set is
never used. Options are those of ``Annealed`` (message passing) or of the trainer (BinaryNet). Message passing prints
the errors of four networks beside the Bayesian one: with weights as they are or their most probable values, below the
readout and in it.
"""

from __future__ import annotations

import argparse
import ast
import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

import cavity
from cavity.baselines import BaselineTrainer, NormalizedBinaryNet, NormalizedTrainer
from cavity.core import predict
from cavity.core.algorithms.mf import MF
from cavity.core.network import Network
from cavity.core.sweep import sweep_up
from cavity.training.augmentation import Augmentation
from cavity.training.plans import Annealed

#: The last of the training images, which are not trained on.
APART = 10_000
Pair = tuple[Tensor, Tensor]


@torch.no_grad()
def mixtures(net: Network, x: Tensor, y: Tensor) -> dict[str, float]:
    """Errors in per cent with certain or uncertain weights below the readout and in it, at the end of the quench."""
    x, layers = net.check_inputs(x), net.weighted()
    most_probable = [layer.point() for layer in layers]
    certain = predict.below_last(net, most_probable, x).flatten(1)
    uncertain = sweep_up(MF(), net.sites, net.states(), net.prepared(x))[-1].inputs.mean.flatten(1)
    readouts = {"certain": most_probable[-1], "uncertain": layers[-1].mean}
    found = {}
    for below, units in (("certain", certain), ("uncertain", uncertain)):
        for kind, w in readouts.items():
            wrong = (units @ w.T).argmax(dim=1) != y
            found[f"{below} below, {kind} readout"] = 100 * float(wrong.float().mean())
    return found


def build(method: str, layers: str, shape: tuple[int, int, int], options: dict[str, Any]) -> Any:
    """A trainer with ``options``."""
    if method == "binarynet-bn":
        return NormalizedTrainer(NormalizedBinaryNet(layers, shape, 10), **options)
    trainer = cavity.Trainer(cavity.network(layers, shape, 10, threshold=True), method, compile=False)
    assert isinstance(trainer.plan, Annealed)
    trainer.plan = replace(trainer.plan, **options)
    return trainer


def measured(trainer: Any, train: Pair, held_out: Pair, epochs: int, augment: Augmentation | None) -> dict[str, float]:
    """Errors in per cent after the last epoch, and processor time."""
    started = time.process_time()
    history = trainer.fit(train, epochs=epochs, validation=held_out, evaluate_every=epochs, augment=augment)
    found = {"1-bit": history[-1].test_error, "NLL": history[-1].test_nll}
    if not isinstance(trainer, BaselineTrainer):
        found |= {"Bayesian": history[-1].test_error_bayes, **mixtures(trainer.net, *held_out)}
    return found | {"CPU seconds": time.process_time() - started}


def option(text: str) -> tuple[str, Any]:
    """``name=value``, the value a Python literal."""
    name, _, value = text.partition("=")
    return name, ast.literal_eval(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=("mnist", "fashion-mnist", "cifar-10"))
    parser.add_argument("layers", help="the network in words")
    parser.add_argument("options", nargs="*", type=option, metavar="NAME=VALUE")
    parser.add_argument("--method", default="mf", help="an algorithm, or binarynet-bn")
    parser.add_argument("--samples", type=int, default=16_000)
    parser.add_argument("--held-out", type=int, default=3_000)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--augment")
    given = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    data = cavity.data.load(given.dataset)
    end = len(data.x_train) - APART
    kept, apart = slice(min(given.samples, end)), slice(end, end + given.held_out)
    pairs = [(data.x_train[part], data.y_train[part]) for part in (kept, apart)]
    trainer = build(given.method, given.layers, data.image_shape, dict(given.options))
    found = measured(trainer, *pairs, given.epochs, Augmentation.of(given.augment, data.image_shape))
    print(", ".join(f"{name} {value:.2f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
