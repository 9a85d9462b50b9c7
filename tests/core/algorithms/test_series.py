"""The series against exact evaluation of the same cavity sums."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

import cavity
from cavity.core.algorithms import ALGORITHMS
from cavity.core.algorithms.series import coefficients, horner, largest_edge, nodes, series_sums, worst_factors
from cavity.core.algorithms.sums import Sums, exact_sums
from cavity.core.arithmetic import EXACT, Arithmetic, Series
from cavity.core.couplings import Conv2d, Coupling, Dense
from cavity.core.messages import Fields, Moments, Preactivation, Target
from cavity.core.state import Factor, Up
from cavity.engine.choosing import Choice, is_due
from cavity.engine.looking import CAREFUL_REACH, SHARES, careful_reach, choose, relative_error

TOLERANCE = 1e-3
CHANNELS = [cavity.Sign(), cavity.Sign(noise=3.0), cavity.ReLU(), cavity.Identity()]
OUTPUTS = [cavity.Label(), cavity.Label(noise=2.0), cavity.GaussianOutput()]


def magnetisations(shape: tuple[int, int], q: float, generator: torch.Generator) -> torch.Tensor:
    """m = tanh(c·𝒩(0,1)) with c such that the mean of m² is q."""
    z = torch.randn(shape, generator=generator, dtype=torch.float64)
    low, high = 0.0, 1e4
    for _ in range(100):
        middle = (low * high) ** 0.5 if low else high / 2
        low, high = (middle, high) if torch.tanh(middle * z).square().mean() < q else (low, middle)
        if high - low < 1e-9 * high:
            break
    return torch.tanh(high * z).float()


def hidden_factor(coupling: Coupling, m: torch.Tensor, x: torch.Tensor, strength: float, seed: int) -> Factor:
    """A sign layer on top of certain inputs x, with fields of the given size coming down."""
    generator = torch.Generator().manual_seed(seed)
    omega, V = coupling.apply(m, x), coupling.apply(1 - m.square(), x.square()).clamp_min(1e-4)
    B = strength * torch.randn(omega.shape, generator=generator)
    return Factor(cavity.Sign(), Fields(B, None), Preactivation(omega, V))


def errors(coupling: Coupling, factor: Factor, m: torch.Tensor, x: torch.Tensor, how: Arithmetic) -> Sums:
    exact = exact_sums(coupling, factor, m, x, True)
    guess = exact if how.series is None else series_sums(coupling, factor, m, x, how.series, True, how.half)
    assert guess.inputs is not None
    assert exact.inputs is not None
    return Sums(
        torch.tensor(relative_error(guess.inputs, exact.inputs)),
        torch.tensor(relative_error(guess.weights, exact.weights)),
    )


@pytest.fixture(params=[False, True], ids=["full", "half"])
def half(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether bfloat16 counts as faster: processors that have no instructions for it compute the same slowly."""
    for place in ("looking", "choosing"):
        monkeypatch.setattr(f"cavity.engine.{place}.half_pays", lambda x, _: request.param and x.dtype == torch.float32)
    return request.param


@pytest.mark.parametrize("strength", [0.05, 1.0, 5.0])
@pytest.mark.parametrize("q", [0.1, 0.4, 0.75, 0.87, 0.96, 0.986, 0.996, 0.999])
def test_the_chosen_series_holds_the_tolerance_from_unpolarised_to_polarised(
    q: float, strength: float, half: bool
) -> None:
    generator = torch.Generator().manual_seed(int(1000 * q))
    coupling = Dense(784, 60)
    m = magnetisations((60, 784), q, generator)
    x = torch.randn(64, 784, generator=generator).clamp(-0.8, 2.0)
    factor = hidden_factor(coupling, m, x, strength, seed=1)
    how = choose(coupling, factor, m, x, True, TOLERANCE)
    on_inputs, on_weights = errors(coupling, factor, m, x, how)
    assert float(on_inputs) <= TOLERANCE
    assert float(on_weights) <= TOLERANCE
    if q <= 0.87 and strength <= 1:
        assert how.series is not None
        assert how.series.order <= 4, "an unpolarised layer needs only a few products"


def test_the_error_falls_with_the_order() -> None:
    generator = torch.Generator().manual_seed(0)
    coupling = Dense(300, 20)
    m, x = magnetisations((20, 300), 0.8, generator), torch.randn(32, 300, generator=generator)
    factor = hidden_factor(coupling, m, x, 1.0, seed=2)
    found = [float(errors(coupling, factor, m, x, Arithmetic(Series(order))).weights) for order in (1, 2, 3, 4, 6)]
    assert all(worse > 2 * better for worse, better in pairwise(found)), found


def test_a_few_exact_factors_save_a_polarised_layer() -> None:
    generator = torch.Generator().manual_seed(3)
    coupling = Dense(400, 50)
    m, x = magnetisations((50, 400), 0.999, generator), torch.randn(64, 400, generator=generator)
    factor = hidden_factor(coupling, m, x, 1.0, seed=3)
    plain = float(errors(coupling, factor, m, x, Arithmetic(Series(4))).weights)
    helped = float(errors(coupling, factor, m, x, Arithmetic(Series(4, share=0.2))).weights)
    assert helped < 1e-3 * plain, (plain, helped)


def test_a_layer_whose_edges_reach_its_variances_always_has_exact_factors(half: bool) -> None:
    generator = torch.Generator().manual_seed(4)
    coupling, reaches = Dense(784, 40), []
    for q in (0.5, 0.93):
        m, x = magnetisations((40, 784), q, generator), torch.randn(64, 784, generator=generator).clamp(-0.8, 2.0)
        factor = hidden_factor(coupling, m, x, 0.05, seed=4)
        reaches.append(float(largest_edge(m, x, False) / factor.pre.variance.min().sqrt()))
        how = choose(coupling, factor, m, x, True, 0.9)
        # Order 1 alone would do for so generous a tolerance.
        share = 0.0 if reaches[-1] < CAREFUL_REACH else SHARES[1]
        assert how == Arithmetic(Series(1, share), half), (q, reaches)
    assert reaches[0] < CAREFUL_REACH < reaches[1]


@pytest.mark.parametrize("order", [1, 2, 3, 4, 6, 8])
def test_coefficients_interpolate_at_the_nodes(order: int) -> None:
    pre = Preactivation(torch.linspace(-3, 3, 7, dtype=torch.float64)[:, None], torch.ones(7, 1, dtype=torch.float64))
    message, reach = Fields(torch.full((7, 1), 0.7, dtype=torch.float64), None), torch.tensor(0.9, dtype=torch.float64)
    c = coefficients(cavity.Sign().gradient, message, pre, reach, order)
    for z in nodes(order):
        there = cavity.Sign().gradient(message, Preactivation(pre.mean - reach * z, pre.variance))
        torch.testing.assert_close(horner(z, c), there, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("channel", [*CHANNELS, *OUTPUTS], ids=lambda channel: type(channel).__name__)
@pytest.mark.parametrize(
    "make", [lambda bias: Dense(90, 8, bias), lambda bias: Conv2d((9, 7, 6), 8, 3, stride=2, padding=1, bias=bias)]
)
def test_every_channel_and_coupling(make, channel, share: float, bias: bool) -> None:
    generator = torch.Generator().manual_seed(5)
    coupling = make(bias)
    m = magnetisations((coupling.outputs, coupling.columns), 0.3, generator)
    x = torch.randn(12, *coupling.input_shape, generator=generator).clamp(-1, 2)
    omega, V = coupling.apply(m, x), coupling.apply(1 - m.square(), x.square())
    if isinstance(channel, tuple(type(output) for output in OUTPUTS)):
        message = Target(torch.where(omega > 0.3, 1.0, -1.0), None)
    else:
        message = Fields(torch.randn(omega.shape, generator=generator), 0.02 * torch.ones_like(omega))
    factor = Factor(channel, message, Preactivation(omega, V))
    on_inputs, on_weights = errors(coupling, factor, m, x, Arithmetic(Series(8, share)))
    assert float(on_inputs) < 2e-3
    assert float(on_weights) < 2e-3


def test_no_tensor_of_all_edges_exists() -> None:
    class Largest(torch.utils._python_dispatch.TorchDispatchMode):
        elements = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            for part in result if isinstance(result, tuple | list) else (result,):
                if isinstance(part, torch.Tensor):
                    Largest.elements = max(Largest.elements, part.numel())
            return result

    generator = torch.Generator().manual_seed(0)
    coupling = Dense(200, 100)
    m, x = magnetisations((100, 200), 0.5, generator), torch.randn(256, 200, generator=generator)
    factor = hidden_factor(coupling, m, x, 1.0, seed=0)
    with Largest():
        series_sums(coupling, factor, m, x, Series(4), True)
    assert 256 * 200 <= Largest.elements <= 256 * 200 + 1, Largest.elements


def arithmetic(choice: Choice, x: torch.Tensor, number: int = 0, algorithm: str = "bp") -> Arithmetic:
    """How layer ``number`` of 784-60-1 computes its sums for a mini-batch x."""
    site = cavity.mlp(784, (60,), 1).sites[number]
    return choice.arithmetic(ALGORITHMS[algorithm](), site, x, len(x))


def test_double_precision_and_small_layers_are_exact_by_default() -> None:
    x = torch.zeros(64, 784)
    assert arithmetic(Choice(), x.double()) == EXACT
    assert arithmetic(Choice(), x).series is not None
    assert arithmetic(Choice(), x, 1) == EXACT, "60 weights"
    assert arithmetic(Choice("exact"), x) == EXACT
    assert arithmetic(Choice(5), x, 1) == Arithmetic(Series(5))


def test_half_precision_is_used_while_it_is_good_enough(half: bool) -> None:
    coupling, generator = Dense(784, 60), torch.Generator().manual_seed(2)
    x = torch.randn(64, 784, generator=generator).clamp(-0.8, 2.0)
    m = magnetisations((60, 784), 0.6, generator)
    factor = hidden_factor(coupling, m, x, 1.0, seed=2)
    how = choose(coupling, factor, m, x, True, TOLERANCE)
    assert how.series is not None
    assert how == Arithmetic(Series(how.series.order), half=half)
    full = errors(coupling, factor, m, x, how._replace(half=False)).weights
    rounded = errors(coupling, factor, m, x, how._replace(half=True)).weights
    assert float((full - rounded).abs()) > 0, "the products really are rounded"
    assert float((full - rounded).abs()) < 0.2 * TOLERANCE
    # A tolerance that eight bits cannot hold.
    strict = choose(coupling, factor, m, x, True, 1e-5)
    assert strict.series is not None
    assert not strict.half


def test_first_order_algorithms_have_nothing_to_choose_but_the_precision(half: bool) -> None:
    x = torch.zeros(64, 784)
    assert arithmetic(Choice(), x, algorithm="amp") == Arithmetic(half=half)
    assert arithmetic(Choice(), x.double(), algorithm="amp") == EXACT
    for accuracy in ("exact", 3, 1e-4):
        assert arithmetic(Choice(accuracy), x, algorithm="amp") == EXACT


def test_amp_in_half_precision_is_amp(half: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    x, y = torch.randn(256, 300, generator=generator), torch.randint(10, (256,), generator=generator)
    fields = []
    for accuracy in (None, "exact"):
        net = cavity.mlp(300, (101, 51), 10, seed=1)
        trainer = cavity.Trainer(net, "amp", accuracy=accuracy, compile=False)
        trainer.step(x, y)
        fields.append([layer.field for layer in net.weighted()])
    gaps = [relative_error(guess, exact) for guess, exact in zip(*fields, strict=True)]
    assert (max(gaps) > 0) is half, gaps
    assert max(gaps) < 3e-4, gaps


def test_a_series_in_half_precision_is_taken_in_full_where_that_is_faster(half: bool) -> None:
    choice = Choice()
    choice.load_state_dict({"series": [2, 0.01, True], "recent": [[2, 0.01, True]]})
    assert arithmetic(choice, torch.zeros(64, 784)) == Arithmetic(Series(2, 0.01), half)


@pytest.mark.parametrize("accuracy", [0, -1, 0.0, 1.0, 2.5, float("nan"), "fast", True])
def test_bad_accuracy(accuracy) -> None:
    with pytest.raises(ValueError, match="accuracy must be"):
        cavity.Trainer(cavity.mlp(3, (), 1), "bp", accuracy=accuracy)


def test_looks_are_rare() -> None:
    due = [sweeps for sweeps in range(600) if is_due(sweeps)]
    assert due == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512]


def looked(found: list[Arithmetic], monkeypatch: pytest.MonkeyPatch) -> tuple[Choice, list[Arithmetic]]:
    """What is used after each look, if the looks find this."""
    net, choice, used = cavity.mlp(784, (), 1), Choice(), []
    up = Up(
        Moments(torch.zeros(1, 784), None), Preactivation(torch.zeros(1, 1), torch.ones(1, 1)), None, torch.zeros(())
    )
    for how in found:
        monkeypatch.setattr("cavity.engine.choosing.choose", lambda *_, how=how: how)
        choice.look(net.sites[0], net.states()[0], up, Target(torch.ones(1, 1), None), None)
        used.append(choice.present)
    return choice, used


def series(order: int, share: float = 0.0, half: bool = False) -> Arithmetic:
    return Arithmetic(Series(order, share), half)


def test_the_costliest_of_the_last_looks_is_used(monkeypatch) -> None:
    choice, used = looked([series(2), series(4), EXACT, *[series(2)] * 9], monkeypatch)
    # Exact evaluation serves once, order 4 for seven more looks.
    assert used == [series(2), series(4), EXACT, *[series(4)] * 7, series(2), series(2)]
    other = Choice()
    other.load_state_dict(choice.state_dict())
    assert (other.present, other.recent) == (choice.present, choice.recent)


def test_half_precision_serves_once_all_of_the_last_looks_allow_it(monkeypatch) -> None:
    half, full, cheaper = series(2, 0.01, True), series(2, 0.01, False), series(1, 0.01, False)
    _, used = looked([half, cheaper, half, full, *[half] * 8], monkeypatch)
    # A cheaper series needed full precision because it had less room for rounding, this one may have it.
    assert used == [half, half, half, *[full] * 8, half]


def test_a_series_with_exact_factors_stays_until_a_change_pays(monkeypatch) -> None:
    found = [series(4, 0.03), *[series(6, 0.01)] * 9, *[series(2, 0.003)] * 8, series(8, 0.1)]
    _, used = looked(found, monkeypatch)
    # Costs in products: 12, 11.4, 5.6, 27.3.
    assert used == [*[series(4, 0.03)] * 17, series(2, 0.003), series(8, 0.1)]


def test_nodes_span_the_range() -> None:
    for order in (3, 4, 6, 8):
        assert np.isclose(max(nodes(order)), 1)
        assert np.isclose(min(nodes(order)), -1)


@pytest.mark.parametrize("accuracy", [1, 2, 4, None])
def test_edges_that_are_all_zero_are_no_trouble(accuracy: float | None) -> None:
    """Means of 0 (ε = 0), and inputs of 0."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn((64, 784), generator=generator), torch.randn(64, generator=generator).sign()
    for inputs in (x, torch.zeros_like(x)):
        moved = []
        for chosen in (accuracy, "exact"):
            net = cavity.mlp(784, (101,), 1, init=0.0)
            with torch.no_grad():
                net.layers[1].field.fill_(0.5)
            cavity.Trainer(net, "bp", accuracy=chosen).step(inputs, y)
            moved.append([layer.field for layer in net.layers])
        for series, exact in zip(*moved, strict=True):
            assert torch.isfinite(series).all()
            assert (series - exact).abs().max() <= TOLERANCE * exact.abs().max()


@pytest.mark.parametrize("shape", [(64, 501), (300, 48)])
@pytest.mark.parametrize("share", [1e-6, 0.001, 0.003, 0.2])
def test_the_worst_factors_are_those_of_a_full_sort(shape: tuple[int, int], share: float) -> None:
    misfits = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    # One sample with many of the worst, and one with none.
    misfits[3, :40] += 1.0
    misfits[5] = 0.0
    found = worst_factors(misfits, share)
    wanted = torch.topk(misfits.reshape(-1), max(1, int(share * misfits.numel()))).indices
    assert sorted(found.tolist()) == sorted(wanted.tolist())


def test_one_factor_matters_less_in_a_large_mini_batch() -> None:
    assert careful_reach(16) == careful_reach(128) == CAREFUL_REACH
    assert careful_reach(1024) == pytest.approx(CAREFUL_REACH * 2**0.5)
