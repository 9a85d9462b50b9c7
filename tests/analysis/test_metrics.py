"""``measure`` against numbers counted from the network's own predictions."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from sklearn.metrics import log_loss

import cavity
from cavity.analysis.metrics import measure

X = torch.randn(80, 6, generator=torch.Generator().manual_seed(1))


def trained(outputs: int, y: torch.Tensor, **options: str) -> cavity.Network:
    net = cavity.mlp(6, (7,), outputs, seed=2, **options)
    cavity.Trainer(net, "mf").fit((X, y), epochs=2, batch_size=10)
    return net


@pytest.mark.parametrize("outputs", [1, 3])
def test_classes(outputs: int) -> None:
    index = torch.randint(max(outputs, 2), (80,), generator=torch.Generator().manual_seed(3))
    y = 2 * index - 1 if outputs == 1 else index
    net = trained(outputs, y)
    found = measure(net, X, y)
    assert found.probabilities is not None
    assert found.labels is not None
    p = net.predict_proba(X)
    assert torch.equal(found.probabilities, p)
    assert torch.equal(found.labels, index)
    assert found.error == pytest.approx(100 * float((net.predict(X) != y).double().mean()))
    assert found.error_bayes == pytest.approx(100 * float((net.predict(X, "bayes") != y).double().mean()))
    exact = p.double() / p.double().sum(dim=1, keepdim=True)
    assert found.nll == pytest.approx(log_loss(index, exact), rel=1e-5)
    assert found.brier == pytest.approx(float((exact - torch.eye(p.shape[1])[index]).square().sum(dim=1).mean()))
    counts = found.confusion()
    assert counts.shape == (p.shape[1], p.shape[1])
    assert counts.sum(axis=1).tolist() == torch.bincount(index).tolist()
    assert 100 - 100 * counts.trace() / 80 == pytest.approx(found.error_bayes)


# ±1 weights add up to whole numbers: the posterior learns real targets, its most probable weights do not.
@pytest.mark.filterwarnings("ignore:the most probable weights are of no use:cavity.DivergenceWarning")
def test_real_targets_have_root_mean_squares_and_no_classes() -> None:
    y = X[:, 0] - X[:, 1]
    net = trained(1, y, output="gaussian")
    found = measure(net, X, y)
    guesses = {"point": found.error, "bayes": found.error_bayes}
    for method, error in guesses.items():
        residuals = net.predict(X, method).reshape(-1) - y
        assert error == pytest.approx(float(residuals.square().mean().sqrt()), rel=1e-5)
    assert (found.ece, found.brier, found.probabilities, found.labels) == (None, None, None, None)
    with pytest.raises(ValueError, match="y must have classes"):
        found.confusion()


def test_several_labels_a_sample_count_one_by_one() -> None:
    y = torch.where(X[:, :2] > 0, 1, -1)
    net = trained(2, y, output="label")
    found = measure(net, X, y)
    assert found.error == pytest.approx(100 * float((net.predict(X) != y).double().mean()))
    assert found.ece is None


@pytest.mark.slow
def test_measuring_alone_does_without_scikit_learn() -> None:
    code = "import sys, torch, cavity; net = cavity.mlp(2, (3,), 3); from cavity.analysis.metrics import measure; "
    code += "measure(net, torch.randn(4, 2), torch.zeros(4, dtype=torch.long)); print('sklearn' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "False"
