"""Do the fields of BP stay within tolerance of exact BP along a whole training run?

Trains 784-501-501-10 on Fashion-MNIST and, after every few epochs, updates the same network on the same mini-batch
twice: with the series that training uses at that moment, and edge by edge. Prints the polarisation of the first two
layers, the series in use, and the largest difference of each layer's field H relative to its largest entry.

    python scripts/check_series.py --epochs 100 --rho 1.0001 --json docs/data/series-along-training.json
"""

from __future__ import annotations

import argparse
import copy
import json
from pathlib import Path

import torch

import cavity
from cavity import data
from cavity.analysis.metrics import EpochRecord
from cavity.training.callbacks import OnEpoch


def field_errors(trainer: cavity.Trainer, x: torch.Tensor, y: torch.Tensor) -> list[float]:
    """max|H_series − H_exact| / max|H_exact| of each layer, for one mini-batch from the trainer's present state."""
    fields = []
    for accuracy in (None, "exact"):
        net = copy.deepcopy(trainer.net)
        for layer in net.weighted():
            # H depends on the means alone, and what is left on an empty field is H: added to the field of a long run,
            # which is thousands of times as large, it would be rounded to about the tolerance.
            layer.field.zero_()
        twin = cavity.Trainer(net, "bp", rho=trainer.rho, damping=trainer.damping, accuracy=accuracy, compile=False)
        if accuracy is None:
            twin.runner.load_state_dict(trainer.runner.state_dict())
            # Not a sweep in which the series would be chosen anew.
            twin.runner.sweeps = 257
        twin.step(x, y)
        fields.append([layer.field for layer in net.weighted()])
    return [float((series - exact).abs().max() / exact.abs().max()) for series, exact in zip(*fields, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--every", type=int, default=5, help="epochs between two looks")
    parser.add_argument("--rho", type=float, default=1.0001, help="rho of all layers but the last, which has 0.9")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where to write the records")
    options = parser.parse_args()

    dataset = data.load("fashion-mnist")
    net = cavity.mlp(784, (501, 501), 10, seed=options.seed)
    trainer = cavity.Trainer(net, "bp", rho=(options.rho, options.rho, 0.9), seed=options.seed)
    generator = torch.Generator().manual_seed(1)
    records = []

    def look(trainer: cavity.Trainer, record: EpochRecord) -> None:
        if record.epoch % options.every and record.epoch != 1:
            return
        index = torch.randint(len(dataset.x_train), (options.batch_size,), generator=generator)
        errors = field_errors(trainer, dataset.x_train[index], dataset.y_train[index])
        series = [saved["series"] for saved in trainer.runner.state_dict()[:2]]
        records.append(
            {
                "epoch": record.epoch,
                "q0": record.polarization[:2],
                "series": series,
                "field_error": errors[:2],
                "test_error": record.test_error,
                "test_error_bayes": record.test_error_bayes,
                "seconds": record.seconds,
            }
        )
        q0 = " ".join(f"{q:.4f}" for q in record.polarization[:2])
        gaps = " ".join(f"{error:.1e}" for error in errors[:2])
        print(
            f"epoch {record.epoch:3d}  q0 {q0}  series {series}  field error {gaps}  "
            f"test {record.test_error:.2f} % ({record.test_error_bayes:.2f} % Bayes)  {record.seconds:.1f} s",
            flush=True,
        )
        if options.json:
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.write_text(json.dumps(records, indent=1) + "\n")

    trainer.fit(
        (dataset.x_train, dataset.y_train),
        validation=(dataset.x_test, dataset.y_test),
        epochs=options.epochs,
        batch_size=options.batch_size,
        callbacks=[OnEpoch(look)],
    )


if __name__ == "__main__":
    main()
