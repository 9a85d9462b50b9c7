"""What counts as divergence: records written by hand, and runs that are known to end well or badly."""

from __future__ import annotations

import math
import warnings

import pytest
import torch

import cavity
from cavity import data
from cavity.analysis.metrics import BestConstant, constant_of
from cavity.training.batches import Recent
from cavity.training.watch import Level, trouble

DIGITS = BestConstant(error=90.0, nll=math.log(10))
FLAT = BestConstant(error=2.0, real=True)


@pytest.mark.parametrize(
    ("constant", "reached", "said"),
    [
        (DIGITS, [(3.0, 2.0, 0.1)], None),
        (DIGITS, [(91.0, 90.5, 2.3)], None),
        (DIGITS, [(3.0, 2.0, 0.1), (95.0, 95.0, 2.4)], "training error is 95.0 %, that of a constant 90.0 %"),
        (DIGITS, [(95.0, 40.0, 1.0)], "most probable weights are of no use: their training error is 95.0 %"),
        (DIGITS, [(85.0, 85.0, 9.0)], "NLL of the training data is 9, that of a constant 2.3"),
        (DIGITS, [(3.0, 3.0, 9.0)], None),
        (DIGITS, [(20.0, 8.0, 0.4), (20.0, 12.0, 0.4)], None),
        (DIGITS, [(20.0, 8.0, 0.4), (50.0, 50.0, 1.4)], "training error is 50.0 %, it had been 8.0 %"),
        (DIGITS, [(math.nan, math.nan, math.nan)], "training error is nan"),
        (FLAT, [(0.5, 0.5, None)], None),
        (FLAT, [(2.02, 2.02, None)], None),
        (FLAT, [(0.5, 0.5, None), (3.0, 3.0, None)], "training error is 3, that of a constant 2"),
        (FLAT, [(0.5, 0.5, None), (1.5, 1.5, None)], "training error is 1.5, it had been 0.5"),
        (FLAT, [(1e200, 1e200, None)], "training error is 1e+200"),
        (FLAT, [(math.inf, math.inf, None)], "training error is inf"),
        (BestConstant(0.0, real=True), [(0.1, 0.1, None)], None),
        (BestConstant(0.0, 0.0), [(40.0, 40.0, 0.5)], None),
    ],
)
def test_levels(constant: BestConstant, reached: list[tuple], said: str | None) -> None:
    found = trouble(constant, 1000, [Level(*level) for level in reached])
    assert found is None if said is None else said in (found or "")


def test_few_samples_allow_more_chance() -> None:
    coin = BestConstant(error=50.0, nll=math.log(2))
    assert trouble(coin, 20, [Level(60.0, 60.0, 0.7)]) is None
    assert trouble(coin, 1000, [Level(60.0, 60.0, 0.7)]) is not None


def test_the_best_constant() -> None:
    argmax, label = cavity.mlp(2, (), 3), cavity.mlp(2, (), 2, output="label")
    y = torch.tensor([0, 0, 0, 2])
    assert constant_of(argmax, y) == BestConstant(25.0, pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25)))
    assert constant_of(label, torch.tensor([[1, -1], [1, 1], [-1, 1], [1, -1]])) == BestConstant(37.5)
    real = cavity.mlp(2, (), 1, output="gaussian")
    assert constant_of(real, torch.tensor([1.0, 3.0])) == BestConstant(1.0, real=True)


def digits(samples: int = 300) -> tuple[torch.Tensor, torch.Tensor]:
    found = data.load("digits")
    return found.x_train[:samples], found.y_train[:samples]


def frozen(**options) -> cavity.Trainer:
    """ρ = 3 makes the weights certain before they have learnt anything."""
    return cavity.Trainer(cavity.mlp(64, (21,), 10), "mf", rho=3.0, damping=0.5, compile=False, **options)


@pytest.mark.parametrize("source", ["tensors", "iterable"])
def test_a_run_that_is_ruined_warns(source: str) -> None:
    x, y = digits()
    train = (x, y) if source == "tensors" else list(zip(x.split(20), y.split(20), strict=True))
    with pytest.warns(cavity.DivergenceWarning, match=r"diverged: .*constant.*Leave rho, damping and rate out") as said:
        frozen().fit(train, epochs=3, batch_size=20)
    assert said[0].filename == __file__


def test_a_resumed_run_is_judged_like_one_that_was_not(tmp_path) -> None:
    x, y = digits()
    batches = list(zip(x.split(30), y.split(30), strict=True))
    for source in ((x, y), batches):
        texts = []
        for stops in ((), (4,), (13, 25)):
            trainer = frozen()
            for stop in (*stops, None):
                if trainer.steps:
                    again = frozen()
                    again.net.load_state_dict(trainer.net.state_dict())
                    again.load_state_dict(trainer.state_dict())
                    trainer = again
                halt = cavity.callbacks.Callback()
                halt.on_step = lambda trainer, info, stop=stop: setattr(trainer, "stop", trainer.steps == stop)
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    trainer.fit(source, epochs=3, batch_size=30, callbacks=[halt])
            texts.append([str(one.message) for one in said])
        assert texts[0]
        assert texts[1:] == texts[:1] * 2


def test_errors_on_other_data_are_not_compared() -> None:
    """A second task that is harder than the first is no loss of what was learnt."""
    x, y = digits(100)
    trainer = cavity.Trainer(cavity.mlp(64, (21,), 10), "mf", compile=False)
    trainer.fit((x, y), epochs=8, batch_size=20)
    chance = torch.randint(10, y.shape, generator=torch.Generator().manual_seed(0))
    trainer.fit((torch.zeros_like(x), chance), epochs=9, batch_size=20)


def test_the_last_mini_batches_are_kept() -> None:
    batches = [(torch.full((900, 1), float(n)), torch.full((900,), n)) for n in range(6)]
    recent = Recent(batches)
    assert [int(y[0]) for _, y in recent] == list(range(6))
    assert [int(y[0]) for _, y in recent.kept] == [3, 4, 5]


@pytest.mark.parametrize("activation", ["sign", "relu"])
@pytest.mark.parametrize("weights", ["binary", "gaussian"])
def test_normal_runs_say_nothing(weights: str, activation: str) -> None:
    """Warnings are errors in tests."""
    net = cavity.mlp(64, (21,), 10, weights=weights, activation=activation)
    cavity.Trainer(net, "mf", compile=False).fit(digits(), epochs=4, batch_size=20)
