"""Message passing beside what one would use instead, on images: how accurate, how honest, how large, how long.

784-501-501-10 by BP (Bayesian and point-wise), scikit-learn's MLP, BinaryNet with temperature scaling, a deep ensemble
of five of them, MC dropout, and pytagi if its probabilities are given (see compare_pytagi.py). All train on the same
images; the last 5,000 of the training set are held out, and temperatures are fitted there. Foreign
(out-of-distribution) images are the other data set's test set, put through the same standardisation. Times are seconds
of the processor, on one thread.

    python scripts/compare_uncertainty.py --epochs 10             # what is there already is not done again
    python scripts/compare_uncertainty.py --only mlp --force      # one group anew
    python scripts/compare_uncertainty.py --draw                  # table and plots alone

Each method's figures go to <out>/<data>-<method>.json as soon as it is done; table and plots are made from these.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import cavity
from cavity.analysis import calibration
from cavity.baselines import BinaryNet, BinaryNetTrainer
from cavity.core.predict import point_preactivations
from cavity.data import load
from cavity.training.recipes import PAPER

HELD_OUT = 5000
BATCH = 128
FOREIGN = {"fashion-mnist": "mnist", "mnist": "fashion-mnist"}
#: Members of the ensemble, forward passes with dropout, and what it drops: the usual choices.
MEMBERS, PASSES, DROPOUT = 5, 50, 0.2

TITLES = {
    "bp-bayes": "message passing (BP), Bayesian",
    "bp-point": "message passing (BP), point-wise, temperature",
    "mlp": "scikit-learn MLP",
    "binarynet": "BinaryNet",
    "binarynet-temperature": "BinaryNet, temperature",
    "ensemble": f"ensemble of {MEMBERS} BinaryNets",
    "dropout": "MC dropout",
    "pytagi": "pytagi",
}


@dataclass(frozen=True)
class Images:
    """Standardised images (samples, 784) with labels; ``foreign`` are of the other data set."""

    x: Tensor
    y: Tensor
    x_held: Tensor
    y_held: Tensor
    x_test: Tensor
    y_test: Tensor
    foreign: Tensor


@dataclass(frozen=True)
class Outcome:
    """Probabilities of the test set and of the foreign images, seconds of training and bytes of the model."""

    method: str
    test: Tensor
    foreign: Tensor
    seconds: float
    bytes: int


def read_images(name: str, samples: int | None) -> Images:
    """The data set and its foreign images; ``samples`` keeps so many of each part."""
    own, other = load(name), load(FOREIGN[name])
    foreign = (other.x_test * other.std + other.mean - own.mean) / own.std
    cut = slice(0, samples)
    held = slice(len(own.x_train) - HELD_OUT, None)
    trained = slice(0, (len(own.x_train) - HELD_OUT) if samples is None else samples)
    return Images(
        own.x_train[trained],
        own.y_train[trained],
        own.x_train[held],
        own.y_train[held],
        own.x_test[cut],
        own.y_test[cut],
        foreign[cut],
    )


def tempered(method: str, logits: Callable[[Tensor], Tensor], images: Images, seconds: float, size: int) -> Outcome:
    """softmax(z/T) with the temperature that suits the held-out images."""
    T = calibration.fit_temperature(logits(images.x_held), images.y_held)
    p = [torch.softmax(logits(x) / T, dim=1) for x in (images.x_test, images.foreign)]
    return Outcome(method, p[0], p[1], seconds, size)


def train(step: Callable[[Tensor, Tensor], object], images: Images, epochs: int, seed: int) -> float:
    """Shuffled mini-batches through ``step``; returns the seconds it took, without any measuring of errors."""
    generator = torch.Generator().manual_seed(seed)
    started = time.process_time()
    for _ in range(epochs):
        order = torch.randperm(len(images.x), generator=generator)
        for index in order[: len(order) // BATCH * BATCH].split(BATCH):
            step(images.x[index], images.y[index])
    return time.process_time() - started


def message_passing(images: Images, epochs: int) -> Iterator[Outcome]:
    net = cavity.mlp(images.x.shape[1], (501, 501), 10, seed=0)
    rho = PAPER.rho(3, epochs * (len(images.x) // BATCH))
    trainer = cavity.Trainer(net, "bp", rho=rho, compile=False)
    seconds = train(trainer.step, images, epochs, seed=0)
    weights = sum(layer.field.numel() for layer in net.weighted())
    yield Outcome("bp-bayes", net.predict_proba(images.x_test), net.predict_proba(images.foreign), seconds, 4 * weights)
    scale = 1 / math.sqrt(net.weighted()[-1].coupling.columns)
    yield tempered("bp-point", lambda x: point_preactivations(net, x) * scale, images, seconds, -(-weights // 8) + 4)


def binary_nets(images: Images, epochs: int) -> Iterator[Outcome]:
    nets, seconds = [], []
    for seed in range(MEMBERS):
        net = BinaryNet(images.x.shape[1], (501, 501), 10, seed=seed)
        nets.append(net)
        seconds.append(train(BinaryNetTrainer(net, seed=seed).step, images, epochs, seed))
    size = -(-sum(w.numel() for w in nets[0].weights) // 8)
    p = [[torch.softmax(net(x), dim=1) for net in nets] for x in (images.x_test, images.foreign)]
    yield Outcome("binarynet", p[0][0], p[1][0], seconds[0], size)
    yield tempered("binarynet-temperature", nets[0], images, seconds[0], size + 4)
    mean = [torch.stack(parts).mean(dim=0) for parts in p]
    yield Outcome("ensemble", mean[0], mean[1], sum(seconds), MEMBERS * size)


def sklearn_mlp(images: Images, epochs: int) -> Iterator[Outcome]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier((501, 501), max_iter=epochs, random_state=0)
    started = time.process_time()
    with warnings.catch_warnings():
        # It is meant to stop after as many epochs as the others.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(images.x.numpy(), images.y.numpy())
    seconds = time.process_time() - started
    p = [torch.from_numpy(model.predict_proba(x.numpy())) for x in (images.x_test, images.foreign)]
    size = sum(part.nbytes for part in [*model.coefs_, *model.intercepts_])
    yield Outcome("mlp", p[0], p[1], seconds, size)


def mc_dropout(images: Images, epochs: int) -> Iterator[Outcome]:
    torch.manual_seed(0)
    parts: list[nn.Module] = []
    for lower, upper in ((images.x.shape[1], 501), (501, 501)):
        parts += [nn.Linear(lower, upper), nn.ReLU(), nn.Dropout(DROPOUT)]
    net = nn.Sequential(*parts, nn.Linear(501, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def step(x: Tensor, y: Tensor) -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    seconds = train(step, images, epochs, seed=0)
    with torch.no_grad():
        p = [
            torch.stack([torch.softmax(net(x), dim=1) for _ in range(PASSES)]).mean(dim=0)
            for x in (images.x_test, images.foreign)
        ]
    yield Outcome("dropout", p[0], p[1], seconds, 4 * sum(w.numel() for w in net.parameters()))


GROUPS: dict[str, tuple[Callable[[Images, int], Iterator[Outcome]], tuple[str, ...]]] = {
    "bp": (message_passing, ("bp-bayes", "bp-point")),
    "mlp": (sklearn_mlp, ("mlp",)),
    "binarynet": (binary_nets, ("binarynet", "binarynet-temperature", "ensemble")),
    "dropout": (mc_dropout, ("dropout",)),
}


def from_pytagi(path: Path) -> tuple[Outcome, int]:
    """What compare_pytagi.py wrote, and its epochs."""
    with np.load(path) as saved:
        p = [torch.from_numpy(saved[name]) for name in ("test", "foreign")]
        return Outcome("pytagi", p[0], p[1], float(saved["seconds"]), int(saved["bytes"])), int(saved["epochs"])


def figures(outcome: Outcome, labels: Tensor, name: str, epochs: int) -> dict[str, Any]:
    """What is written about a method."""
    p = outcome.test.double()
    diagram = calibration.reliability(p, labels)
    return {
        "method": outcome.method,
        "title": TITLES[outcome.method],
        "data": name,
        "foreign": FOREIGN[name],
        "epochs": epochs,
        "accuracy": 100 * float((p.argmax(dim=1) == labels).double().mean()),
        "nll": float(calibration.negative_log_likelihood(p, labels)),
        "ece": float(calibration.expected_calibration_error(p, labels)),
        "adaptive_ece": float(calibration.adaptive_calibration_error(p, labels)),
        "brier": float(calibration.brier_score(p, labels)),
        "auroc": float(calibration.out_of_distribution_auroc(p, outcome.foreign.double())),
        "seconds": outcome.seconds,
        "bytes": outcome.bytes,
        "reliability": {
            part: [None if math.isnan(v) else v for v in values.tolist()] for part, values in diagram._asdict().items()
        },
    }


def write(folder: Path, record: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['data']}-{record['method']}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(
        f"{record['title']}: {record['accuracy']:.2f} %, NLL {record['nll']:.3f}, ECE {record['ece']:.3f}", flush=True
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", default="fashion-mnist", choices=FOREIGN)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--samples", type=int, help="keep so many images of each part, to try the script out")
    parser.add_argument("--only", action="append", choices=GROUPS, help="a group of methods; repeatable")
    parser.add_argument("--force", action="store_true", help="do again what is there already")
    parser.add_argument("--pytagi", type=Path, metavar="NPZ", help="probabilities by compare_pytagi.py")
    parser.add_argument("--export", type=Path, metavar="NPZ", help="write the images for compare_pytagi.py and end")
    parser.add_argument("--draw", action="store_true", help="only make table and plots from what is there")
    parser.add_argument("--out", type=Path, default=Path("docs/data/uncertainty"))
    parser.add_argument("--images", type=Path, default=Path("docs/images"))
    return parser.parse_args()


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    if not args.draw:
        images = read_images(args.data, args.samples)
        if args.export:
            np.savez(args.export, **{name: value.numpy() for name, value in vars(images).items()})
            return
        for name in args.only or GROUPS:
            function, methods = GROUPS[name]
            if args.force or not all((args.out / f"{args.data}-{method}.json").exists() for method in methods):
                for outcome in function(images, args.epochs):
                    write(args.out, figures(outcome, images.y_test, args.data, args.epochs))
        if args.pytagi:
            outcome, epochs = from_pytagi(args.pytagi)
            write(args.out, figures(outcome, images.y_test, args.data, epochs))
    from uncertainty_figures import draw

    draw(args.out, args.data, list(TITLES), args.images)


if __name__ == "__main__":
    main()
