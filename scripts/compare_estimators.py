"""``MessagePassingClassifier`` beside scikit-learn's ``MLPClassifier``, both with their defaults, by cross-validation.

Five folds of digits, wine, breast cancer and two sets of make_classification (5,000 × 40): as it comes, with 2 features
of 40 that matter, and with 10. Both see standardised inputs. The defaults were chosen on other folds (another seed of
the split) and, for make_classification, on other sets (another seed of the generator) than those reported here.

    python scripts/compare_estimators.py                       # table, and docs/data/estimators.json with .md
    python scripts/compare_estimators.py --data wine --folds 3 --no-write
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
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

import cavity
from cavity.analysis import calibration

SPLIT_SEED = 0
GENERATOR_SEED = 1

DATA: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "make_classification": lambda: datasets.make_classification(5000, 40, random_state=GENERATOR_SEED),
    "make_classification, 10 informative": lambda: datasets.make_classification(
        5000, 40, n_informative=10, random_state=GENERATOR_SEED
    ),
}
MODELS: dict[str, Callable[[int], BaseEstimator]] = {
    "message passing": lambda fold: cavity.MessagePassingClassifier(random_state=fold),
    "MLPClassifier": lambda fold: make_pipeline(StandardScaler(), MLPClassifier(random_state=fold)),
}
HEAD = "| data | model | accuracy % | NLL | ECE | s per fit |"


def cross_validate(model: Callable[[int], BaseEstimator], X: np.ndarray, y: np.ndarray, folds: int) -> dict[str, float]:
    """Accuracy in percent, NLL and ECE of all held-out predictions together, and the processor's seconds per fit."""
    split = StratifiedKFold(folds, shuffle=True, random_state=SPLIT_SEED)
    probabilities, seconds = np.zeros((len(y), len(np.unique(y)))), 0.0
    for fold, (train, test) in enumerate(split.split(X, y)):
        started = time.process_time()
        with warnings.catch_warnings():
            # MLPClassifier's 200 epochs are its default, whether it has converged or not.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = model(fold).fit(X[train], y[train])
        seconds += time.process_time() - started
        probabilities[test] = fitted.predict_proba(X[test])
    p, labels = torch.from_numpy(probabilities), torch.from_numpy(y)
    return {
        "accuracy": 100 * float((p.argmax(dim=1) == labels).double().mean()),
        "nll": float(calibration.negative_log_likelihood(p, labels)),
        "ece": float(calibration.expected_calibration_error(p, labels)),
        "seconds": seconds / folds,
    }


def compare(names: Sequence[str], folds: int) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        X, y = DATA[name]()
        for title, model in MODELS.items():
            rows.append({"data": name, "model": title, "folds": folds, **cross_validate(model, X, y, folds)})
            print(line(rows[-1]), flush=True)
    return rows


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
    rows = compare(args.data or list(DATA), args.folds)
    if not args.no_write:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")
        args.out.with_suffix(".md").write_text(table(rows))


if __name__ == "__main__":
    main()
