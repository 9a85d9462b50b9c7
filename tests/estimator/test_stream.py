"""Streams: data that change, and classes that nobody had named."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

import cavity
from cavity.core.growth import with_inputs, with_outputs

X, Y = load_digits(return_X_y=True)
SIGNS = {"weights": "binary", "activation": "sign", "hidden": (101,)}


def signs(**options) -> cavity.MessagePassingClassifier:
    return cavity.MessagePassingClassifier(**SIGNS, random_state=0, **options)


class TestMemory:
    @pytest.fixture(scope="class")
    @staticmethod
    def accuracy() -> dict[tuple[float, int], float]:
        """Accuracy on each 500 samples before they are learnt, by memory and by how far a change rotates the labels:
        every 1500 samples, three times."""
        found = {}
        # That a stream is not learnt any more is said in a warning.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for memory in (2000, math.inf):
                for turn in (0, 3):
                    found[memory, turn] = TestMemory.followed(memory, turn)
        return found

    @staticmethod
    def followed(memory: float, turn: int) -> float:
        clf, draw, right = signs(memory=memory, batch_size=50), np.random.default_rng(0), []
        for seen in range(0, 6000, 500):
            rows = draw.integers(len(X), size=500)
            y = (Y[rows] + turn * (seen // 1500)) % 10
            if seen:
                right.append(clf.score(X[rows], y))
            clf.partial_fit(X[rows], y, classes=range(10))
        return float(np.mean(right))

    def test_a_finite_memory_follows_labels_that_rotate(self, accuracy) -> None:
        """Three of the eleven looks come with a change, when nothing can be known of it yet."""
        assert accuracy[2000, 3] > 0.6
        assert accuracy[2000, 3] > accuracy[math.inf, 3] + 0.2

    def test_it_costs_little_where_nothing_changes(self, accuracy) -> None:
        assert accuracy[2000, 0] > max(0.9, accuracy[math.inf, 0] - 0.03)

    @pytest.mark.parametrize("memory", [0, -1, "long", math.nan, True])
    def test_it_must_be_a_number_of_samples(self, memory) -> None:
        with pytest.raises(ValueError, match="memory must be a number of samples"):
            signs(memory=memory).partial_fit(X[:100], Y[:100])

    def test_it_takes_the_place_of_rho(self) -> None:
        with pytest.raises(ValueError, match="memory chooses the update of a stream: give no rho"):
            signs(memory=100, rho=0.9).partial_fit(X[:100], Y[:100])

    def test_fit_does_without(self) -> None:
        """Bit by bit the same network."""
        first, second = (signs(memory=memory, epochs=2).fit(X[:200], Y[:200]) for memory in (None, 50))
        assert (first.predict_proba(X) == second.predict_proba(X)).all()

    def test_a_regressor_forgets_its_noise_as_fast(self) -> None:
        """After 400 samples, what is known of the noise counts as 100 of them, and the next 400 as they are."""
        draw = np.random.default_rng(0)
        x = draw.standard_normal((400, 3))
        model = cavity.MessagePassingRegressor((21,), memory=100, random_state=0).partial_fit(x, x[:, 0])
        samples = model._samples(x, model._target(draw.standard_normal(400)), None)
        noise, residual = model._gaussian().noise, float(model._residual(samples).mean())
        model._follow_noise(samples)
        assert residual > 2 * noise
        assert model._gaussian().noise == pytest.approx((100 * noise + 400 * residual) / 500)


class TestNewClasses:
    OLD = (Y != 3) & (Y != 7)
    KEPT = (0, 1, 2, 4, 5, 6, 8, 9)

    @pytest.fixture(params=["gaussian", "binary"], scope="class")
    @staticmethod
    def known(request) -> cavity.MessagePassingClassifier:
        options = SIGNS if request.param == "binary" else {}
        old = TestNewClasses.OLD
        return cavity.MessagePassingClassifier(**options, batch_size=32, random_state=0).partial_fit(
            X[old][:800], Y[old][:800]
        )

    def grown(self, known, labels=(3, 7)):
        """A copy that has been told of new classes, and has not learnt anything of them."""
        clf = pickle.loads(pickle.dumps(known))
        clf._add_classes(np.array(labels), None)
        return clf

    def test_what_is_known_is_not_touched(self, known) -> None:
        before, after = known.network_.weighted(), self.grown(known).network_.weighted()
        for name in ("field", "precision", "mean", "variance"):
            rows, first = getattr(before[-1], name), getattr(before[0], name)
            assert (rows is None) == (known.weights == "binary" and name == "precision")
            if rows is not None:
                assert (getattr(after[-1], name)[list(self.KEPT)] == rows).all()
                assert (getattr(after[0], name) == first).all()

    def test_predictions_on_old_data_nearly_stay(self, known) -> None:
        """Of a hundred labels at most one changes, and the new classes get less than their share of two in ten."""
        rest, grown = X[self.OLD][800:], self.grown(known)
        p, q = known.predict_proba(rest), grown.predict_proba(rest)
        assert grown.classes_.tolist() == list(range(10))
        assert q.shape == (len(rest), 10)
        assert (known.predict(rest) != grown.predict(rest)).mean() <= 0.01
        assert (known.predict(rest, "point") != grown.predict(rest, "point")).mean() <= 0.02
        assert q[:, [3, 7]].sum(axis=1).mean() < 0.07
        # What is left to the known ones is shared as before.
        left = q[:, self.KEPT] / q[:, self.KEPT].sum(axis=1, keepdims=True)
        assert np.abs(left - p).max() < 0.1

    def test_they_are_learnt(self, known) -> None:
        clf = pickle.loads(pickle.dumps(known))
        clf.partial_fit(X[:600], Y[:600])
        assert clf.classes_.tolist() == list(range(10))
        new = ~self.OLD
        assert clf.score(X[new][200:], Y[new][200:]) > 0.75
        again = pickle.loads(pickle.dumps(clf))
        assert (again.predict_proba(X) == clf.predict_proba(X)).all()

    def test_all_or_nothing(self, known, monkeypatch) -> None:
        clf = pickle.loads(pickle.dumps(known))
        before = clf.predict_proba(X[:50])

        def interrupted(*_) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(cavity.MessagePassingClassifier, "_pass_once", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.partial_fit(X[:100], Y[:100])
        assert clf.classes_.tolist() == list(self.KEPT)
        assert (clf.predict_proba(X[:50]) == before).all()

    def test_classes_may_be_announced(self, known) -> None:
        clf = pickle.loads(pickle.dumps(known))
        clf.partial_fit(X[self.OLD][:50], Y[self.OLD][:50], classes=[3, 11])
        assert clf.classes_.tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9, 11]

    def test_words_are_no_numbers(self, known) -> None:
        clf = pickle.loads(pickle.dumps(known))
        with pytest.raises(ValueError, match=r"y must hold labels like those of classes \[0, 1, .*\], got 'three'"):
            clf.partial_fit(X[:2], np.array(["three", "seven"]))

    def test_one_class_becomes_two_and_three(self) -> None:
        """The unit that stood for no class is the first to be taken."""
        clf = signs().partial_fit(X[Y == 5], Y[Y == 5])
        spare = clf.network_.weighted()[-1].field[1].clone()
        clf._add_classes(np.array([2]), None)
        assert clf.classes_.tolist() == [2, 5]
        assert (clf.network_.weighted()[-1].field[0] == spare).all()
        clf.partial_fit(X[:300], Y[:300])
        assert clf.score(X[:300], Y[:300]) > 0.6

    def test_of_several_targets_each_has_its_own(self) -> None:
        both = np.stack([Y, Y % 2], axis=1)
        few = both[:, 0] < 5
        clf = signs().partial_fit(X[few][:300], both[few][:300])
        rows = clf.network_.weighted()[-1].field.clone()
        clf._add_classes(both[:300], None)
        assert [list(names) for names in clf.classes_] == [list(range(10)), [0, 1]]
        after = clf.network_.weighted()[-1].field
        assert (after[:5] == rows[:5]).all()
        assert (after[10:] == rows[5:]).all()
        clf.partial_fit(X[:300], both[:300])


class TestNetworks:
    def test_more_outputs(self) -> None:
        """What is known stays, and another trainer learns the rest."""
        data = cavity.data.load("digits")
        net = cavity.mlp(64, (31,), 5)
        grown = net.more_outputs(10)
        assert (grown.layers[-1].field[:5] == net.layers[-1].field).all()
        assert (net.outputs, grown.outputs) == (5, 10)
        x, y = data.x_train, data.y_train
        trainer = cavity.Trainer(grown, "mf", memory=3000)
        for part in range(0, 1400, 50):
            trainer.step(x[part : part + 50], y[part : part + 50])
        assert (grown.predict(data.x_test, "bayes") == data.y_test).float().mean() > 0.8
        with pytest.raises(ValueError, match="outputs must be at least the 10 that there are, got 9"):
            grown.more_outputs(9)

    @pytest.mark.parametrize(
        "options", [{}, {"bias": True}, {"density": 0.4}, {"threshold": True}, {"weights": "gaussian"}], ids=str
    )
    def test_inputs_and_outputs_that_say_nothing_change_nothing(self, options) -> None:
        """A new input of 0, and units in another order: the same preactivations, to rounding."""
        net = cavity.mlp(6, (9,), 3, **options)
        x = torch.randn(20, 6, generator=torch.Generator().manual_seed(0))
        net.balance(x)
        grown = with_inputs(with_outputs(net, [2, None, 0, 1]), [0, 1, 2, None, 3, 4, 5])
        wide = torch.cat([x[:, :3], torch.zeros(20, 1), x[:, 3:]], dim=1)
        for old, new in zip(net.predict_moments(x), grown.predict_moments(wide), strict=True):
            torch.testing.assert_close(new[:, [2, 3, 0]], old, rtol=1e-5, atol=1e-5)
        if net.layers[0].mask is not None:
            assert 0 < grown.layers[-1].mask[1].sum() < 9

    @pytest.mark.parametrize("rows", [[0, 1], [0, 0, 1, 2], [0, 1, 2, 3]])
    def test_every_output_has_one_place(self, rows) -> None:
        with pytest.raises(ValueError, match="rows must name each of the 3 outputs once"):
            with_outputs(cavity.mlp(6, (9,), 3), rows)
