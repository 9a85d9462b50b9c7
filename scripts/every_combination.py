"""Does every kind of weights train with every activation? Twelve data sets, five seeds, every prior and activation.

    python scripts/every_combination.py                        # docs/data/combinations.jsonl, then the table
    python scripts/every_combination.py --data iris --seeds 0 --out /tmp/some.jsonl

One hidden layer of 31 units, otherwise the defaults of the estimators, on at most 300 training samples. The seeds take
turns with the algorithms: MF, AMP, BPI, BP, MF. A fit has failed if it ends in an error or predicts its own training
data clearly worse than a constant does (the largest class, or the mean); it has learnt nothing if it is not clearly
better. Clearly is by two standard errors of an accuracy, or by 0.05 in R². Records are lines of JSON; those that are
there already are not run again, so that the command goes on where it was stopped. ``rival`` records compare the
defaults (real weights, ReLU) with scikit-learn's MLPClassifier on up to 1,000 training samples and the rest.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cavity
from cavity.core.channels import ACTIVATIONS
from cavity.core.priors import PRIORS
from cavity.util.files import append_line

Arrays = tuple[np.ndarray, np.ndarray]

CLASSES: dict[str, Callable[[int], Arrays]] = {
    "iris": lambda seed: datasets.load_iris(return_X_y=True),
    "wine": lambda seed: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda seed: datasets.load_breast_cancer(return_X_y=True),
    "digits": lambda seed: datasets.load_digits(return_X_y=True),
    "moons": lambda seed: datasets.make_moons(1500, noise=0.25, random_state=seed),
    "circles": lambda seed: datasets.make_circles(1500, noise=0.15, factor=0.5, random_state=seed),
    "spheres": lambda seed: datasets.make_gaussian_quantiles(n_samples=1500, n_features=5, random_state=seed),
    "five classes": lambda seed: datasets.make_classification(
        1500, 20, n_informative=8, n_classes=5, random_state=seed
    ),
}
NUMBERS: dict[str, Callable[[int], Arrays]] = {
    "diabetes": lambda seed: datasets.load_diabetes(return_X_y=True),
    "friedman1": lambda seed: datasets.make_friedman1(600, noise=1.0, random_state=seed),
    "friedman2": lambda seed: datasets.make_friedman2(600, noise=100.0, random_state=seed),
    "friedman3": lambda seed: datasets.make_friedman3(600, noise=0.1, random_state=seed),
}
ALGORITHMS = ("mf", "amp", "bpi", "bp", "mf")
HIDDEN = (31,)
#: Training samples of a combination, and of a comparison.
SAMPLES, RIVAL_SAMPLES = 300, 1000

Record = dict[str, Any]


def split(name: str, seed: int, samples: int) -> list[np.ndarray]:
    """X, X_test, y, y_test with at most ``samples`` for training and at least a fifth for the test."""
    X, y = (CLASSES | NUMBERS)[name](seed)
    size = min(samples, int(0.8 * len(y)))
    parts: list[np.ndarray] = train_test_split(
        X, y, train_size=size, random_state=seed, stratify=y if name in CLASSES else None
    )
    return parts


def combination(name: str, seed: int, weights: str, activation: str) -> Record:
    """Scores of one fit on its training and test data, accuracy or R²; or its error."""
    X, X_test, y, y_test = split(name, seed, SAMPLES)
    kind = cavity.MessagePassingClassifier if name in CLASSES else cavity.MessagePassingRegressor
    options = {"weights": weights, "activation": activation, "algorithm": ALGORITHMS[seed % len(ALGORITHMS)]}
    record: Record = {"data": name, "seed": seed, **options}
    try:
        model = kind(HIDDEN, random_state=seed, **options).fit(X, y)
        train, test = float(model.score(X, y)), float(model.score(X_test, y_test))
    except (ArithmeticError, RuntimeError) as error:
        return {**record, "error": f"{type(error).__name__}: {error}"}
    return {**record, "train": train, "test": test}


@cache
def constant(name: str, seed: int) -> tuple[float, float]:
    """What a constant scores on the training data, and how far a score must be from it to differ clearly."""
    if name in NUMBERS:
        return 0.0, 0.05
    y = split(name, seed, SAMPLES)[2]
    share = float(np.unique(y, return_counts=True)[1].max() / len(y))
    return share, 2 * (share * (1 - share) / len(y)) ** 0.5


def lead(record: Record) -> float:
    """How far the training score is above a constant's, in units of what is clear; −∞ for an error."""
    score, clear = constant(record["data"], record["seed"])
    return -math.inf if "error" in record else (record["train"] - score) / clear


def rival(name: str, seed: int) -> Record:
    """Test accuracy in percent of both models with their defaults."""
    X, X_test, y, y_test = split(name, seed, RIVAL_SAMPLES)
    ours = cavity.MessagePassingClassifier(random_state=seed).fit(X, y)
    with warnings.catch_warnings():
        # MLPClassifier's 200 epochs are its default, whether it has converged or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = make_pipeline(StandardScaler(), MLPClassifier(random_state=seed)).fit(X, y)
    scores = {"ours": 100 * ours.score(X_test, y_test), "theirs": 100 * theirs.score(X_test, y_test)}
    return {"data": name, "seed": seed, "rival": True, **scores}


def todo(names: Sequence[str], seeds: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Arguments of ``rival`` and ``combination``, one seed after the other."""
    for seed, name in product(seeds, names):
        if name in CLASSES:
            yield name, seed
        yield from ((name, seed, weights, activation) for weights, activation in product(PRIORS, ACTIVATIONS))


def key(record: Record) -> tuple[Any, ...]:
    place = record["data"], record["seed"]
    return place if "rival" in record else (*place, record["weights"], record["activation"])


def table(records: Sequence[Record]) -> str:
    """Markdown: for each set the fits, those that failed or learnt nothing, and the accuracy beside MLPClassifier's."""
    head = "| data | fits | failed | learnt nothing | real weights, ReLU % | MLPClassifier % |"
    lines = [head, "|---" * (head.count("|") - 1) + "|"]
    for name in dict.fromkeys(record["data"] for record in records):
        own = [record for record in records if record["data"] == name]
        fits, rivals = [one for one in own if "rival" not in one], [one for one in own if "rival" in one]
        means = [f"{np.mean([one[who] for one in rivals]):.2f}" if rivals else "" for who in ("ours", "theirs")]
        leads = [lead(one) for one in fits]
        failed, idle = sum(one < -1 for one in leads), sum(-1 <= one < 1 for one in leads)
        lines.append(f"| {name} | {len(fits)} | {failed} | {idle} | {' | '.join(means)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    names = [*CLASSES, *NUMBERS]
    parser.add_argument("--data", action="append", choices=names, help="one set; repeatable (default: all)")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--out", type=Path, default=Path("docs/data/combinations.jsonl"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    records = [json.loads(text) for text in args.out.read_text().splitlines()] if args.out.exists() else []
    done = set(map(key, records))
    for which in todo(args.data or names, [int(seed) for seed in args.seeds.split(",")]):
        if which not in done:
            records.append(rival(*which) if len(which) == 2 else combination(*which))
            append_line(args.out, json.dumps(records[-1]))
            if "error" in records[-1]:
                print(records[-1], flush=True)
    print(table(records))


if __name__ == "__main__":
    main()
