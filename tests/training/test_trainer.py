"""Training runs: data in two forms, seeds, callbacks, resuming, and that the networks learn scikit-learn's digits."""

import copy

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

import cavity
from cavity.training.callbacks import Callback, EarlyStop, OnEpoch


class StopAfter(Callback):
    """Ends ``fit`` after a number of steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_step(self, trainer, info):
        trainer.stop = trainer.steps >= self.steps


def problem(samples=60) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((samples, 12), generator=generator)
    return x, (x @ torch.randn((12, 3), generator=generator)).argmax(dim=1)


def trainer(seed=0, algorithm="bp", method="sampled", **options) -> cavity.Trainer:
    net = cavity.mlp(12, (7,), 3, output=cavity.ArgMax(method), seed=seed)
    return cavity.Trainer(net, algorithm, seed=seed, **options)


def fields(run: cavity.Trainer) -> list[Tensor]:
    return [layer.field for layer in run.net.weighted()]


def same(one: cavity.Trainer, other: cavity.Trainer) -> bool:
    return all(torch.equal(a, b) for a, b in zip(fields(one), fields(other), strict=True))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_classes_may_be_integers_of_any_size(dtype):
    x, y = problem()
    narrow, wide = trainer(), trainer()
    narrow.fit((x, y.to(dtype)), epochs=1, batch_size=8, validation=(x, y.to(dtype)))
    wide.fit((x, y), epochs=1, batch_size=8, validation=(x, y))
    assert narrow.history[0].test_nll == wide.history[0].test_nll


def test_a_loader_goes_on_where_its_epoch_was_left():
    x, y = problem()
    loader = DataLoader(TensorDataset(x, y), batch_size=10)
    whole, cut = trainer(), trainer()
    whole.fit(loader, epochs=2)
    cut.fit(loader, epochs=2, callbacks=[StopAfter(4)])
    assert (cut.epoch, cut.batch) == (0, 4)
    cut.fit(loader, epochs=2)
    assert cut.steps == whole.steps == 12
    assert all(map(torch.equal, fields(cut), fields(whole)))


def test_early_stopping_goes_on_waiting_after_a_restart():
    """Patience is counted from the best epoch of the whole history, which a checkpoint keeps."""
    run = trainer(rho=1.0)
    run.fit(problem(), epochs=30, batch_size=8, callbacks=[EarlyStop("train_error", patience=4)])
    again = trainer(rho=1.0)
    again.fit(problem(), epochs=run.epoch - 2, batch_size=8)
    again.fit(problem(), epochs=30, batch_size=8, callbacks=[EarlyStop("train_error", patience=4)])
    assert again.epoch == run.epoch < 30


def test_numbers_of_numpy_are_numbers():
    run = trainer(rho=np.float32(1), damping=np.array([0.5, 0.25]), inner_iterations=np.int64(2))
    assert run.plan.rho == (1.0, 1.0)
    assert run.plan.damping == (0.5, 0.25)
    assert run.method.iterations == 2


def test_the_same_seed_gives_the_same_run():
    runs = [trainer() for _ in range(2)] + [trainer()]
    runs[2].generator.manual_seed(1)
    for run in runs:
        run.fit(problem(), epochs=3, batch_size=8)
    assert same(runs[0], runs[1])
    assert not same(runs[0], runs[2])


def test_the_last_incomplete_batch_is_dropped():
    run = trainer()
    run.fit(problem(samples=60), epochs=2, batch_size=16)
    assert run.steps == 2 * 3


def test_a_loader_is_as_good_as_tensors():
    """The same batches in the same order give the same network."""
    x, y = problem()
    by_step, by_loader = trainer(method="pairwise"), trainer(method="pairwise")
    for start in range(0, 60, 20):
        by_step.step(x[start : start + 20], y[start : start + 20])
    loader = DataLoader(TensorDataset(x, y), batch_size=20)
    history = by_loader.fit(loader, epochs=1, validation=(x, y))
    assert same(by_step, by_loader)
    assert history[0].train_error is None
    assert history[0].test_error is not None


def test_records_say_what_the_network_does():
    x, y = problem()
    run = trainer()
    seen = []
    history = run.fit(
        (x, y), epochs=2, validation=(x, y), batch_size=20, callbacks=[OnEpoch(lambda t, r: seen.append(r))]
    )
    assert seen == history == run.history
    assert [record.epoch for record in history] == [1, 2]
    last = history[-1]
    assert last.train_error == last.test_error == pytest.approx(100 * (run.net.predict(x) != y).double().mean().item())
    wrong = (run.net.predict(x, "bayes") != y).double().mean().item()
    assert last.train_error_bayes == last.test_error_bayes == pytest.approx(100 * wrong)
    p = run.net.predict_proba(x).gather(1, y.unsqueeze(1))
    assert last.test_nll == pytest.approx(-p.log().mean().item(), rel=1e-5)
    assert last.polarization == pytest.approx([layer.mean.square().mean().item() for layer in run.net.layers])
    assert last.seconds > 0


@pytest.mark.parametrize("algorithm", ["bp", "amp"])
def test_a_run_resumed_mid_epoch_is_the_undisturbed_run(algorithm):
    options = {"reinforcement": 0.01, "reinforcement_step": 0.01, "inner_iterations": 2}
    whole = trainer(algorithm=algorithm, **options)
    whole.fit(problem(), epochs=3, batch_size=8)

    first = trainer(algorithm=algorithm, **options)
    first.fit(problem(), epochs=3, batch_size=8, callbacks=[StopAfter(10)])
    assert (first.epoch, first.batch, first.steps) == (1, 3, 10)
    kept = copy.deepcopy((first.net.state_dict(), first.state_dict()))

    second = trainer(seed=5, algorithm=algorithm, **options)
    second.net.load_state_dict(kept[0])
    second.load_state_dict(kept[1])
    second.fit(problem(), epochs=3, batch_size=8)
    assert same(second, whole)
    assert second.reinforcement == whole.reinforcement
    assert (second.steps, second.epoch) == (whole.steps, whole.epoch)
    for one, other in zip(second.history, whole.history, strict=True):
        assert one.train_error == other.train_error
        assert one.polarization == other.polarization


def test_a_state_survives_a_file(tmp_path):
    run = trainer()
    run.fit(problem(), epochs=1, batch_size=8)
    torch.save({"net": run.net.state_dict(), "trainer": run.state_dict()}, tmp_path / "run.pt")
    loaded = torch.load(tmp_path / "run.pt", weights_only=True)
    other = trainer(seed=3)
    other.net.load_state_dict(loaded["net"])
    other.load_state_dict(loaded["trainer"])
    for one in (run, other):
        one.fit(problem(), epochs=2, batch_size=8)
    assert same(run, other)


def test_fit_continues_where_it_stopped():
    run, whole = (trainer(rate=1.0) for _ in range(2))
    whole.fit(problem(), epochs=4, batch_size=8)
    for epochs in (1, 2, 2, 4):
        run.fit(problem(), epochs=epochs, batch_size=8)
    assert same(run, whole)
    assert len(run.history) == 4


def test_errors_are_measured_every_few_epochs_and_at_the_end():
    run, (x, y) = trainer(), problem()
    history = run.fit((x, y), epochs=8, validation=(x[:20], y[:20]), batch_size=8, evaluate_every=3)
    assert [record.epoch for record in history if record.test_error is not None] == [3, 6, 8]
    assert all((record.train_error is None) == (record.test_nll is None) for record in history)
    with pytest.raises(ValueError, match="evaluate_every must be a positive integer, got 0"):
        run.fit((x, y), epochs=9, evaluate_every=0)


def test_early_stop_counts_epochs_not_measurements():
    run, (x, y) = trainer(), problem()
    stop = EarlyStop("train_error", patience=4)
    history = run.fit((x, y), epochs=400, batch_size=8, evaluate_every=2, callbacks=[stop])
    assert len(history) == stop.best_epoch + 4


def test_early_stop_waits_for_its_patience():
    run = trainer()
    stop = EarlyStop("train_error", patience=2)
    history = run.fit(problem(), epochs=200, batch_size=8, callbacks=[stop])
    assert len(history) < 200
    errors = [record.train_error for record in history]
    assert min(errors[-2:]) >= min(errors[:-2])
    with pytest.raises(ValueError, match="early stopping on test_error needs validation data"):
        trainer().fit(problem(), epochs=1, batch_size=8, callbacks=[EarlyStop()])


@pytest.fixture(scope="module")
def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Digits with one mean and standard deviation for all pixels: training inputs and labels, test inputs and
    labels."""
    x, y = load_digits(return_X_y=True)
    train, test, train_y, test_y = train_test_split(x, y, test_size=400, random_state=0, stratify=y)
    inputs = (torch.tensor((part - train.mean()) / train.std(), dtype=torch.float32) for part in (train, test))
    train_x, test_x = inputs
    return train_x, torch.tensor(train_y), test_x, torch.tensor(test_y)


def accuracies(run: cavity.Trainer, digits, epochs: int) -> tuple[float, float]:
    """Point-wise and Bayesian test accuracy after training."""
    x, y, test_x, test_y = digits
    order = torch.Generator().manual_seed(0)
    # A loader, because scores of the training set after each epoch would take longer than the training.
    run.fit(DataLoader(TensorDataset(x, y), 64, shuffle=True, drop_last=True, generator=order), epochs=epochs)
    scores = cavity.analysis.metrics.measure(run.net, test_x, test_y)
    return 100 - scores.error, 100 - scores.error_bayes


def test_bp_learns_digits(digits):
    point, bayes = accuracies(cavity.Trainer(cavity.mlp(64, (101,), 10), "bp"), digits, epochs=8)
    assert point >= 94
    assert bayes >= 95


@pytest.mark.parametrize("algorithm", ["mf", "amp"])
def test_gaussian_weights_learn_digits(digits, algorithm):
    net = cavity.mlp(64, (), 10, weights="gaussian")
    _, bayes = accuracies(cavity.Trainer(net, algorithm, rho=1.0), digits, epochs=4)
    assert bayes >= 92


@pytest.mark.parametrize("weights", ["binary", "gaussian"])
def test_relu_learns_digits(digits, weights):
    """All samples of a batch vote from the same state; with units that have no bound the sum of 64 votes overshoots."""
    net = cavity.mlp(64, (51,), 10, weights=weights, activation="relu")
    _, bayes = accuracies(cavity.Trainer(net, "mf", rho=1.0, rate=0.1), digits, epochs=10)
    assert bayes >= 90


def test_convolutions_learn_digits_and_tempered_ones_polarise_less(digits):
    """A kernel of 64 positions collects 64 correlated votes from each sample."""
    outcomes = []
    for rate in (1.0, 1 / 64):
        net = cavity.Network([cavity.Conv2d((1, 8, 8), 8, 3, padding=1), "sign", cavity.Dense(512, 10), "argmax"])
        trainer = cavity.Trainer(net, "mf", rate=(rate, 1.0))
        outcomes.append((accuracies(trainer, digits, epochs=4)[1], net.layers[0].mean.square().mean()))
    (_, polarised), (bayes, tempered_polarised) = outcomes
    assert tempered_polarised < 0.9 * polarised
    assert bayes >= 91


def test_a_device_decides_by_itself_whether_to_keep_the_new_state():
    from cavity.training.writing import choose

    old, new = (torch.zeros(2), None), (torch.ones(2), None)
    assert choose(torch.tensor(True), new, old)[0].tolist() == [1, 1]
    assert choose(torch.tensor(False), new, old)[0].tolist() == [0, 0]
    assert choose(torch.tensor(False), (*new[:1], torch.ones(2)), (*old[:1], torch.zeros(2)))[1].tolist() == [0, 0]
