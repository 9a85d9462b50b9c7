"""Summaries made of plain numbers, and a parser of what is drawn from them."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from cavity.analysis.metrics import EpochRecord
from cavity.report.summary import Bins, Example, FirstLayer, LayerSummary, RunSummary, TestSummary

HOSTILE = "</title><script>alert(1)</script>\"'&amp; $\\frac{$ \x07"


def record(epoch: int, **changes: object) -> EpochRecord:
    """A record whose numbers fall with the epochs, in two layers."""
    numbers = {
        "epoch": epoch,
        "train_error": 20 / epoch,
        "test_error": 25 / epoch,
        "train_error_bayes": 18 / epoch,
        "test_error_bayes": 22 / epoch,
        "test_nll": 1 / epoch,
        "test_ece": 0.1 / epoch,
        "seconds": 1.5,
        "polarization": [1 - 1 / (epoch + 1), 0.5],
        "overlap": [-0.01 * epoch, 0.02],
    }
    return EpochRecord(**{**numbers, **changes})


def layer(number: int, **changes: object) -> LayerSummary:
    shares = np.full(40, 1 / 40)
    values = {
        "name": f"Layer {number}",
        "kind": "binary",
        "free_weights": 1234,
        "bound": 1.0,
        "edges": np.linspace(-1, 1, 41),
        "shares": shares,
        "committed": 0.25,
        "polarization": 0.5,
    }
    return LayerSummary(**{**values, **changes})


def example(index: int, truth: str = "cat", predicted: str = "cat", image: bool = True) -> Example:
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8) if image else None
    return Example(index, truth, predicted, 0.9, pixels)


def bins() -> Bins:
    """Four bins, the first empty, the second overconfident, the third modest, the last exact."""
    return Bins(
        share=np.array([0.0, 0.2, 0.3, 0.5]),
        confidence=np.array([np.nan, 0.4, 0.6, 0.9]),
        accuracy=np.array([np.nan, 0.3, 0.7, 0.9]),
    )


def outcome(classes: tuple[str, ...] = ("cat", "dog"), image: bool = True) -> TestSummary:
    right = tuple(example(number, image=image) for number in range(3))
    wrong = (example(7, "dog", "cat", image),)
    confusion = np.full((len(classes), len(classes)), 1)
    np.fill_diagonal(confusion, 8)
    return TestSummary(
        samples=int(confusion.sum()),
        classes=classes,
        confusion=confusion,
        bins=bins(),
        ece=0.05,
        brier=0.2,
        most_certain=right,
        least_certain=wrong,
        certain_mistakes=wrong,
    )


def summary(name: str = "run", epochs: int = 4, **changes: object) -> RunSummary:
    """A whole run; any field can be replaced."""
    values = {
        "name": name,
        "data": "pets",
        "config": (("dataset", "pets"), ("epochs", str(epochs))),
        "records": tuple(record(epoch) for epoch in range(1, epochs + 1)),
        "percent": True,
        "layers": (layer(1), layer(2)),
        "test": outcome(),
        "first_layer": FirstLayer(np.linspace(-1, 1, 3 * 64).reshape(3, 1, 8, 8), 1.0, 5),
    }
    return RunSummary(**{**values, **changes})


def parse(markup: str) -> ET.Element:
    """SVG as a tree; raises where it is not well-formed."""
    return ET.fromstring(markup)


def of_class(tree: ET.Element, kind: str) -> list[ET.Element]:
    """All elements with that class, in order."""
    return [node for node in tree.iter() if kind in node.get("class", "").split()]
