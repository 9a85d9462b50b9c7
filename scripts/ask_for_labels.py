"""Accuracy against labels asked, where the network is unsure or at random (docs/how-to/active-learning.md).

    python scripts/ask_for_labels.py --json docs/data/labels-asked.json --figure docs/images/labels-asked.png

A stream of digits (scikit-learn) comes in parts of 50 samples, and MNIST in parts of 200 if it is under $CAVITY_DATA.
Of each part after the first, labels are asked where the predictive entropy is above a threshold; or a share of them:
those with the largest entropy, or some at random. The network makes one pass over what it was told. Accuracy is that on
the test set at the end of the stream. Records that are in the file already are not made again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import cavity
from cavity import data
from cavity.util.files import write_whole

#: Samples of the stream and of its parts, and hidden units.
STREAMS = {"digits": (1400, 50, 101), "mnist": (10_000, 200, 301)}
SHARES = (0.04, 0.08, 0.16, 0.3, 0.5, 1.0)
#: How labels are asked, and the levels of each: nats, or shares of a part.
POLICIES = {
    "threshold": ("above a threshold", (2.0, 1.6, 1.2, 0.8, 0.4)),
    "largest": ("where it is most unsure", SHARES),
    "random": ("at random", SHARES),
}
COLOURS = {"threshold": "#2f855a", "largest": "#b7791f", "random": "#718096"}


def entropy(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of predictions p (samples, classes), in nats."""
    result: NDArray[np.float64] = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1)
    return result


def chosen(p: NDArray[np.float64], policy: str, level: float, draw: np.random.Generator) -> NDArray[np.intp]:
    """Which of the samples with predictions p (samples, classes) are asked for their labels."""
    if policy == "threshold":
        return np.flatnonzero(entropy(p) > level)
    worth = entropy(p) if policy == "largest" else draw.random(len(p))
    return np.argsort(-worth)[: max(1, round(level * len(p)))]


def asked_for(name: str, policy: str, level: float, seed: int) -> dict[str, Any]:
    """One stream: how many labels were asked, and the accuracy at its end."""
    samples, part, hidden = STREAMS[name]
    dataset, draw = data.load(name), np.random.default_rng(seed)
    x, y = dataset.x_train.flatten(1).double().numpy(), dataset.y_train.numpy()
    order = draw.permutation(len(x))[:samples]
    clf = cavity.MessagePassingClassifier(
        (hidden,), weights="binary", activation="sign", memory=10_000, standardize=False, random_state=seed
    )
    asked = 0
    for start in range(0, len(order), part):
        rows = order[start : start + part]
        if start:
            rows = rows[chosen(clf.predict_proba(x[rows]), policy, level, draw)]
        if len(rows):
            clf.partial_fit(x[rows], y[rows], classes=range(10))
        asked += len(rows)
    right = clf.score(dataset.x_test.flatten(1).double().numpy(), dataset.y_test.numpy())
    return {"data": name, "policy": policy, "level": level, "seed": seed, "asked": asked, "accuracy": right}


def figure(records: list[dict[str, Any]]) -> Figure:
    """Mean over seeds, and each seed as a dot."""
    names = [name for name in STREAMS if any(record["data"] == name for record in records)]
    fig = Figure(figsize=(4.2 * len(names), 3.4), layout="constrained")
    for axes, name in zip(fig.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for policy, (label, _) in POLICIES.items():
            own = [record for record in records if (record["data"], record["policy"]) == (name, policy)]
            levels = sorted({record["level"] for record in own})
            groups = [[record for record in own if record["level"] == level] for level in levels]
            means = [[np.mean([record[key] for record in group]) for group in groups] for key in ("asked", "accuracy")]
            axes.plot(means[0], 100 * np.array(means[1]), color=COLOURS[policy], label=label)
            dots = [(record["asked"], 100 * record["accuracy"]) for record in own]
            axes.plot(*zip(*dots, strict=True), "o", color=COLOURS[policy], markersize=3)
        axes.set_xscale("log")
        axes.set_xlabel("labels asked")
        axes.set_title(f"{name}: a stream of {STREAMS[name][0]:,} samples", fontsize=10)
        axes.grid(alpha=0.3)
    fig.axes[0].set_ylabel("test accuracy, %")
    fig.axes[0].legend(title="labels are asked", frameon=False, loc="lower right")
    return fig


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", nargs="+", choices=STREAMS, default=["digits"])
    args = parser.parse_args()
    records = json.loads(args.json.read_text()) if args.json.exists() else []
    done = {(record["data"], record["policy"], record["level"], record["seed"]) for record in records}
    for name in args.data:
        for seed in range(args.seeds):
            for policy, (_, levels) in POLICIES.items():
                for level in levels:
                    if (name, policy, level, seed) in done:
                        continue
                    records.append(asked_for(name, policy, level, seed))
                    print(records[-1], flush=True)
                    write_whole(args.json, (json.dumps(records, indent=1) + "\n").encode())
    if args.figure is not None:
        figure(records).savefig(args.figure, dpi=150)


if __name__ == "__main__":
    main()
