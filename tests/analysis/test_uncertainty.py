"""The split of the entropy: bounds, limits, and agreement with the Bayesian probabilities."""

from __future__ import annotations

import math

import pytest
import torch

import cavity
from cavity.analysis import calibration, uncertainty


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def trained(
    weights: str = "gaussian", outputs: int = 3, samples: int = 600, hidden=(41,)
) -> tuple[cavity.Network, torch.Tensor]:
    """A network that has seen a teacher's classes, and inputs."""
    x = torch.randn(samples, 10, generator=generator())
    teacher = torch.randn(max(outputs, 2), 10, generator=generator())
    y = (x @ teacher.T).argmax(dim=1)
    output = "label" if outputs == 1 else cavity.ArgMax("pairwise")
    net = cavity.mlp(10, hidden, outputs, weights=weights, bias=weights == "gaussian", output=output)
    trainer = cavity.Trainer(net, "mf", rho=1.0, compile=False)
    trainer.fit((x, 2 * y - 1 if outputs == 1 else y), epochs=3, batch_size=16)
    return net, x


@pytest.mark.parametrize(("weights", "outputs"), [("gaussian", 3), ("binary", 3), ("ternary", 1)])
def test_parts_are_entropies_and_add_up(weights: str, outputs: int) -> None:
    net, x = trained(weights, outputs)
    total, aleatoric, epistemic = uncertainty.predictive_entropy(net, x, 20, generator())
    assert total.shape == (len(x),)
    assert torch.allclose(total, aleatoric + epistemic, atol=1e-6)
    assert (aleatoric >= 0).all()
    assert (epistemic >= 0).all()
    assert float(total.max()) <= math.log(max(outputs, 2)) + 1e-6
    assert float(epistemic.mean()) > 0.001


def test_draws_average_to_the_bayesian_probabilities() -> None:
    """Not exactly: moments go up as if units were independent, which wide layers come close to."""
    net, x = trained(hidden=(201,))
    draws = uncertainty.draw_weights(net, 200, generator())
    mean = torch.stack([uncertainty.probabilities_below_last(net, draw, x[:50]) for draw in draws]).mean(dim=0)
    difference = (mean - net.predict_proba(x[:50])).abs()
    assert float(difference.mean()) < 0.015
    assert float(difference.max()) < 0.08


def test_certain_weights_below_leave_nothing_epistemic() -> None:
    net, x = trained("binary")
    net.keep_posterior(False)
    first = net.weighted()[0]
    first.mean = torch.sign(first.mean)
    first.variance = torch.zeros_like(first.variance)
    total, aleatoric, epistemic = uncertainty.predictive_entropy(net, x, 5, generator())
    assert float(epistemic.max()) < 1e-5
    assert float(aleatoric.mean()) > 0.01
    assert torch.allclose(total, calibration.entropy(net.predict_proba(x)), atol=1e-3)


@pytest.mark.slow
def test_more_data_mean_less_epistemic_doubt_at_the_same_inputs() -> None:
    little, _ = trained(samples=20, hidden=(201,))
    much, x = trained(samples=2000, hidden=(201,))
    ours = [uncertainty.predictive_entropy(net, x[:300], 30, generator()).epistemic.mean() for net in (little, much)]
    assert float(ours[1]) < 0.6 * float(ours[0])


def test_labels_at_random_are_aleatoric_doubt() -> None:
    """With many samples of pure noise a network is sure that it cannot know."""
    x = torch.randn(2000, 10, generator=generator())
    net = cavity.mlp(10, (201,), 2, weights="gaussian", bias=True, output="argmax")
    y = torch.randint(0, 2, (2000,), generator=generator())
    cavity.Trainer(net, "mf", rho=1.0, compile=False).fit((x, y), epochs=1, batch_size=16)
    total, aleatoric, epistemic = uncertainty.predictive_entropy(net, x[:300], 30, generator())
    assert float(total.mean()) > 0.9 * math.log(2)
    assert float(aleatoric.mean()) > 3 * float(epistemic.mean())


def test_a_network_of_one_layer_has_only_aleatoric_doubt() -> None:
    net, x = trained(hidden=())
    total, _, epistemic = uncertainty.predictive_entropy(net, x, 3, generator())
    assert float(epistemic.max()) < 1e-6
    assert torch.allclose(total, calibration.entropy(net.predict_proba(x)), atol=1e-5)


def test_a_readout_without_variance_is_certain_not_nan() -> None:
    net, x = trained("binary")
    for layer in net.weighted():
        layer.mean, layer.variance = torch.sign(layer.mean), torch.zeros_like(layer.variance)
    total = uncertainty.predictive_entropy(net, x, 2, generator()).total
    assert total.isfinite().all()


def test_predicting_with_the_most_probable_weights_is_point_prediction() -> None:
    net, x = trained()
    point = [layer.point() for layer in net.weighted()]
    assert torch.equal(uncertainty.predict_with(net, point, x), net.predict(x))


def test_draws_follow_their_generator() -> None:
    net, _ = trained()
    one, same = (uncertainty.draw_weights(net, 2, generator()) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one[1], same[1], strict=True))
    assert not torch.equal(one[0][0], one[1][0])


def test_bad_input_is_named() -> None:
    net, x = trained()
    with pytest.raises(ValueError, match="n must be a positive integer, got 0"):
        uncertainty.predictive_entropy(net, x, 0, generator())
    with pytest.raises(ValueError, match="n must be a positive integer, got -1"):
        uncertainty.draw_weights(net, -1, generator())
    with pytest.raises(ValueError, match=r"weights must have the shapes \[\(41, 11\), \(3, 42\)\], got \[\(41, 11\)\]"):
        uncertainty.predict_with(net, [net.weighted()[0].mean], x)
