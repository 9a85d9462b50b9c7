"""What the annealed rate reaches on Fashion-MNIST, 784-501-501-10, mini-batches of 128: the table of
docs/benchmarks.md.

    python scripts/measure_rate.py --epochs 10,30,100 --algorithms mf --json docs/data/rate.json

Every run is one line of records; those that are in the file already are not run again, so that the command goes on
where it was stopped. All figures are those of the last epoch on the test set. κ, the
quench and the readout were chosen on the last 10,000 training images; one run on the test set was seen before the
strength of the readout was settled.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch

import cavity
from cavity import data
from cavity.util.files import write_whole

TITLES = {"test_error_bayes": "Bayesian", "test_error": "1-bit", "test_nll": "NLL", "test_ece": "ECE"}


def trained(algorithm: str, epochs: int, seed: int, train: Any, test: Any) -> dict[str, Any]:
    """The record of the last epoch of one run with the defaults of ``cavity train``."""
    trainer = cavity.Trainer(cavity.mlp(784, (501, 501), 10, seed=seed), algorithm, seed=seed)
    started = time.perf_counter()
    record = trainer.fit(train, epochs=epochs, validation=test, evaluate_every=epochs)[-1]
    found = {name: getattr(record, name) for name in TITLES}
    return {"algorithm": algorithm, "epochs": epochs, "seed": seed, **found, "seconds": time.perf_counter() - started}


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: mean and, behind ±, standard deviation over the seeds."""
    lines = [f"| algorithm | epochs | seeds | {' | '.join(TITLES.values())} |", "|---" * (3 + len(TITLES)) + "|"]
    for algorithm, epochs in dict.fromkeys((one["algorithm"], one["epochs"]) for one in records):
        chosen = [one for one in records if (one["algorithm"], one["epochs"]) == (algorithm, epochs)]
        cells = []
        for name in TITLES:
            values, digits = [one[name] for one in chosen], 2 if "error" in name else 4
            spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.{digits}f}{spread}")
        seeds = ", ".join(str(one["seed"]) for one in chosen)
        lines.append(f"| {algorithm.upper()} | {epochs} | {seeds} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", default="10,30")
    parser.add_argument("--algorithms", default="mf")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--threads", type=int, help="without it, as torch chooses")
    parser.add_argument("--json", type=Path, required=True, help="records, added to what is there")
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    dataset = data.load("fashion-mnist")
    train, test = (dataset.x_train, dataset.y_train), (dataset.x_test, dataset.y_test)
    records = json.loads(options.json.read_text()) if options.json.exists() else []
    done = {(one["algorithm"], one["epochs"], one["seed"]) for one in records}
    for epochs in map(int, options.epochs.split(",")):
        for algorithm in options.algorithms.split(","):
            for seed in map(int, options.seeds.split(",")):
                if (algorithm, epochs, seed) not in done:
                    records.append(trained(algorithm, epochs, seed, train, test))
                    write_whole(options.json, json.dumps(records, indent=1).encode())
                    print(records[-1], flush=True)
    print(table(records))


if __name__ == "__main__":
    main()
