"""Who sits in the wider minimum, BP or BinaryNet? Local entropy and local energy: the figure of docs/evidence.md.

    python scripts/compare_surroundings.py --json docs/data/surroundings.json --figure docs/images/surroundings.png

Both train 64-21-1 networks with ±1 weights to tell odd digits from even ones (scikit-learn's digits, the first 150
of the training set): BP for 60 epochs, BinaryNet (Adam, rate 0.01) until it makes no mistake, 500 epochs at most.
Local entropy by BP: the logarithm of the number of networks at each distance that get right what the trained one gets
right. Local energy from 20 draws of flips. Records that are in the file already are not made again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import cavity
from cavity.baselines import BinaryNet, BinaryNetTrainer
from cavity.core.messages import Fields
from cavity.core.predict import forward
from cavity.data import Dataset, load
from cavity.training.callbacks import OnEpoch
from cavity.util.files import write_whole

DISTANCES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1)
WIDTH, SAMPLES, EPOCHS, DRAWS = 21, 150, 60, 20
#: Epochs of BinaryNet at most; it keeps the weights with the fewest mistakes.
PATIENCE = 500
METHODS = {"bp": ("BP", "#2b6cb0"), "binarynet": ("BinaryNet", "#c05f14")}


def trained(method: str, x: Tensor, y: Tensor, seed: int) -> list[Tensor]:
    """±1 weights (outputs, inputs) of each layer."""
    if method == "binarynet":
        rival = BinaryNet(x.shape[1], (WIDTH,), 1, seed=seed)
        fewest, best = len(x) + 1, rival.point_weights()

        def look(trainer: BinaryNetTrainer, _: object) -> None:
            nonlocal fewest, best
            weights = [w.clone() for w in rival.point_weights()]
            wrong = int((holding(weights).predict(x) != y).sum())
            if wrong < fewest:
                fewest, best = wrong, weights
            trainer.stop = wrong == 0

        BinaryNetTrainer(rival, "adam", lr=0.01, seed=seed).fit(
            (x, y), epochs=PATIENCE, batch_size=32, callbacks=[OnEpoch(look)]
        )
        return best
    net = cavity.mlp(x.shape[1], (WIDTH,), 1, seed=seed)
    cavity.Trainer(net, "bp", seed=seed, compile=False).fit((x, y), epochs=EPOCHS, batch_size=32)
    return [layer.point() for layer in net.weighted()]


def holding(weights: Sequence[Tensor]) -> cavity.Network:
    """A network whose most probable weights are the given ones."""
    net = cavity.mlp(weights[0].shape[1], (WIDTH,), 1)
    for layer, w in zip(net.weighted(), weights, strict=True):
        natural = Fields(5.0 * w.detach(), None)
        layer.set_state(natural, layer.prior.moments(natural))
    return net


def surroundings(method: str, seed: int, data: Dataset) -> dict[str, Any]:
    """One record: training and test error, local entropy per weight and local energy at each distance."""
    x, y = data.x_train[:SAMPLES], data.y_train[:SAMPLES]
    weights = trained(method, x, y, seed)
    net = holding(weights)

    def error(flipped: Sequence[Tensor]) -> float:
        return 100 * float((net.output.predict(forward(net, flipped, x)) != y).float().mean())

    around = cavity.entropy.local_entropy(net, x, y, DISTANCES, damping=0.8)
    generator = torch.Generator().manual_seed(seed)
    energy = cavity.landscape.local_energy(error, weights, DISTANCES, repeats=DRAWS, generator=generator)
    return {
        "method": method,
        "seed": seed,
        "train_error": error(weights),
        "test_error": 100 * float((net.predict(data.x_test) != data.y_test).float().mean()),
        "distances": list(DISTANCES),
        "entropy": [None if value is None else value / around.weights for value in around.values],
        "unconstrained": list(around.unconstrained),
        "energy": energy.mean(dim=1).tolist(),
    }


def mean(values: Sequence[float | None]) -> float:
    """The mean, NaN where one is missing."""
    return float("nan") if None in values else sum(value for value in values if value is not None) / len(values)


def shown(values: Sequence[float | None]) -> str:
    """The mean, or how many are missing."""
    missing = sum(value is None for value in values)
    return f"{missing} of {len(values)} not converged" if missing else f"{mean(values):.4f}"


def lost(record: dict[str, Any]) -> list[float | None]:
    """Local entropy less that of all weights, which is nearly as large."""
    pairs = zip(record["entropy"], record["unconstrained"], strict=True)
    return [None if value is None else value - most for value, most in pairs]


def draw(records: list[dict[str, Any]], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.axhline(0, linestyle=":", color="#667", label="all weights")
    records = [{**one, "entropy": lost(one)} for one in records]
    for method, (title, colour) in METHODS.items():
        chosen = [one for one in records if one["method"] == method]
        for panel, key in ((left, "entropy"), (right, "energy")):
            for one in chosen:
                values = [float("nan") if value is None else value for value in one[key]]
                panel.plot(one["distances"], values, color=colour, alpha=0.25, linewidth=1)
            curve = [mean(at) for at in zip(*(one[key] for one in chosen), strict=True)]
            panel.plot(DISTANCES, curve, color=colour, marker="o", markersize=3, label=title)
    left.set(xlabel="distance from the trained weights", ylabel="local entropy per weight,\nless that of all weights")
    right.set(xlabel="fraction of flipped weights", ylabel="rise of the training error (%)")
    for panel in (left, right):
        panel.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)


def table(records: list[dict[str, Any]]) -> str:
    lines = ["| distance | all weights | BP | BinaryNet | energy, BP | energy, BinaryNet |", "|---" * 6 + "|"]
    groups = [[one for one in records if one["method"] == method] for method in METHODS]
    for place, distance in enumerate(DISTANCES):
        cells = [shown([one[key][place] for one in group]) for key in ("entropy", "energy") for group in groups]
        lines.append(f"| {distance:g} | {records[0]['unconstrained'][place]:.4f} | {' | '.join(cells)} |")
    for (title, _), group in zip(METHODS.values(), groups, strict=True):
        errors = {key: mean([one[key] for one in group]) for key in ("train_error", "test_error")}
        lines.append(f"\n{title}: training error {errors['train_error']:.2f} %, test {errors['test_error']:.2f} %")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--json", type=Path, required=True, help="records, added to what is there")
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    data = load("digits", binary_task=True)
    records = json.loads(args.json.read_text()) if args.json.exists() else []
    done = {(one["method"], one["seed"]) for one in records}
    for seed in map(int, args.seeds.split(",")):
        for method in METHODS:
            if (method, seed) not in done:
                records.append(surroundings(method, seed, data))
                write_whole(args.json, (json.dumps(records, indent=1) + "\n").encode())
    print(table(records))
    if args.figure is not None:
        draw(records, args.figure)


if __name__ == "__main__":
    main()
