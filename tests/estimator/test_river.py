"""river's conventions, by river's own checks; and what its users may expect of a stream."""

from __future__ import annotations

import copy
import math
import pickle
import sys
import time
from importlib import import_module

import numpy as np
import pytest
import torch
from river import checks, datasets, metrics, preprocessing
from sklearn.datasets import load_digits

import cavity
from cavity.estimator.river import StreamClassifier, StreamRegressor

X, Y = load_digits(return_X_y=True)
ROWS = [({f"pixel {n}": float(v) for n, v in enumerate(row)}, int(label)) for row, label in zip(X, Y, strict=True)]
MODELS = [StreamClassifier(hidden=(5,)), StreamRegressor(hidden=(5,))]
#: The longest of river's checks, 2,000 samples each.
LONG = "check_bounded_memory_growth"


def named(model) -> dict[str, list]:
    """river's checks by name; several where there are several data sets."""
    found: dict[str, list] = {}
    for check in checks.yield_checks(model):
        found.setdefault(check.__name__, []).append(check)
    return found


CASES = [(model, name) for model in MODELS for name in named(model)]


@pytest.mark.parametrize(
    ("model", "name"),
    [pytest.param(model, name, marks=pytest.mark.slow if name == LONG else ()) for model, name in CASES],
    ids=[f"{model}-{name}" for model, name in CASES],
)
def test_river_finds_nothing_to_complain_about(model, name) -> None:
    """What ``checks.check_estimator`` does, check by check; none is skipped."""
    assert model._unit_test_skips() == set()
    for check in named(model)[name]:
        check(model.clone())


def accuracy(model, samples) -> float:
    """Each sample is predicted before it is learnt."""
    right = metrics.Accuracy()
    for x, y in samples:
        guess = model.predict_one(x)
        if guess is not None:
            right.update(y, guess)
        model.learn_one(x, y)
    return right.get()


class TestClassifier:
    def test_a_stream_is_learnt(self) -> None:
        """Ten classes that were not announced; a tenth of 600 digits is what is not known at first."""
        assert accuracy(StreamClassifier(seed=0), ROWS[:600]) > 0.75

    def test_the_same_as_the_trainer(self) -> None:
        """To rounding, after 60 samples with features that have river's own standardisation."""
        model, scaler = StreamClassifier(hidden=(31,), standardize=False, seed=0), preprocessing.StandardScaler()
        rows = []
        for x, y in ROWS[:61]:
            scaler.learn_one(x)
            rows.append((scaler.transform_one(x), y))
        model.learn_one(*rows[0])
        for label in range(1, 10):
            model.learn_one({}, label)
        net = copy.deepcopy(model._online.net)
        trainer = cavity.Trainer(net, "mf", memory=model.memory, compile=False)
        names = sorted(rows[0][0], key=repr)
        for x, y in rows[1:]:
            model.learn_one(x, y)
            unit = model._units[y]
            trainer.step(torch.tensor([[x[name] for name in names]], dtype=torch.float32), torch.tensor([unit]))
        for own, other in zip(model._online.net.weighted(), net.weighted(), strict=True):
            torch.testing.assert_close(own.field, other.field, rtol=1e-3, atol=1e-3)

    def test_standardised_like_river(self) -> None:
        """Inside, or by river's own transformer."""
        inside = StreamClassifier(hidden=(31,), seed=0)
        outside = preprocessing.StandardScaler() | StreamClassifier(hidden=(31,), standardize=False, seed=0)
        for x, y in ROWS[:60]:
            inside.learn_one(x, y)
            outside.learn_one(x, y)
        for x, _ in ROWS[60:70]:
            p, q = inside.predict_proba_one(x), outside.predict_proba_one(x)
            assert all(math.isclose(p[label], q[label], rel_tol=1e-3, abs_tol=1e-5) for label in p)

    def test_what_is_absent_says_nothing(self) -> None:
        """A feature that vanishes counts as its mean, and the weights it has stay."""
        model = StreamClassifier(hidden=(31,), seed=0, memory=math.inf)
        for x, y in ROWS[:100]:
            model.learn_one(x, y)
        first, column = model._online.net.weighted()[0], model._online.columns["pixel 20"]
        before = first.field[:, column].clone()
        x = {name: value for name, value in ROWS[100][0].items() if name != "pixel 20"}
        at_mean = {**x, "pixel 20": float(model._online.inputs.mean[column])}
        assert model.predict_proba_one(x) == pytest.approx(model.predict_proba_one(at_mean))
        model.learn_one(x, 3)
        assert (first.field[:, column] == before).all()

    @pytest.mark.parametrize(
        ("x", "error", "message"),
        [
            ({"a": "red"}, TypeError, r"x\['a'\] must be a number, got 'red'"),
            ({"a": math.nan}, ValueError, r"x\['a'\] must be finite, got nan"),
            ({"new": math.inf}, ValueError, r"x\['new'\] must be finite, got inf"),
        ],
    )
    def test_a_bad_sample_is_named_and_leaves_no_trace(self, x, error, message) -> None:
        model = StreamClassifier(hidden=(5,), seed=0)
        for n in range(4):
            model.learn_one({"a": float(n)}, n % 2)
        before = pickle.dumps(model)
        with pytest.raises(error, match=message):
            model.learn_one(x, 5)
        assert pickle.dumps(model) == before

    @pytest.mark.parametrize("options", [{"weights": "gaussian", "activation": "relu"}, {"algorithm": "bp"}])
    def test_other_networks_go_through_the_trainer(self, options) -> None:
        model = StreamClassifier(hidden=(21,), seed=0, **options)
        assert accuracy(model, ROWS[:150]) > 0.3
        assert model._online.prepared()[1] is None

    def test_a_step_takes_less_than_a_millisecond(self) -> None:
        """64-101-10, the fastest of many steps on a machine that may be busy; the trainer needs several."""
        model, fastest = StreamClassifier(seed=0), math.inf
        for x, y in ROWS[:400]:
            started = time.perf_counter()
            model.learn_one(x, y)
            fastest = min(fastest, time.perf_counter() - started) if len(model._units) == 10 else math.inf
        assert fastest < 1e-3


class TestRegressor:
    def test_a_stream_is_learnt(self) -> None:
        """Errors are well below those of the mean so far."""
        model, errors, of_mean = StreamRegressor(seed=0), [], []
        seen: list[float] = []
        for n, (x, y) in enumerate(datasets.TrumpApproval().take(600)):
            if n >= 100:
                errors.append(abs(y - model.predict_one(x)))
                of_mean.append(abs(y - float(np.mean(seen))))
            model.learn_one(x, y)
            seen.append(y)
        assert np.mean(errors) < 0.6 * np.mean(of_mean)

    def test_y_must_be_finite(self) -> None:
        with pytest.raises(ValueError, match="y must be finite, got nan"):
            StreamRegressor().learn_one({"a": 1.0}, math.nan)


def test_without_river_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "cavity.estimator.river")
    with pytest.raises(ImportError, match=r"learning one sample at a time needs river: pip install 'cavity\[river\]'"):
        import_module("cavity.estimator.river")
