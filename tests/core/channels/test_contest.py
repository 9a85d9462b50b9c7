"""The ArgMax output on twenty nodes against the integral on hundreds."""

import pytest
import torch

import cavity
from cavity.core.channels import contest
from cavity.core.channels.contest import contest_response
from cavity.core.channels.winner import winner_response
from cavity.core.messages import Preactivation


def problems(classes, spread, ratio, seed=0, samples=None):
    """Labels, ω of the given spread in units of √V, and V within a factor ``ratio``."""
    samples = samples or max(20, 1600 // classes)
    generator = torch.Generator().manual_seed(seed)
    V = ratio ** torch.rand((samples, classes), generator=generator, dtype=torch.float64)
    omega = spread * torch.randn((samples, classes), generator=generator, dtype=torch.float64)
    return torch.randint(classes, (samples,), generator=generator), Preactivation(omega, V)


def largest_errors(labels, pre):
    """Of g and Γ, relative to the largest entry of each sample; entries below 1e-3/√V and 1e-3/V count as that."""
    fast = contest_response(labels, Preactivation(pre.mean.float(), pre.variance.float()))
    exact = winner_response(labels, pre)
    floors = 1e-3 / pre.variance.sqrt().amax(dim=1), 1e-3 / pre.variance.amax(dim=1)
    pairs = (fast.gradient, exact.gradient), (fast.curvature, exact.curvature)
    return [
        float(((f.double() - e).abs().amax(dim=1) / torch.maximum(e.abs().amax(dim=1), floor)).max())
        for (f, e), floor in zip(pairs, floors, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3, 10, 30])
@pytest.mark.parametrize(("spread", "ratio"), [(1.0, 1.0), (5.0, 4.0), (1.0, 16.0)])
def test_derivatives_are_within_a_thousandth(classes, spread, ratio):
    assert max(largest_errors(*problems(classes, spread, ratio))) < 1e-3


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("sign", [-1, 1], ids=["label far ahead", "label far behind"])
def test_labels_that_are_very_right_or_very_wrong(classes, sign):
    labels, pre = problems(classes, 1.0, 2.0)
    shift = torch.linspace(0, 30, len(labels), dtype=torch.float64).unsqueeze(1)
    winner = labels.unsqueeze(1) == torch.arange(classes)
    omega = pre.mean + torch.where(winner, 0.0, sign * shift)
    assert max(largest_errors(labels, Preactivation(omega, pre.variance))) < 1e-3


def test_the_value_is_the_log_probability():
    labels, pre = problems(10, 3.0, 4.0)
    fast = contest_response(labels, Preactivation(pre.mean.float(), pre.variance.float())).value
    exact = winner_response(labels, pre).value
    assert float(((fast.double() - exact).abs() / exact.abs().clamp_min(1)).max()) < 1e-3


def test_extremes_are_finite():
    labels, pre = problems(10, 1e3, 1e4)
    found = contest_response(labels, Preactivation(pre.mean.float(), pre.variance.float()))
    assert all(bool(torch.isfinite(part).all()) for part in found)


def test_both_libraries_give_the_same(monkeypatch):
    labels, pre = problems(10, 3.0, 4.0)
    found = []
    for few in (0, pre.mean.numel()):
        monkeypatch.setattr(contest, "FEW", few)
        found.append(contest_response(labels, pre))
    for tensors, arrays in zip(*found, strict=True):
        torch.testing.assert_close(tensors, arrays, rtol=1e-9, atol=1e-12)


def test_it_can_be_compiled_whole():
    from cavity.engine.compiling import compiler_problem

    if compiler_problem() is not None:
        pytest.skip(str(compiler_problem()))
    labels, pre = problems(10, 2.0, 2.0, samples=32)
    pre = Preactivation(pre.mean.float(), pre.variance.float())
    compiled = torch.compile(contest_response, fullgraph=True, dynamic=False)(labels, pre)
    torch.testing.assert_close(compiled.gradient, contest_response(labels, pre).gradient, rtol=1e-4, atol=1e-5)


def test_it_is_what_argmax_trains_with():
    assert cavity.ArgMax().method == "quadrature"
    assert not cavity.ArgMax().branches
