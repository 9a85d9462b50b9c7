"""Does the evidence of the training set choose settings that predict well? The table and figure of docs/evidence.md.

    python scripts/select_by_evidence.py --json docs/data/evidence.json --figure docs/images/evidence.png

For digits, breast-cancer and wine (scikit-learn) every setting of a grid of widths, ε and, for two classes, the noise
of the output is judged by log P(y | x) of the training set under the prior (AMP, mini-batches of 64), by the test NLL
of the posterior that this leaves, which has seen every sample once, and by the test NLL after 20 epochs of training.
The test set, a fifth of the samples, chooses nothing. A second criterion is the evidence of the second half of the
training set given the first. Records that are in the file already are not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import torch
from sklearn import datasets
from sklearn.model_selection import train_test_split

import cavity
from cavity.analysis.metrics import measure
from cavity.util.files import write_whole

LOADERS = {"digits": datasets.load_digits, "breast-cancer": datasets.load_breast_cancer, "wine": datasets.load_wine}
WIDTHS = {"digits": (11, 31, 101), "breast-cancer": (5, 21, 51), "wine": (5, 21, 51)}
EPSILONS = (0.3, 1.0, 2.0)
#: Variances of the noise of a label output; an argmax has none.
NOISES = {"digits": (None,), "breast-cancer": (0.1, 5.0, 50.0), "wine": (None,)}
BATCH, EPOCHS = 64, 20
#: What may choose a setting, without a look at the test set.
CRITERIA = {"evidence": "evidence", "conditional": "second half"}
#: What settings are judged by.
JUDGES = {"nll_once": "the posterior", "nll": "20 epochs"}
#: A chosen setting is good if its NLL is within this part of the best.
MARGIN = 0.05


def split(name: str, seed: int) -> tuple[torch.Tensor, ...]:
    """Standardised inputs and labels to train on and to test with, 4 to 1."""
    x, y = LOADERS[name](return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.2, stratify=y, random_state=seed)
    mean, scale = train_x.mean(axis=0), train_x.std(axis=0) + 1e-9
    inputs = (torch.tensor((part - mean) / scale, dtype=torch.float32) for part in (train_x, test_x))
    labels = (torch.tensor(part) for part in (train_y, test_y))
    if y.max() == 1:
        labels = (2 * part - 1 for part in labels)
    return (*inputs, *labels)


def network(name: str, inputs: int, classes: int, width: int, epsilon: float, noise: float | None, seed: int) -> Any:
    output = None if noise is None else cavity.Label(noise)
    return cavity.mlp(inputs, (width,), 1 if classes == 2 else classes, output=output, init=epsilon, seed=seed)


def evidences(net: cavity.Network, x: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
    """Evidence per sample, of all and of the second half given the first; ``net`` is left with the posterior."""
    half = BATCH * (len(x) // (2 * BATCH))
    found = []
    for rows in (slice(0, half), slice(half, None)):
        part = cavity.entropy.log_evidence(
            net, x[rows], y[rows], algorithm="amp", batch_size=BATCH, iterations=100, tolerance=0.01
        )
        for layer, natural in zip(net.weighted(), part.posterior, strict=True):
            layer.set_state(natural, layer.prior.moments(natural))
        found.append(part)
    return {
        "evidence": sum(part.estimate for part in found) / len(x),
        "conditional": found[1].estimate / (len(x) - half),
        "converged": all(part.converged for part in found),
    }


def judged(name: str, width: int, epsilon: float, noise: float | None, seed: int) -> dict[str, Any]:
    """One setting: evidence per training sample, and what training makes of it."""
    train_x, test_x, train_y, test_y = split(name, seed)
    setting = (name, train_x.shape[1], len(torch.unique(train_y)), width, epsilon, noise, seed)
    started = time.perf_counter()
    net = network(*setting)
    found = evidences(net, train_x, train_y)
    seconds = time.perf_counter() - started
    once = measure(net, test_x, test_y)
    net = network(*setting)
    cavity.Trainer(net, "amp", seed=seed, compile=False).fit((train_x, train_y), epochs=EPOCHS, batch_size=BATCH)
    trained = measure(net, test_x, test_y)
    return {
        "data": name,
        "width": width,
        "epsilon": epsilon,
        "noise": noise,
        "seed": seed,
        **found,
        "seconds": round(seconds, 2),
        "nll_once": once.nll,
        "nll": trained.nll,
        "error_bayes": trained.error_bayes,
    }


def averaged(records: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """One record for each setting of a data set: means over the seeds, converged only if all are."""
    keys = ("width", "epsilon", "noise")
    settings: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        if record["data"] == name:
            settings.setdefault(tuple(record[key] for key in keys), []).append(record)
    return [
        dict(zip(keys, setting, strict=True))
        | {
            key: sum(one[key] for one in group) / len(group)
            for key in ("evidence", "conditional", "nll_once", "nll", "error_bayes")
        }
        | {"converged": all(one["converged"] for one in group), "seeds": len(group)}
        for setting, group in settings.items()
    ]


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: for each data set, what the evidence chooses and what would have been best, once and after training."""
    lines = [
        "| data | converged | by the | it chooses | judged by | NLL | best | its setting | median | within 5 % |",
        "|---" * 10 + "|",
    ]
    for name in dict.fromkeys(record["data"] for record in records):
        settings = averaged(records, name)
        usable = [one for one in settings if one["converged"]]
        for (by, criterion), (key, title) in product(CRITERIA.items(), JUDGES.items()):
            chosen = max(usable, key=lambda one, by=by: one[by])
            best, nlls = min(settings, key=lambda one: one[key]), sorted(one[key] for one in settings)
            within = "yes" if chosen[key] <= (1 + MARGIN) * best[key] else "no"
            lines.append(
                f"| {name} | {len(usable)} of {len(settings)} | {criterion} | {words(chosen)} | {title} | "
                f"{chosen[key]:.4f} | {best[key]:.4f} | {words(best)} | {nlls[len(nlls) // 2]:.4f} | {within} |"
            )
    return "\n".join(lines)


def words(setting: dict[str, Any]) -> str:
    noise = "" if setting["noise"] is None else f", ν = {setting['noise']:g}"
    return f"{setting['width']} units, ε = {setting['epsilon']:g}{noise}"


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Test NLL against the evidence: a column for each data set, a row for each judge, a mark for each setting."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    names = list(dict.fromkeys(record["data"] for record in records))
    size = (3.6 * len(names), 3 * len(JUDGES))
    figure, panels = plt.subplots(len(JUDGES), len(names), figsize=size, layout="constrained", squeeze=False)
    colours = dict(zip(EPSILONS, ("#2b6cb0", "#c05f14", "#2f855a"), strict=True))
    for (row, (key, title)), (column, name) in product(enumerate(JUDGES.items()), enumerate(names)):
        panel = panels[row, column]
        for one in averaged(records, name):
            marker = "o" if one["converged"] else "x"
            panel.scatter(one["evidence"], one[key], color=colours[one["epsilon"]], marker=marker, s=28)
        panel.set(title=f"{name}: {title}", xlabel="log-evidence per training sample", ylabel="test NLL", yscale="log")
        panel.xaxis.set_major_locator(MaxNLocator(5))
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
    # Beside the panels: inside, it would cover marks.
    marks = [Line2D([], [], ls="", marker="o", color=colour, label=f"ε = {e:g}") for e, colour in colours.items()]
    marks.append(Line2D([], [], ls="", marker="x", color="#555555", label="not converged"))
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(LOADERS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--json", type=Path, required=True, help="records, added to what is there")
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    records = json.loads(args.json.read_text()) if args.json.exists() else []
    done = {tuple(one[key] for key in ("data", "width", "epsilon", "noise", "seed")) for one in records}
    for seed, name in product(map(int, args.seeds.split(",")), args.data.split(",")):
        for setting in product([name], WIDTHS[name], EPSILONS, NOISES[name], [seed]):
            if setting not in done:
                records.append(judged(*setting))
                write_whole(args.json, (json.dumps(records, indent=1) + "\n").encode())
    print(table(records))
    if args.figure is not None:
        draw(records, args.figure)


if __name__ == "__main__":
    main()
