"""How much slower a fit with the default threads is than with the best number of them, beside other busy processes.

Fits take turns in an order that changes, so that all meet the same company; the least of several times counts.
They are short ones of a few epochs, because two threads may take ten times as long as one beside busy processes: all of
it takes three minutes or so on two processors.

    python scripts/bench_threads.py                        # 0, 1 and as many busy processes as processors
    python scripts/bench_threads.py --busy 4 --repeat 5
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings

import numpy as np
import torch
from sklearn.datasets import make_classification

import cavity
import cavity.util.threads

SETS = {"1,000 × 20": (1000, 20, {"epochs": 6}), "5,000 × 784": (5000, 784, {"epochs": 3})}


def seconds(X: np.ndarray, y: np.ndarray, options: dict[str, int], threads: int | None, most: int) -> float:
    """One fit; None leaves the threads to the estimator, a number is the only one it may use."""
    torch.set_num_threads(most if threads is None else threads)
    model = cavity.MessagePassingClassifier(random_state=0, **options)
    if threads is not None:
        # The estimator takes what torch has as the most: make every piece of work worth it.
        cavity.util.threads.WORTH_A_THREAD = 1.0
        cavity.util.threads.free_processors = lambda: threads  # type: ignore[assignment]
    started = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - started


def compare(name: str, busy: int, repeat: int) -> str:
    """A row of the table."""
    samples, features, options = SETS[name]
    X, y = make_classification(samples, features, n_informative=10, random_state=0)
    most, kept = os.cpu_count() or 1, (cavity.util.threads.WORTH_A_THREAD, cavity.util.threads.free_processors)
    company = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    found: dict[int | None, list[float]] = {threads: [] for threads in (None, *range(1, most + 1))}
    try:
        time.sleep(0.5)
        for number in range(repeat):
            turns = list(found.items())
            for threads, times in turns[number % len(turns) :] + turns[: number % len(turns)]:
                cavity.util.threads.WORTH_A_THREAD, cavity.util.threads.free_processors = kept
                times.append(seconds(X, y, options, threads, most))
    finally:
        cavity.util.threads.WORTH_A_THREAD, cavity.util.threads.free_processors = kept
        for process in company:
            process.kill()
            process.wait()
    least = {threads: min(times) for threads, times in found.items()}
    default = least.pop(None)
    best = min(least, key=least.__getitem__)
    cells = ", ".join(f"{threads}: {least[threads]:.2f}" for threads in least)
    return f"| {name} | {busy} | {default:.2f} | {cells} | {100 * (default / least[best] - 1):+.0f} % |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--busy", type=int, action="append", help="busy processes; repeatable")
    parser.add_argument("--repeat", type=int, default=8)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    cavity.MessagePassingClassifier(epochs=1).fit(np.eye(4), [0, 1, 0, 1])
    print("| data | busy processes | default, s | threads, s | default against the best |\n|---|---|---|---|---|")
    for busy in args.busy or (0, 1, os.cpu_count() or 1):
        for name in SETS:
            print(compare(name, busy, args.repeat), flush=True)


if __name__ == "__main__":
    main()
