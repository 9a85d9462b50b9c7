"""Time of ``MessagePassingClassifier().fit`` against scikit-learn's ``MLPClassifier().fit``, and of its predictions.

Both have their defaults and one thread; the MLP gets inputs that are standardised already. Fits alternate in one
process, and the median counts, of the times and of the ratio of two neighbours.

    python scripts/bench_fits.py                       # two minutes on a quiet machine
    python scripts/bench_fits.py --data iris --data wine --repeat 30
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import cavity

Arrays = tuple[np.ndarray, np.ndarray]


def made(samples: int, features: int, informative: int, classes: int) -> Arrays:
    """A set of make_classification with one cluster a class."""
    shape = {"n_informative": informative, "n_classes": classes, "n_clusters_per_class": 1}
    X, y = datasets.make_classification(samples, features, random_state=0, **shape)
    return X, y


#: Each set, and how often both are fitted.
DATA: dict[str, tuple[Callable[[], Arrays], int]] = {
    "iris": (lambda: datasets.load_iris(return_X_y=True), 15),
    "wine": (lambda: datasets.load_wine(return_X_y=True), 15),
    "moons, 500": (lambda: datasets.make_moons(500, noise=0.2, random_state=0), 9),
    "breast cancer": (lambda: datasets.load_breast_cancer(return_X_y=True), 9),
    "1,000 × 20": (lambda: made(1000, 20, 10, 2), 7),
    "20 classes, 1,400 × 30": (lambda: made(1400, 30, 15, 20), 7),
    "5,000 × 784": (lambda: made(5000, 784, 40, 10), 3),
}


def seconds(work: Callable[..., object], *args: np.ndarray) -> float:
    """How long the call takes."""
    started = time.perf_counter()
    work(*args)
    return time.perf_counter() - started


def compare(name: str, repeat: int | None) -> str:
    """A row of the table."""
    load, usual = DATA[name]
    X, y = load()
    standard = StandardScaler().fit_transform(X)
    model = cavity.MessagePassingClassifier()
    ours, theirs = [], []
    for seed in range(repeat or usual):
        theirs.append(seconds(MLPClassifier(random_state=seed).fit, standard, y))
        ours.append(seconds(model.set_params(random_state=seed).fit, X, y))
    one, many = (1e3 * np.median([seconds(model.predict, part) for _ in range(30)]) for part in (X[:1], X[:600]))
    times = f"{1e3 * np.median(ours):.0f} | {1e3 * np.median(theirs):.0f} | {np.median(np.divide(ours, theirs)):.2f}"
    return f"| {name} | {times} | {one:.2f} | {many:.1f} ({len(X[:600])}) |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", action="append", choices=DATA, help="one set; repeatable (default: all)")
    parser.add_argument("--repeat", type=int, help="fits of each model (default: 3 to 15)")
    args = parser.parse_args()
    # The MLP's 200 epochs are its default, whether it has converged or not.
    warnings.simplefilter("ignore", ConvergenceWarning)
    torch.set_num_threads(1)
    threadpool_limits(1)
    cavity.MessagePassingClassifier(epochs=1).fit(np.eye(4), [0, 1, 0, 1])
    print("| data | fit, ms | MLP's fit, ms | ratio | predict one row, ms | predict up to 600 rows, ms |")
    print("|---|---|---|---|---|---|")
    for name in args.data or DATA:
        print(compare(name, args.repeat), flush=True)


if __name__ == "__main__":
    main()
