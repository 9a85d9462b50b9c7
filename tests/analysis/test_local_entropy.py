"""The number of solutions around a reference against counting them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

import cavity
from cavity.core.messages import Fields
from truth import enumeration

DISTANCES = (0.05, 0.1, 0.2, 0.3)


def holding(net: cavity.Network, weights: list[np.ndarray]) -> cavity.Network:
    """A network whose most probable weights are the given ones."""
    for layer, w in zip(net.double().weighted(), weights, strict=True):
        natural = Fields(torch.tensor(2.0 * w), None)
        layer.set_state(natural, layer.prior.moments(natural))
    return net


def counted(overlaps: np.ndarray, weights: int) -> list[float]:
    """min_γ [log Σ_W e^{γ w̃·w} − γN(1 − 2d)] per weight, over the overlaps w̃·w of all solutions W."""

    def objective(gamma: float, distance: float) -> float:
        return float(logsumexp(gamma * overlaps)) - gamma * weights * (1 - 2 * distance)

    return [minimize_scalar(objective, args=(d,)).fun / weights for d in DISTANCES]


def around_unit(
    n: int, samples: int, seed: int, algorithm: str, threshold: float = 0.0
) -> tuple[list[float], list[float]]:
    """Per weight: local entropy of a perceptron, by message passing and by counting. The reference is the solution with
    the largest margin; one label is a mistake of it."""
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((samples, n)), rng.choice([-1.0, 1.0], samples)
    w = enumeration.configurations(np.arange(2**n), n)
    margins = (y[:-1, None] * (x[:-1] @ w.T + threshold)).min(axis=0)
    fits, reference = margins >= 0, w[margins.argmax()]
    y[-1] = -enumeration.sign(x[-1] @ reference + threshold)
    net = holding(cavity.mlp(n, (), 1), [reference[None]])
    if threshold:
        layer = cavity.Layer(cavity.Dense(n, 1), threshold=True)
        net = holding(cavity.Network([layer, "label"]), [reference[None]])
        layer.threshold.begin(torch.tensor([threshold]), torch.tensor(1.0), balanced=True)
    found = cavity.entropy.local_entropy(net, torch.tensor(x), torch.tensor(y), DISTANCES, algorithm=algorithm)
    assert (found.constraints, found.samples, found.weights) == (samples - 1, samples, n)
    return list(found.per_weight), counted(w[fits] @ reference, n)


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [0.0, 1.5])
@pytest.mark.parametrize("algorithm", ["bp", "amp"])
def test_around_a_unit(algorithm: str, threshold: float) -> None:
    """17 weights, 8 constraints: within 0.02 a weight on average, far from what there is without constraints. A
    threshold keeps its value."""
    pairs = [around_unit(17, 9, seed, algorithm, threshold) for seed in range(4)]
    found, exact = (np.array(each) for each in zip(*pairs, strict=True))
    free = [-d * np.log(d) - (1 - d) * np.log(1 - d) for d in DISTANCES]
    assert np.abs(found - exact).mean() < 0.02
    assert np.abs(found - exact).mean() < 0.2 * np.abs(free - exact).mean()


def test_under_a_pool_and_behind_whitening() -> None:
    """A window of one unit is no pool, and whitened inputs are inputs: the same numbers."""
    x = torch.randn(6, 1, 5, 5, generator=torch.Generator().manual_seed(0))
    white = cavity.Whitening((1, 5, 5), 3, 2)
    white.fit(x)
    found = []
    for front, pools in ([white], [cavity.MaxPool(1)]), ([], []):
        layers = cavity.Layer(cavity.Conv2d((3, 4, 4), 4, 2)), cavity.Layer(cavity.Dense(36, 1))
        net = cavity.Network([*front, layers[0], "sign", *pools, layers[1], "label"], seed=1)
        inputs = x if front else white(x)
        around = cavity.entropy.local_entropy(net, inputs, net.predict(inputs), [0.05], damping=0.7, tolerance=1e-3)
        found.append(around.per_weight[0])
    assert found[0] == pytest.approx(found[1], rel=1e-4)
    assert found[0] < around.unconstrained[0]


def test_without_convergence_there_is_no_number() -> None:
    net = holding(cavity.mlp(9, (), 1), [np.ones((1, 9))])
    x = torch.tensor(np.random.default_rng(0).choice([-1.0, 1.0], (6, 9)))
    found = cavity.entropy.local_entropy(net, x, net.predict(x), [0.1, 0.2], iterations=1)
    assert found.values == (None, None)
    assert not found.converged
    with pytest.raises(cavity.entropy.Unreliable, match="distances"):
        _ = found.per_weight


@pytest.mark.parametrize(
    ("net", "options", "words"),
    [
        (cavity.mlp(3, (), 1), {"distances": [0.0, 0.1]}, "between 0 and 1"),
        (cavity.mlp(3, (), 1), {"distances": []}, "between 0 and 1"),
        (cavity.mlp(3, (), 1), {"algorithm": "mf"}, "cannot count"),
        (cavity.mlp(3, (), 1, weights="ternary"), {}, "binary weights"),
        (cavity.mlp(3, (), 1, output="gaussian"), {}, "never right"),
    ],
)
def test_bad_arguments(net: cavity.Network, options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cavity.entropy.local_entropy(net, torch.ones(2, 3), torch.ones(2), **{"distances": [0.1], **options})
