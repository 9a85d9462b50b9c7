"""Fit after fit with settings that may ruin it, and whether the library says so when one does.

    python scripts/divergence_campaign.py --fits 1000 --json divergence.json

Fit number n has settings of its own, drawn from the seed n: ten data sets, all kinds of weights, activations and
algorithms, batches of one sample to all, damping 0 to 0.99, ρ 0.9 to 3, rates 0.1 to 10; by ``fit`` or ``partial_fit``
of an estimator, or by a ``Trainer`` on tensors or on an iterable. What comes of it:

    ok       it is not clearly worse than a constant
    warned   there was a warning of divergence
    error    it ended in an error that says what is wrong
    SILENT   on its own training data the network is clearly worse than a constant, by the posterior or (not in a
             stream, which has no end) by its most probable weights, and nothing was said
    CRASH    it ended in an error that is not documented

The judge compares predictions with the mean or the most frequent class: it knows nothing of what the library watches.
Fits that are in the file already are not run again, so that the command goes on where it was stopped. The exit status
is 1 if there is a SILENT or a CRASH.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import cavity
from cavity.core.algorithms import ALGORITHMS
from cavity.core.channels import ACTIVATIONS
from cavity.core.priors import PRIORS
from cavity.training.watch import DivergenceWarning
from cavity.util.files import write_whole

#: Samples of a data set at most: the campaign is about many fits, not about large ones.
SAMPLES = 100
#: What may be drawn. None leaves it to the library.
RHO = (None, 0.9, 0.99, 1.0, 1.01, 1.1, 1.5, 2.0, 3.0)
DAMPING = (None, 0.0, 0.5, 0.8, 0.95, 0.99)
BATCHES = (1, 4, 16, 32, 128, 10**6)
RATES = (0.1, 0.5, 1.0, 3.0, 10.0)
HIDDEN = ((), (5,), (21,), (51,), (11, 11))
WAYS = ("fit", "fit", "fit", "stream", "trainer", "iterable")
#: Mini-batches of a fit at most.
STEPS = 100
#: Clearly worse than a constant: so much more of the mean squared error, or points of the classes, and chance.
MORE, POINTS, SIGMAS = 0.2, 0.05, 3.0
DOCUMENTED = (ValueError, FloatingPointError, MemoryError)

Arrays = tuple[NDArray[Any], NDArray[Any]]
CLASSES = ("iris", "wine", "breast_cancer", "digits", "moons")
REAL = ("friedman1", "friedman2", "friedman3", "diabetes", "linear")


def load(name: str) -> Arrays:
    """(X, y) of at most ``SAMPLES`` samples, in no order."""
    if name in ("iris", "wine", "breast_cancer", "digits", "diabetes"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    elif name == "moons":
        X, y = datasets.make_moons(SAMPLES, noise=0.2, random_state=0)
    elif name == "linear":
        X, y = datasets.make_regression(SAMPLES, 20, noise=5.0, random_state=0)
    else:
        X, y = getattr(datasets, f"make_{name}")(SAMPLES, random_state=0)
    order = np.random.default_rng(0).permutation(len(X))[:SAMPLES]
    return X[order], y[order]


def settings(number: int) -> dict[str, Any]:
    """What fit ``number`` is given."""
    draw = random.Random(number)
    rho, damping = draw.choice(RHO), draw.choice(DAMPING)
    return {
        "number": number,
        "data": draw.choice(CLASSES + REAL),
        "way": draw.choice(WAYS),
        "weights": draw.choice(list(PRIORS)),
        "activation": draw.choice(list(ACTIVATIONS)),
        "algorithm": draw.choice(list(ALGORITHMS)),
        "batch_size": draw.choice(BATCHES),
        "rho": rho,
        "damping": damping,
        "rate": draw.choice(RATES),
        "hidden": draw.choice(HIDDEN),
        "inner_iterations": draw.choice((1, 1, 1, 1, 3)),
        "epochs": draw.choice((3, 10, 30)),
    }


def by_estimator(chosen: dict[str, Any], X: NDArray[Any], y: NDArray[Any]) -> list[NDArray[Any]]:
    """Predictions of the posterior and of the most probable weights after ``fit`` or ``partial_fit``."""
    names = ("weights", "activation", "algorithm", "rho", "damping", "hidden", "inner_iterations", "epochs")
    real = chosen["data"] in REAL
    kind = cavity.MessagePassingRegressor if real else cavity.MessagePassingClassifier
    model = kind(**{name: chosen[name] for name in names}, batch_size=chosen["batch_size"], random_state=0)
    if chosen["way"] == "fit":
        model.fit(X, y)
    else:
        for _ in range(chosen["epochs"]):
            for part in np.array_split(np.arange(len(X)), 3):
                model.partial_fit(X[part], y[part], **({} if real else {"classes": np.unique(y)}))
    return [np.asarray(model.predict(X, method)) for method in ("bayes", "point")]


def by_trainer(chosen: dict[str, Any], X: NDArray[Any], y: NDArray[Any]) -> list[NDArray[Any]]:
    """The same after ``Trainer.fit`` with a rate in numbers, on tensors or on an iterable of mini-batches."""
    real = chosen["data"] in REAL
    x = torch.from_numpy(StandardScaler().fit_transform(X)).float()
    t = torch.from_numpy((y - y.mean()) / y.std()).float() if real else torch.from_numpy(y)
    net = cavity.mlp(
        x.shape[1],
        chosen["hidden"],
        1 if real else int(y.max()) + 1,
        weights=chosen["weights"],
        activation=chosen["activation"],
        output=cavity.GaussianOutput(0.3) if real else "argmax",
        bias=chosen["weights"] == "gaussian",
    )
    names = ("algorithm", "rate", "rho", "damping", "inner_iterations")
    trainer = cavity.Trainer(net, **{name: chosen[name] for name in names}, compile=False)
    size = min(chosen["batch_size"], len(x))
    if chosen["way"] == "trainer":
        trainer.fit((x, t), epochs=chosen["epochs"], batch_size=size)
    else:
        trainer.fit(list(zip(x.split(size), t.split(size), strict=True)), epochs=chosen["epochs"])
    found = [net.predict(x, method).double().numpy() for method in ("bayes", "point")]
    return [z * y.std() + y.mean() for z in found] if real else found


def worse(predicted: NDArray[Any], y: NDArray[Any], real: bool) -> tuple[float, float, bool]:
    """The error of predictions and of a constant, mean squares or fractions, and whether it is clearly worse."""
    if real:
        with np.errstate(over="ignore"):
            error, constant = float(np.square(predicted - y).mean()), float(y.var())
        return error, constant, not error <= constant * (1 + MORE + SIGMAS * (2 / len(y)) ** 0.5)
    error, constant = float((predicted != y).mean()), 1 - np.unique(y, return_counts=True)[1].max() / len(y)
    chance = SIGMAS * (constant * (1 - constant) / len(y)) ** 0.5
    return error, constant, error > constant + max(POINTS, chance)


def outcome(chosen: dict[str, Any]) -> dict[str, Any]:
    """One fit, judged."""
    X, y = load(chosen["data"])
    steps = -(-len(X) // min(chosen["batch_size"], len(X)))
    chosen = {**chosen, "epochs": max(1, min(chosen["epochs"], STEPS // steps))}
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            predicted = (by_estimator if chosen["way"] in ("fit", "stream") else by_trainer)(chosen, X, y)
        except Exception as error:  # whatever it is, it is counted
            result = "error" if isinstance(error, DOCUMENTED) else "CRASH"
            return {**chosen, "outcome": result, "message": f"{type(error).__name__}: {error}"}
    told = [str(one.message) for one in said if issubclass(one.category, ConvergenceWarning | DivergenceWarning)]
    judged = [worse(guess, y, chosen["data"] in REAL) for guess in predicted]
    bad = any(verdict for _, _, verdict in judged[: 1 if chosen["way"] == "stream" else 2])
    return {
        **chosen,
        "outcome": "warned" if told else "SILENT" if bad else "ok",
        "bad": bad,
        "errors": [error for error, _, _ in judged],
        "constant": judged[0][1],
        "message": told[0] if told else "",
        "seconds": round(time.perf_counter() - began, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first, to share them out")
    parser.add_argument("--json", type=Path, default=Path("divergence.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    records = json.loads(options.json.read_text()) if options.json.exists() else []
    done = {record["number"] for record in records}
    for number in range(options.first, options.first + options.fits):
        if number in done:
            continue
        records.append(outcome(settings(number)))
        write_whole(options.json, json.dumps(records, indent=1).encode())
    counts = Counter(record["outcome"] for record in records)
    print(", ".join(f"{name} {counts[name]}" for name in ("ok", "warned", "error", "SILENT", "CRASH")))
    for record in records:
        if record["outcome"] in ("SILENT", "CRASH"):
            print({name: value for name, value in record.items() if value is not None})
    return int(counts["SILENT"] + counts["CRASH"] > 0)


if __name__ == "__main__":
    sys.exit(main())
