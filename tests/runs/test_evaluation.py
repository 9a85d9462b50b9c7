"""Evaluation against numbers counted by hand from the network's own predictions."""

from __future__ import annotations

import math

import pytest
import torch

import cavity
from cavity.runs import evaluate

X = torch.randn(60, 8, generator=torch.Generator().manual_seed(3))


def network(outputs, y):
    net = cavity.mlp(8, (9,), outputs, seed=4)
    cavity.Trainer(net, "mf").fit((X, y), epochs=2, batch_size=10)
    return net


@pytest.mark.parametrize("classes", [2, 3])
def test_against_counting(classes):
    index = torch.randint(classes, (60,), generator=torch.Generator().manual_seed(5))
    y = 2 * index - 1 if classes == 2 else index
    net = network(1 if classes == 2 else classes, y)
    result = evaluate(net, X, y, [f"class {k}" for k in range(classes)])
    rows = net.predict_proba(X).tolist()
    truth = index.tolist()
    guesses = [max(range(classes), key=row.__getitem__) for row in rows]
    counted = [[0] * classes for _ in range(classes)]
    for t, g in zip(truth, guesses, strict=True):
        counted[t][g] += 1
    assert result.confusion == counted
    assert result.samples == 60
    assert result.accuracy_bayes == pytest.approx(100 * sum(counted[k][k] for k in range(classes)) / 60)
    point = [(p + 1) // 2 if classes == 2 else p for p in net.predict(X).tolist()]
    assert result.accuracy == pytest.approx(100 * sum(p == t for p, t in zip(point, truth, strict=True)) / 60)
    assert result.confusion_point == [
        [sum((t, p) == (row, column) for t, p in zip(truth, point, strict=True)) for column in range(classes)]
        for row in range(classes)
    ]
    nll = -sum(math.log(row[t]) for row, t in zip(rows, truth, strict=True)) / 60
    assert result.nll == pytest.approx(nll, rel=1e-5)
    brier = sum((row[k] - (k == t)) ** 2 for row, t in zip(rows, truth, strict=True) for k in range(classes)) / 60
    assert result.brier == pytest.approx(brier, rel=1e-5)


def test_labels_beyond_the_classes():
    y = torch.zeros(60, dtype=torch.int64)
    net = network(3, y)
    with pytest.raises(ValueError, match="y has class 3, but there are 3 classes"):
        evaluate(net, X, y + 3, ["a", "b", "c"])
    with pytest.raises(ValueError, match="no sample"):
        evaluate(net, X[:0], y[:0], ["a", "b", "c"])
