"""Mini-batch updates: ρ, damping across mini-batches, reinforcement and its annealing, early stop, full batch, ADF."""

import pytest
import torch
from torch import Tensor

import cavity
from cavity.core.pasp import annealed

ALGORITHMS = ("bp", "bpi", "mf", "amp")


def problem(samples=40, inputs=15, seed=0) -> tuple[Tensor, Tensor]:
    """Labels of a ±1 teacher."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn((samples, inputs), generator=generator, dtype=torch.float64)
    teacher = torch.randint(2, (inputs,), generator=generator).double() * 2 - 1
    return x, torch.where(x @ teacher < 0, -1, 1)


def network(**options) -> cavity.Network:
    return cavity.mlp(15, (5,), 1, seed=3, **options).double()


def fields(net: cavity.Network) -> list[Tensor]:
    return [layer.field for layer in net.weighted()]


def test_the_posterior_to_the_power_rho_is_the_next_prior():
    """ρ multiplies the stored field and nothing else, so the field's dependence on ρ is exactly linear."""
    outcomes = {}
    for rho in (0.5, 1.0):
        net = network()
        before = fields(net)
        cavity.Trainer(net, "mf", rho=rho).step(*problem())
        outcomes[rho] = fields(net)
    for old, half, whole in zip(before, outcomes[0.5], outcomes[1.0], strict=True):
        torch.testing.assert_close(whole - half, 0.5 * old, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_damping_acts_on_the_mean_and_survives_the_mini_batch(algorithm):
    net = network()
    trainer = cavity.Trainer(net, algorithm, damping=0.7)
    x, y = problem()
    for part in range(3):
        before = [layer.mean for layer in net.weighted()]
        trainer.step(x[part::3], y[part::3])
        for old, layer in zip(before, net.weighted(), strict=True):
            torch.testing.assert_close(layer.mean, 0.7 * old + 0.3 * torch.tanh(layer.field), rtol=1e-12, atol=1e-13)
            torch.testing.assert_close(layer.variance, 1 - layer.mean**2, rtol=1e-12, atol=1e-13)


def test_the_forward_pass_starts_from_the_damped_mean():
    """Two networks with the same means and different fields predict the same, and see the same ω."""
    nets = [network() for _ in range(2)]
    for layer in nets[1].weighted():
        layer.set_state(layer.natural._replace(field=2 * layer.field), layer.moments)
    outputs = [cavity.Trainer(net, "bp").step(*problem()).output for net in nets]
    assert torch.equal(outputs[0].mean, outputs[1].mean)
    assert torch.equal(outputs[0].variance, outputs[1].variance)


@pytest.mark.parametrize(
    ("option", "value"), [("rho", 0.8), ("damping", 0.4), ("reinforcement", 0.3)], ids=lambda v: str(v)
)
def test_one_number_means_that_number_for_each_layer(option, value):
    nets = [network() for _ in range(3)]
    for net, setting in zip(nets, (value, (value, value), [value, value / 2]), strict=True):
        cavity.Trainer(net, "amp", inner_iterations=2, **{option: setting}).step(*problem())
    for one, same, other in zip(*([layer.mean for layer in net.weighted()] for net in nets), strict=True):
        assert torch.equal(one, same)
        assert not torch.equal(one, other)


@pytest.mark.parametrize("option", ["rho", "reinforcement"])
def test_a_number_of_one_layer_acts_on_that_layer(option):
    nets = [network() for _ in range(2)]
    for net, setting in zip(nets, ((0.5, 0.5), (0.5, 0.6)), strict=True):
        cavity.Trainer(net, "bp", **{option: setting}).step(*problem())
    (lower, upper), (same, changed) = map(fields, nets)
    assert torch.equal(lower, same)
    assert not torch.equal(upper, changed)


def test_reinforcement_adds_r_times_the_last_field():
    nets = [network() for _ in range(2)]
    before = fields(nets[0])
    for net, r in zip(nets, (0.0, 0.25), strict=True):
        cavity.Trainer(net, "bp", reinforcement=r).step(*problem())
    for old, plain, pulled in zip(before, *map(fields, nets), strict=True):
        torch.testing.assert_close(pulled - plain, 0.25 * old, rtol=1e-12, atol=1e-13)


def test_reinforcement_is_annealed_at_every_inner_iteration():
    trainer = cavity.Trainer(network(), "bp", reinforcement=(0.2, 0.5), reinforcement_step=0.1, inner_iterations=3)
    for _ in range(2):
        trainer.step(*problem())
    assert trainer.reinforcement == pytest.approx([1 - 0.8 * 0.9**6, 1 - 0.5 * 0.9**6], rel=1e-12)
    assert annealed((0.0, 1.0), 0.25) == (0.25, 1.0)


def test_without_a_step_reinforcement_stays():
    trainer = cavity.Trainer(network(), "bp", reinforcement=0.2, inner_iterations=3)
    trainer.step(*problem())
    assert trainer.reinforcement == pytest.approx([0.2, 0.2], rel=1e-12)


def test_one_replica_is_no_focusing_and_more_replicas_polarise():
    polarisation = []
    for focusing in (None, (1.0, 2.0), (5.0, 2.0)):
        net = network()
        cavity.Trainer(net, "bp", damping=0.0, focusing=focusing).step(*problem())
        polarisation.append(cavity.analysis.landscape.polarization(net))
    torch.testing.assert_close(polarisation[0], polarisation[1])
    assert (polarisation[2] > polarisation[1]).all()


def test_strong_focusing_stays_finite():
    """γ = 50 rounds tanh γ to 1: all replicas are the same, and the field is multiplied by their number."""
    nets = [network() for _ in range(2)]
    for net, focusing in zip(nets, (None, (4.0, 50.0)), strict=True):
        cavity.Trainer(net, "mf", focusing=focusing).step(*problem())
    for plain, focused in zip(*map(fields, nets), strict=True):
        small = plain.abs() < 2
        assert small.any()
        torch.testing.assert_close(focused[small], 4 * plain[small], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("algorithm", ["bp", "amp"])
def test_the_inner_loop_stops_when_the_means_stop(algorithm):
    x, y = problem(samples=20)
    infos = {}
    for tolerance in (None, 1e-3, 1e-6):
        net = cavity.mlp(15, (), 1, output=cavity.Label(noise=5.0)).double()
        trainer = cavity.Trainer(net, algorithm, rho=1.0, damping=0.3, inner_iterations=80, tolerance=tolerance)
        infos[tolerance] = trainer.step(x, y).iterations
    assert infos[1e-3] < infos[1e-6] < infos[None] == 80


def test_a_stopped_loop_is_the_same_as_a_shorter_one():
    x, y = problem(samples=20)
    options = {"rho": 1.0, "damping": 0.3, "reinforcement": 0.01, "reinforcement_step": 0.01}
    nets = [cavity.mlp(15, (), 1, output=cavity.Label(noise=5.0)).double() for _ in range(2)]
    stopped = cavity.Trainer(nets[0], "amp", inner_iterations=80, tolerance=1e-2, **options)
    iterations = stopped.step(x, y).iterations
    shorter = cavity.Trainer(nets[1], "amp", inner_iterations=iterations, **options)
    shorter.step(x, y)
    assert torch.equal(nets[0].layers[0].field, nets[1].layers[0].field)
    assert stopped.reinforcement == shorter.reinforcement


@pytest.mark.parametrize("batch_size", [None, 40, 1000])
def test_full_batch_mode_is_one_step_on_all_the_data(batch_size):
    nets = [network() for _ in range(2)]
    x, y = problem()
    cavity.Trainer(nets[0], "bp", rate=1.0).step(x, y)
    trainer = cavity.Trainer(nets[1], "bp", rate=1.0)
    trainer.fit((x, y), epochs=1, batch_size=batch_size)
    assert trainer.steps == 1
    for one, other in zip(*map(fields, nets), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_assumed_density_filtering_learns_a_teacher_in_one_pass(algorithm):
    """ρ = 1, one sample at a time, each seen once; 15 patterns per weight."""
    inputs = 31
    x, y = problem(samples=15 * inputs + 1000, inputs=inputs, seed=5)
    train, test = (x[:-1000], y[:-1000]), (x[-1000:], y[-1000:])
    net = cavity.mlp(inputs, (), 1, init=0.1).double()
    trainer = cavity.Trainer(net, algorithm, rho=1.0, damping=0.0)
    trainer.fit(train, epochs=1, batch_size=1)
    assert trainer.steps == 15 * inputs
    assert (net.predict(test[0]) != test[1]).double().mean() < 0.05


def test_diagnostics_of_a_step():
    net = network()
    before = [layer.mean for layer in net.weighted()]
    info = cavity.Trainer(net, "bp", inner_iterations=2).step(*problem())
    assert info.iterations == 2
    assert info.output.mean.shape == info.output.variance.shape == (40, 1)
    for number, (old, layer) in enumerate(zip(before, net.weighted(), strict=True)):
        assert float(info.message_change[number]) == pytest.approx(float((layer.mean - old).abs().max()))
        assert float(info.polarization[number]) == pytest.approx(float(layer.mean.square().mean()))
    assert float(info.clamped) == 0


def test_clamped_entries_are_counted():
    """Certain weights have V = 0 but for the floor: all preactivations need it."""
    net = cavity.mlp(15, (), 1, init=1e3).double()
    x, y = problem()
    info = cavity.Trainer(net, "amp", rate=1.0).step(x, y)
    assert float(info.clamped) == pytest.approx(40 / (40 + 15))
