"""The picture and the table of README.md and of the landing page.

    python scripts/front_page.py

The picture has the probabilities of ``MessagePassingClassifier`` beside those of scikit-learn's ``MLPClassifier`` on
two moons; the MLP gets as many epochs as it needs to converge, else both have their defaults. The table is a short form
of docs/data/estimators.json, which ``scripts/compare_estimators.py`` measures; it is written between the marks of both
pages.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import make_moons
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cavity
from cavity.util.files import write_whole

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "index.md")
FIGURES = ROOT / "docs" / "data" / "estimators.json"
PICTURE = ROOT / "docs" / "images" / "front.png"
MARKED = re.compile(r"(<!-- table: [^>]*-->).*?(<!-- end of table -->)", re.DOTALL)
OURS, THEIRS = "message passing", "MLPClassifier"


def regions() -> Figure:
    """Two maps of the plane: how probable each model finds class 1."""
    X, y = make_moons(300, noise=0.2, random_state=0)
    models = {
        "cavity": cavity.MessagePassingClassifier(random_state=0),
        "MLPClassifier": make_pipeline(StandardScaler(), MLPClassifier(max_iter=5000, random_state=0)),
    }
    a, b = np.meshgrid(np.linspace(-4, 5, 200), np.linspace(-3, 3.5, 150))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
    for ax, (title, model) in zip(axes, models.items(), strict=True):
        p = model.fit(X, y).predict_proba(np.column_stack([a.ravel(), b.ravel()]))[:, 1].reshape(a.shape)
        image = ax.pcolormesh(a, b, p, cmap="RdBu_r", vmin=0, vmax=1, rasterized=True)
        ax.contour(a, b, p, levels=[0.05, 0.95], colors="black", linewidths=0.8, linestyles="--")
        ax.scatter(*X.T, c=y, cmap="RdBu_r", s=9, edgecolor="white", linewidth=0.4)
        ax.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, ax=axes, label="probability of class 1", shrink=0.9)
    return figure


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Data sets down, the two models side by side; the better value of accuracy and NLL is bold."""
    head = "| data | accuracy % | MLP | NLL | MLP | s per fit | MLP |\n|---|---:|---:|---:|---:|---:|---:|"
    found = {(row["data"], row["model"]): row for row in rows}
    lines = [line(name, found[name, OURS], found[name, THEIRS]) for name in dict.fromkeys(row["data"] for row in rows)]
    return "\n".join([head, *lines])


def line(name: str, ours: dict[str, float], theirs: dict[str, float]) -> str:
    accuracy = pair(f"{ours['accuracy']:.1f}", f"{theirs['accuracy']:.1f}", larger=True)
    nll = pair(f"{ours['nll']:.3f}", f"{theirs['nll']:.3f}", larger=False)
    return f"| {name} | {accuracy} | {nll} | {ours['seconds']:.1f} | {theirs['seconds']:.1f} |"


def pair(ours: str, theirs: str, *, larger: bool) -> str:
    """Two cells; of values that differ as they are printed the better one is bold."""
    better = float(ours) > float(theirs) if larger else float(ours) < float(theirs)
    if float(ours) == float(theirs):
        return f"{ours} | {theirs}"
    return f"**{ours}** | {theirs}" if better else f"{ours} | **{theirs}**"


def with_table(page: str, rows: Sequence[dict[str, Any]]) -> str:
    """The page with the table between its marks; ValueError if it has none."""
    written, count = MARKED.subn(lambda marks: f"{marks[1]}\n\n{table(rows)}\n\n{marks[2]}", page)
    if count != 1:
        raise ValueError(f"the page must have one place for the table (<!-- table: … -->), it has {count}")
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--picture", type=Path, default=PICTURE)
    args = parser.parse_args()
    plt.switch_backend("Agg")
    regions().savefig(args.picture, dpi=130, metadata={"Software": None})
    rows = json.loads(FIGURES.read_text())
    for page in PAGES:
        write_whole(page, with_table(page.read_text(), rows).encode())


if __name__ == "__main__":
    main()
