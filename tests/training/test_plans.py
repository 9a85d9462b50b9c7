"""The numbers of every step: given, or annealed by the fraction of training that is done."""

import copy
import math

import pytest
import torch

import cavity
from cavity.core.messages import Fields
from cavity.core.posterior import rate_in_force, update_weights
from cavity.core.priors import Binary, Gaussian
from cavity.core.state import Rule
from cavity.training.plans import Annealed, Given, Place, Remembering

BINARY, GAUSSIAN = [Binary()] * 3, [Gaussian()] * 3


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def data(samples=600, features=12, classes=3):
    x = normal(samples, features).float()
    return x, (x @ normal(features, classes, seed=1).float()).argmax(dim=1)


def test_a_relative_rate_moves_a_layer_by_a_share_of_its_size():
    natural, message = Fields(normal(7, 9), None), Fields(1e3 * normal(7, 9, seed=1), None)
    prior = Binary()
    moments = prior.moments(natural)
    rate = rate_in_force(Rule(rate=0.01, relative=True), message, moments)
    moved = rate * moments.variance * message.field
    assert float(moved.square().mean().sqrt()) == pytest.approx(0.01 * float(moments.mean.square().mean().sqrt()))
    # And so it really moves, to first order.
    after = update_weights(prior, Rule(rate=1e-4, relative=True), None, natural, natural, message, moments)
    ratio = (after.moments.mean - moments.mean).square().mean().sqrt() / moments.mean.square().mean().sqrt()
    assert float(ratio) == pytest.approx(1e-4, rel=1e-3)


def test_a_relative_rate_does_not_depend_on_the_scale_of_the_evidence():
    prior, natural = Binary(), Fields(normal(5, 6), None)
    moments = prior.moments(natural)
    fields = [
        update_weights(
            prior,
            Rule(rate=0.05, relative=True),
            None,
            natural,
            natural,
            Fields(c * normal(5, 6, seed=2), None),
            moments,
        ).natural.field
        for c in (1.0, 196.0)
    ]
    torch.testing.assert_close(*fields)


def test_without_evidence_nothing_moves():
    prior, natural = Binary(), Fields(normal(5, 6), None)
    zero = Fields(torch.zeros(5, 6, dtype=torch.float64), None)
    rule = Rule(rate=0.05, relative=True)
    after = update_weights(prior, rule, None, natural, natural, zero, prior.moments(natural))
    torch.testing.assert_close(after.natural.field, natural.field)


def test_a_horizon_has_the_stationary_field_of_its_evidence():
    """h ← (1 − e/T) h + e H has the fixed point T H, whatever the rate; λ that of λ₀N + T G."""
    prior, n = Gaussian(), 6
    H, G = normal(5, n), normal(5, n, seed=1).square()
    natural = Fields(torch.zeros(5, n, dtype=torch.float64), torch.ones(5, n, dtype=torch.float64))
    for rate in (0.1, 0.5):
        rule = Rule(rate=rate, horizon=4.0, precision=2.0)
        state = natural
        for _ in range(2000):
            state = update_weights(prior, rule, None, state, state, Fields(H, G), prior.moments(state)).natural
        torch.testing.assert_close(state.field, 4 * H)
        torch.testing.assert_close(state.precision, 2 * n + 4 * G)


def test_the_plan_learns_anneals_and_quenches():
    plan = Annealed()

    def rules(t, priors=BINARY):
        return plan.rules(priors, Place(t, 1000, 100, 128))

    early, late, quench = rules(0.0), rules(0.79), rules(0.9)
    assert float(early[0].rate) > 10 * float(late[0].rate)
    longer = plan.rules(BINARY, Place(0.0, 10_000, 100, 128))
    assert float(early[0].rate) > float(longer[0].rate)
    assert float(early[0].rho) == float(late[0].rho) == 1
    assert not plan.quenches(Place(0.79, 1000, 100, 128))
    assert plan.quenches(Place(0.9, 1000, 100, 128))
    assert float(quench[0].rho) > 1
    assert float(quench[-1].rho) == 1, "the readout stays modest"
    assert float(quench[0].rho) ** (plan.quench * 1000) == pytest.approx(plan.growth)
    # Real weights have nothing to become certain of.
    assert all(float(rule.rho) == 1 for rule in rules(0.9, GAUSSIAN))


def test_the_readout_counts_the_same_number_of_samples_whatever_the_batch():
    plan = Annealed()
    horizons = [float(plan.rules(BINARY, Place(0.0, 1000, 100, size))[-1].horizon) * size for size in (1, 16, 1024)]
    assert horizons == pytest.approx([plan.readout_samples] * 3)


def test_a_stream_is_not_annealed():
    plan = Annealed()
    assert float(plan.rules(BINARY, Place(0.0, None, None, 128))[0].rate) == pytest.approx(plan.kappa)
    assert not plan.quenches(Place(0.0, None, None, 128))


def test_numbers_of_ones_own_are_the_paper_s_update():
    trainer = cavity.Trainer(cavity.mlp(12, (7,), 3), "mf", rho=0.9, damping=0.5)
    assert isinstance(trainer.plan, Given)
    assert trainer.plan.rate == (1.0, 1.0)
    assert not trainer.plan.fisher
    assert isinstance(cavity.Trainer(cavity.mlp(12, (7,), 3), "mf").plan, Annealed)
    with pytest.raises(ValueError, match='rate="auto" chooses rho and damping too'):
        cavity.Trainer(cavity.mlp(12, (7,), 3), "mf", rate="auto", rho=0.9)


@pytest.mark.parametrize("schedule", ["cosine", "steps", lambda t: 1 - t])
def test_a_schedule_of_given_numbers(schedule):
    trainer = cavity.Trainer(cavity.mlp(12, (7,), 3), "mf", rate=0.3, schedule=schedule)
    rates = []
    x, y = data()

    class Watch(cavity.callbacks.Callback):
        def on_step(self, trainer, info):
            rates.append(float(trainer.rules(trainer.place(60))[0].rate))

    trainer.fit((x, y), epochs=2, batch_size=60, callbacks=[Watch()])
    assert rates[0] > rates[-1]
    assert max(rates) <= 0.3


@pytest.mark.parametrize("weights", ["binary", "ternary"])
def test_the_posterior_before_the_quench_is_kept_and_gone_back_to(weights):
    x, y = data()
    trainer = cavity.Trainer(cavity.mlp(12, (9,), 3, weights=weights), "mf")
    trainer.fit((x, y), epochs=5, batch_size=60)
    net = trainer.net
    assert net.layers[0].kept_mean is not None
    assert net.layers[0].mean.square().mean() > net.layers[0].kept_mean.square().mean(), "the weights became certain"
    # Bayesian prediction uses what was kept, and it travels with the state.
    other = cavity.mlp(12, (9,), 3, weights=weights, seed=5)
    other.load_state_dict(net.state_dict())
    torch.testing.assert_close(other.predict_proba(x), net.predict_proba(x))
    assert torch.equal(other.predict(x), net.predict(x))
    loser = copy.deepcopy(net)
    loser.keep_posterior(False)
    torch.testing.assert_close(loser.predict_proba(x), net.predict_proba(x))
    assert torch.equal(loser.layers[0].mean, net.layers[0].kept_mean)
    # A longer run goes on from there.
    trainer.fit((x, y), epochs=6, batch_size=60)
    assert net.layers[0].kept_mean is not None
    other.load_state_dict(cavity.mlp(12, (9,), 3, weights=weights).state_dict())
    assert other.layers[0].kept_mean is None


@pytest.mark.parametrize("epochs", [1, 4, 5])
def test_a_run_that_is_interrupted_at_any_point_ends_as_one_that_was_not(epochs):
    """Before the quench, at its beginning, and within it."""
    x, y = data()
    ends = []
    for stops in ((), (epochs,)):
        trainer = cavity.Trainer(cavity.mlp(12, (9,), 3), "bp", seed=2)
        for stop in stops:
            trainer.fit((x, y), epochs=6, batch_size=60, callbacks=[cavity.callbacks.OnEpoch(_stop_after(stop))])
            state, net = trainer.state_dict(), trainer.net.state_dict()
            trainer = cavity.Trainer(cavity.mlp(12, (9,), 3, seed=9), "bp")
            trainer.load_state_dict(state)
            trainer.net.load_state_dict(net)
        trainer.fit((x, y), epochs=6, batch_size=60)
        ends.append(trainer.net.state_dict())
    assert ends[0].keys() == ends[1].keys()
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


def _stop_after(epoch):
    def stop(trainer, record):
        trainer.stop = record.epoch == epoch

    return stop


@pytest.mark.slow
def test_a_compiled_run_takes_every_rate_without_being_compiled_again():
    from cavity.engine.compiling import _variants, compiler_problem

    if compiler_problem() is not None:
        pytest.skip(str(compiler_problem()))
    x, y = data()
    trainer = cavity.Trainer(cavity.mlp(12, (9,), 3), "mf", compile=True)
    trainer.fit((x, y), epochs=1, batch_size=60, callbacks=[cavity.callbacks.OnEpoch(_stop_after(1))])
    known = len(_variants)
    trainer.fit((x, y), epochs=6, batch_size=60)
    assert len(_variants) == known


def test_a_memory_fades_by_the_samples_since():
    net = cavity.mlp(12, (7,), 3)
    priors = [layer.prior for layer in net.weighted()]
    small, large = (Remembering(6000.0).rules(priors, Place(0.0, None, None, n)) for n in (1, 60))
    assert [float(rule.rho) for rule in small] == pytest.approx([1 - 1 / 6000] * 2)
    assert [float(rule.rho) for rule in large] == pytest.approx([1 - 60 / 6000] * 2)
    assert [float(rule.rho) for rule in Remembering(math.inf).rules(priors, Place(0.0, None, None, 60))] == [1.0, 1.0]
    # A mini-batch that is larger than the memory is all that is left of the evidence.
    assert float(Remembering(50.0).rules(priors, Place(0.0, None, None, 60))[0].rho) == 0.0


def test_real_weights_hold_as_many_mini_batches_as_the_memory_has():
    priors = [layer.prior for layer in cavity.mlp(12, (7,), 3, weights="gaussian").weighted()]
    (first, _) = Remembering(6000.0).rules(priors, Place(0.0, None, None, 60))
    assert float(first.horizon) == 100.0
    assert Remembering(math.inf).rules(priors, Place(0.0, None, None, 60))[0].horizon is None


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["binary", "gaussian"])
def test_a_short_memory_follows_labels_that_change_and_an_endless_one_does_not(weights):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4000, 21, generator=generator)
    y = (x @ torch.randn(21, 3, generator=generator)).argmax(1)
    accuracies = {}
    for memory in (2000.0, math.inf):
        units = "sign" if weights == "binary" else "relu"
        net = cavity.mlp(21, (31,), 3, weights=weights, activation=units, seed=1)
        trainer = cavity.Trainer(net, "mf", memory=memory)
        for labels in (y, (y + 1) % 3):
            for index in torch.arange(4000).split(20):
                trainer.step(x[index], labels[index])
        accuracies[memory] = float((net.predict(x, "bayes") == (y + 1) % 3).double().mean())
    assert accuracies[2000.0] > 0.9
    assert accuracies[2000.0] > accuracies[math.inf] + 0.01


def test_memory_goes_with_no_other_number():
    net = cavity.mlp(12, (7,), 3)
    assert isinstance(cavity.Trainer(net, "mf", memory=1e4).plan, Remembering)
    for others in ({"rho": 1.0}, {"rate": 0.5}, {"damping": 0.5}, {"schedule": "cosine"}):
        with pytest.raises(ValueError, match=f"give no {next(iter(others))}"):
            cavity.Trainer(net, "mf", memory=1e4, **others)
    for wrong in (0, -1.0, math.nan, True, "all"):
        with pytest.raises(ValueError, match="memory must be a number of samples"):
            cavity.Trainer(net, "mf", memory=wrong)


def test_a_readout_that_counts_more_samples_is_surer():
    x = torch.randn((400, 8), generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    sure = []
    for samples in (None, 1280, 20_000):
        net = cavity.mlp(8, (31,), 3)
        cavity.Trainer(net, "mf", readout_samples=samples).fit((x, y), epochs=5, batch_size=40)
        sure.append(float(net.predict_proba(x).amax(dim=1).mean()))
    assert sure[0] == sure[1]
    assert sure[2] > sure[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"readout_samples": 0}, "readout_samples must be a finite number"),
        ({"readout_samples": math.inf}, "readout_samples must be a finite number"),
        ({"readout_samples": 100, "rho": 1.0}, "give no rate, rho, damping or memory"),
        ({"readout_samples": 100, "memory": 50}, "give no rate, rho, damping or memory"),
        ({"readout_samples": 100, "damping": 0.5}, "give no rate, rho, damping or memory"),
        ({"readout_samples": 100, "rate": 0.5}, "give no rate, rho, damping or memory"),
    ],
)
def test_where_a_readout_cannot_count(options, message):
    with pytest.raises(ValueError, match=message):
        cavity.Trainer(cavity.mlp(4, (3,), 2), "mf", **options)


def test_networks_with_convolutions_are_quenched_for_longer_and_go_on_learning():
    shared = cavity.Trainer(cavity.network("conv:4:3,dense:5", (1, 8, 8), 3), "mf").plan
    dense = cavity.Trainer(cavity.network("dense:5", (1, 8, 8), 3), "mf").plan
    assert dense == Annealed()
    assert isinstance(shared, Annealed)
    assert shared.quench > dense.quench
    assert shared.growth > dense.growth
    place = Place(0.9, 10_000, 100, 128)
    assert shared.quenches(place)
    assert float(shared.rules(BINARY, place)[0].rate) > 5 * float(dense.rules(BINARY, place)[0].rate)
    # Before, the two learn alike.
    first = place._replace(fraction=0.0)
    assert [float(rule.rate) for rule in shared.rules(BINARY, first)] == [
        float(rule.rate) for rule in dense.rules(BINARY, first)
    ]
    # Real weights have no quench, shared or not.
    assert cavity.Trainer(cavity.network("conv:4:3", (1, 8, 8), 3, weights="gaussian"), "mf").plan.quench == 0


def test_the_longer_quench_of_convolutions_makes_their_weights_certain():
    data = cavity.data.load("digits")
    net = cavity.network("conv:8:3,pool:2,dense:21", (1, 8, 8), 10, threshold=True)
    history = cavity.Trainer(net, "mf").fit((data.x_train, data.y_train), epochs=5, batch_size=64)
    assert min(history[-1].polarization[:2]) > 0.95
