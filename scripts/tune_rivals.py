"""How much a baseline with these constants keeps of permuted tasks, on held-out training data: what the defaults of
``cavity.baselines`` were chosen by (docs/api/baselines.md).

    python scripts/tune_rivals.py ewc strength=100 decay=0.9
    python scripts/tune_rivals.py bayesbinn lr=0.001 --not-told

MNIST, 784-100-10, mini-batches of 128, one epoch on the first 50,000 training images for each of ten permutations; the
accuracies are on the last 10,000 training images. ``end_task`` is given 10,000 samples. The test set is never used.
"""

from __future__ import annotations

import argparse
import ast
import time
from typing import Any

import torch
from torch import Tensor

from cavity import baselines, data
from cavity.baselines import BaselineTrainer, BayesBinaryNet, BinaryNet, Classifier
from cavity.data import Dataset

#: Permutations of tasks start here; experiments use those below.
FIRST_TASK = 1000
TRAIN, TOLD, BATCH_SIZE, LAST = 50_000, 10_000, 128, 5
TRAINERS: dict[str, Any] = {
    "binarynet": baselines.BinaryNetTrainer,
    "bayesbinn": baselines.BayesBiNNTrainer,
    "ewc": baselines.ElasticTrainer,
    "metaplastic": baselines.MetaplasticTrainer,
}


def build(method: str, inputs: int, classes: int, hidden: int, options: dict[str, Any]) -> BaselineTrainer:
    """A trainer with ``options``; "init" and "activation" are the network's."""
    of_net = {name: options[name] for name in ("init", "activation") if name in options}
    kind = BayesBinaryNet if method == "bayesbinn" else BinaryNet
    rest = {name: value for name, value in options.items() if name not in of_net}
    trainer: BaselineTrainer = TRAINERS[method](kind(inputs, (hidden,), classes, **of_net), **rest)
    return trainer


def accuracy(net: Classifier, x: Tensor, y: Tensor, method: str = "point") -> float:
    return 100 * float((net.predict(x, method) == y).float().mean())


def measured(trainer: BaselineTrainer, base: Dataset, train: int, tasks: int, told: bool) -> dict[str, float]:
    """Accuracies in per cent after the last task, and the mean accuracy of the last tasks when they were new."""
    generator = torch.Generator().manual_seed(0)
    held_out, new = [], []
    started = time.process_time()
    for number in range(tasks):
        x, y = base.permuted(FIRST_TASK + number).x_train, base.y_train
        for chosen in torch.randperm(train, generator=generator).split(BATCH_SIZE):
            trainer.step(x[chosen], y[chosen])
        if told:
            trainer.end_task(x[: min(TOLD, train)], y[: min(TOLD, train)])
        held_out.append((x[train:], y[train:]))
        new.append(accuracy(trainer.net, *held_out[-1]))
    last = held_out[-LAST:]
    found = {
        "mean of the last 5": sum(accuracy(trainer.net, *task) for task in last) / len(last),
        "when new": sum(new[-LAST:]) / len(last),
        "first task": accuracy(trainer.net, *held_out[0]),
    }
    if trainer.net.bayesian:
        found["mean of the last 5, Bayesian"] = sum(accuracy(trainer.net, *task, "bayes") for task in last) / len(last)
    return found | {"CPU seconds": time.process_time() - started}


def option(text: str) -> tuple[str, Any]:
    """``name=value``, the value a Python literal or a word."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=TRAINERS)
    parser.add_argument("options", nargs="*", type=option, metavar="NAME=VALUE", help="of the trainer or the network")
    parser.add_argument("--not-told", action="store_true", help="never call end_task")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--hidden", type=int, default=100)
    given = parser.parse_args()
    torch.set_num_threads(1)
    base = data.load("mnist")
    trainer = build(given.method, base.n_features, base.n_classes, given.hidden, dict(given.options))
    found = measured(trainer, base, TRAIN, given.tasks, not given.not_told)
    print(", ".join(f"{name} {value:.1f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
