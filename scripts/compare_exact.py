"""Does BP by series learn what exact BP learns?

Trains 784-501-501-10 on Fashion-MNIST for two epochs from several seeds, twice each: with the series that training
chooses, and edge by edge. Prints both test errors, their means, and whether the differences, seed by seed, are
compatible with none (a paired t-test). What is finished is kept in the JSON file and not done again.

    python scripts/compare_exact.py --json docs/data/series-two-epochs.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean, stdev

from scipy.stats import ttest_rel

import cavity
from cavity import data
from cavity.analysis.metrics import measure
from cavity.data import Dataset

KINDS = ("series", "exact")


def test_errors(dataset: Dataset, kind: str, seed: int, epochs: int) -> list[float]:
    """Test error in percent, point-wise and Bayesian, after the last epoch."""
    net = cavity.mlp(784, (501, 501), 10, seed=seed)
    accuracy = "exact" if kind == "exact" else None
    trainer = cavity.Trainer(net, "bp", accuracy=accuracy, compile=True, seed=seed)
    trainer.fit((dataset.x_train, dataset.y_train), epochs=epochs, evaluate_every=epochs)
    found = measure(net, dataset.x_test, dataset.y_test)
    return [found.error, found.error_bayes]


def summary(found: dict[str, list[float]], seeds: int, place: int) -> dict[str, float]:
    """Means and standard deviations over the seeds, and the p-value of the paired differences."""
    columns = {kind: [found[f"{kind}-{seed}"][place] for seed in range(seeds)] for kind in KINDS}
    result = {
        f"{kind}_{name}": f(values) for kind, values in columns.items() for name, f in (("mean", mean), ("std", stdev))
    }
    return {**result, "p_value": float(ttest_rel(columns["series"], columns["exact"]).pvalue)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path, required=True, help="where to keep the results")
    options = parser.parse_args()

    dataset = data.load("fashion-mnist")
    kept = json.loads(options.json.read_text()) if options.json.exists() else {}
    found: dict[str, list[float]] = kept.get("test_errors", {})
    for seed in range(options.seeds):
        for kind in KINDS:
            name = f"{kind}-{seed}"
            if name not in found:
                found[name] = test_errors(dataset, kind, seed, options.epochs)
                options.json.write_text(json.dumps({"epochs": options.epochs, "test_errors": found}, indent=1) + "\n")
            print(f"seed {seed} {kind:6s}  {found[name][0]:.2f} %  ({found[name][1]:.2f} % Bayes)", flush=True)
    point, bayes = (summary(found, options.seeds, place) for place in (0, 1))
    result = {"epochs": options.epochs, "test_errors": found, "point": point, "bayes": bayes}
    options.json.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({"point": point, "bayes": bayes}, indent=1))


if __name__ == "__main__":
    main()
