"""``MessagePassingClassifier`` beside scikit-learn's ``MLPClassifier``, both with their defaults.

Five folds of digits, wine, breast cancer, 20 classes (make_classification, 2,000 × 30, 10 informative) and a binary
task (1,000 × 20); and 5,000 images of MNIST, tested on the 10,000 test images. Both models see standardised inputs.
Settings were chosen on other splits (seeds 101 and up) and other sets (generator seeds 11 and up; other images of
MNIST's training set) than those reported here; but figures of these sets under earlier settings had been seen before.
Fits alternate between the models; seconds are the processor's, on one thread.

    python scripts/compare_estimators.py                       # table, and docs/data/estimators.json with .md
    python scripts/compare_estimators.py --data wine --folds 3 --no-write

Data sets that are in the file already are not run again, so that the command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn import datasets
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import cavity
from cavity import data
from cavity.analysis import calibration
from cavity.util.files import write_whole

SPLIT_SEED = 0
GENERATOR_SEED = 1
#: Images of MNIST to train on.
IMAGES = 5000

Arrays = tuple[np.ndarray, np.ndarray]
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def folds_of(X: np.ndarray, y: np.ndarray, folds: int) -> Iterator[Split]:
    """Training and test inputs and labels of each fold."""
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=SPLIT_SEED).split(X, y):
        yield X[train], y[train], X[test], y[test]


def images(folds: int) -> Iterator[Split]:
    """One split: the last images of MNIST's training set, and its test set."""
    mnist = data.load("mnist")
    train = mnist.x_train[-IMAGES:].flatten(1).numpy(), mnist.y_train[-IMAGES:].numpy()
    yield *train, mnist.x_test.flatten(1).numpy(), mnist.y_test.numpy()


def made(samples: int, features: int, **kinds: int) -> Arrays:
    """A set of make_classification."""
    X, y = datasets.make_classification(samples, features, random_state=GENERATOR_SEED, **kinds)
    return X, y


DATA: dict[str, Callable[[int], Iterator[Split]]] = {
    "wine": lambda folds: folds_of(*datasets.load_wine(return_X_y=True), folds),
    "breast cancer": lambda folds: folds_of(*datasets.load_breast_cancer(return_X_y=True), folds),
    "binary, 1,000 × 20": lambda folds: folds_of(*made(1000, 20), folds),
    "20 classes, 2,000 × 30": lambda folds: folds_of(*made(2000, 30, n_informative=10, n_classes=20), folds),
    "digits": lambda folds: folds_of(*datasets.load_digits(return_X_y=True), folds),
    "MNIST, 5,000": images,
}
MODELS: dict[str, Callable[[int], BaseEstimator]] = {
    "message passing": lambda fold: cavity.MessagePassingClassifier(random_state=fold),
    "MLPClassifier": lambda fold: make_pipeline(StandardScaler(), MLPClassifier(random_state=fold)),
}
HEAD = "| data | model | accuracy % | NLL | ECE | s per fit |"


def compared(splits: Iterator[Split]) -> dict[str, dict[str, float]]:
    """Accuracy in percent, NLL and ECE of all held-out predictions together, and the processor's seconds per fit."""
    found: dict[str, list[np.ndarray]] = {title: [] for title in MODELS}
    seconds, labels = dict.fromkeys(MODELS, 0.0), []
    for fold, (X, y, X_test, y_test) in enumerate(splits):
        labels.append(y_test)
        for title, model in MODELS.items():
            started = time.process_time()
            with warnings.catch_warnings():
                # MLPClassifier's 200 epochs are its default, whether it has converged or not.
                warnings.simplefilter("ignore", ConvergenceWarning)
                fitted = model(fold).fit(X, y)
            seconds[title] += time.process_time() - started
            found[title].append(fitted.predict_proba(X_test))
    truth = torch.from_numpy(np.concatenate(labels))
    return {
        title: measured(torch.from_numpy(np.concatenate(p)), truth, seconds[title] / len(p))
        for title, p in found.items()
    }


def measured(p: torch.Tensor, labels: torch.Tensor, seconds: float) -> dict[str, float]:
    return {
        "accuracy": 100 * float((p.argmax(dim=1) == labels).double().mean()),
        "nll": float(calibration.negative_log_likelihood(p, labels)),
        "ece": float(calibration.expected_calibration_error(p, labels)),
        "seconds": seconds,
    }


def compare(names: Sequence[str], folds: int) -> list[dict[str, Any]]:
    """A row for each set and model."""
    return [
        {"data": name, "model": title, "folds": folds, **row}
        for name in names
        for title, row in compared(DATA[name](folds)).items()
    ]


def line(row: dict[str, Any]) -> str:
    cells = f"{row['accuracy']:.2f} | {row['nll']:.3f} | {row['ece']:.3f} | {row['seconds']:.1f}"
    return f"| {row['data']} | {row['model']} | {cells} |"


def table(rows: Sequence[dict[str, Any]]) -> str:
    return "\n".join([HEAD, "|---" * (HEAD.count("|") - 1) + "|", *map(line, rows)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", action="append", choices=DATA, help="one set; repeatable (default: all)")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("docs/data/estimators.json"))
    parser.add_argument("--no-write", action="store_true", help="print only")
    args = parser.parse_args()
    torch.set_num_threads(1)
    threadpool_limits(1)
    rows = json.loads(args.out.read_text()) if args.out.exists() and not args.no_write else []
    for name in args.data or DATA:
        if any(row["data"] == name for row in rows):
            continue
        new = compare([name], args.folds)
        rows += new
        print("\n".join(map(line, new)), flush=True)
        if not args.no_write:
            write_whole(args.out, (json.dumps(rows, indent=1) + "\n").encode())
            write_whole(args.out.with_suffix(".md"), table(rows).encode())


if __name__ == "__main__":
    main()
