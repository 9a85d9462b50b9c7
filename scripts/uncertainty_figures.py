"""Table and plots of compare_uncertainty.py, made from the JSON files that it wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import torch

from cavity.analysis.calibration import Reliability, plot_reliability

matplotlib.use("Agg")

HEAD = "| method | epochs | accuracy % | NLL | ECE | adaptive ECE | Brier | OOD AUROC | training s | bytes |"
#: Figures that are drawn as bars: key, title, what a unit is, and how the value is written.
BARS = (
    ("accuracy", "accuracy %", 1, ".1f"),
    ("nll", "NLL", 1, ".3f"),
    ("ece", "ECE", 1, ".3f"),
    ("auroc", "OOD AUROC", 1, ".3f"),
    ("seconds", "training, s", 1, ".0f"),
    ("bytes", "model, kB", 1000, ",.0f"),
)
#: Drawn from just below the smallest value on: nothing is near 0.
CUT = ("accuracy", "auroc")


def records(folder: Path, data: str, methods: Sequence[str]) -> list[dict[str, Any]]:
    """What has been written so far, in the order of ``methods``."""
    paths = [folder / f"{data}-{method}.json" for method in methods]
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown, one line a method."""
    lines = [HEAD, "|---" * (HEAD.count("|") - 1) + "|"]
    for row in rows:
        cells = [row["title"], str(row["epochs"]), f"{row['accuracy']:.2f}"]
        cells += [f"{row[key]:.3f}" for key in ("nll", "ece", "adaptive_ece", "brier", "auroc")]
        cells += [f"{row['seconds']:.0f}", f"{row['bytes']:,}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def diagram(row: dict[str, Any]) -> Reliability:
    parts = row["reliability"]
    return Reliability(
        *(torch.tensor([float("nan") if v is None else v for v in parts[name]]) for name in Reliability._fields)
    )


def plot_diagrams(rows: Sequence[dict[str, Any]], path: Path) -> None:
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, -(-len(rows) // 2), figsize=(11, 6), sharex=True, sharey=True, squeeze=False)
    for axes, row in zip(grid.flat, rows, strict=False):
        plot_reliability(diagram(row), axes)
        axes.set_title(row["title"].replace(", ", ",\n", 1), fontsize=9)
        axes.text(0.05, 0.9, f"ECE {row['ece']:.3f}", fontsize=9, transform=axes.transAxes)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    for axes in list(grid.flat)[len(rows) :]:
        axes.axis("off")
    figure.supxlabel("confidence")
    figure.supylabel("accuracy")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def plot_bars(rows: Sequence[dict[str, Any]], path: Path) -> None:
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, 3, figsize=(12, 6), sharey=True)
    names = [row["title"] for row in rows][::-1]
    colors = ["tab:blue" if row["method"].startswith("bp") else "silver" for row in rows][::-1]
    for axes, (key, title, unit, shape) in zip(grid.flat, BARS, strict=True):
        values = [row[key] / unit for row in rows][::-1]
        bars = axes.barh(names, values, color=colors)
        axes.bar_label(bars, [format(value, shape) for value in values], padding=2, fontsize=8)
        axes.set_title(title, fontsize=10)
        axes.tick_params(labelsize=8)
        low = 0.98 * min(values) if key in CUT else 0.0
        axes.set_xlim(low, low + 1.25 * (max(values) - low))
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def draw(folder: Path, data: str, methods: Sequence[str], images: Path) -> None:
    """Write <folder>/<data>.md and two plots below ``images``."""
    rows = records(folder, data, methods)
    images.mkdir(parents=True, exist_ok=True)
    (folder / f"{data}.md").write_text(table(rows))
    print(table(rows))
    plot_diagrams(rows, images / f"uncertainty-{data}-reliability.png")
    plot_bars(rows, images / f"uncertainty-{data}-bars.png")
