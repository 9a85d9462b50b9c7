"""The temperature of a readout: what it does to a prediction, and that held-out samples choose it."""

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification

import cavity
from cavity.estimator.tempering import (
    EXPECTED,
    HARMLESS,
    LEAST,
    TEMPERATURES,
    choose_temperature,
    wanted_count,
    wanted_temperature,
)


def network():
    net = cavity.mlp(4, (), 3, weights="gaussian", seed=1)
    x = torch.randn((60, 4), generator=torch.Generator().manual_seed(2))
    return net, x


def test_a_temperature_multiplies_variances_and_leaves_means_alone():
    """One layer on known inputs: all of V comes from the readout."""
    net, x = network()
    before, point = net.predict_moments(x), net.predict(x)
    net.layers[0].temper(4.0)
    after = net.predict_moments(x)
    torch.testing.assert_close(after.mean, before.mean)
    torch.testing.assert_close(after.variance, 4 * before.variance)
    assert torch.equal(net.predict(x), point)
    other = network()[0]
    other.load_state_dict(net.state_dict())
    torch.testing.assert_close(other.predict_proba(x), net.predict_proba(x))


def test_the_chosen_temperature_is_the_most_probable_of_those_tried():
    net, x = network()
    pre = net.predict_moments(x)
    z = pre.mean + 3 * pre.variance.sqrt() * torch.randn(pre.mean.shape, generator=torch.Generator().manual_seed(3))
    y = z.argmax(dim=1)
    scores = []
    for T in TEMPERATURES:
        p = net.output.probabilities(pre._replace(variance=T * pre.variance))
        scores.append(float(p[range(60), y].log().sum()) - 0.5 * (math.log(T) / EXPECTED) ** 2)
    choose_temperature(net, x, y)
    assert float(net.layers[0].temperature) == TEMPERATURES[int(np.argmax(scores))] > 1


def test_discrete_weights_have_no_temperature():
    with pytest.raises(ValueError, match="only real weights"):
        cavity.mlp(4, (), 3, weights="binary").layers[0].temper(2.0)


def test_calibrating_mends_a_classifier_that_is_too_sure_of_noisy_labels():
    X, y = make_classification(600, 10, flip_y=0.4, random_state=3)
    nll = {}
    for calibrate in (True, False):
        model = cavity.MessagePassingClassifier(calibrate=calibrate, random_state=0).fit(X[:300], y[:300])
        nll[calibrate] = -np.log(model.predict_proba(X[300:])[range(300), y[300:]]).mean()
    assert nll[True] < nll[False]


@pytest.mark.parametrize(("copies", "modest"), [(1, False), (20, True)])
def test_samples_count_less_often_only_where_held_out_ones_want_much_modesty(copies, modest):
    """Labels are drawn from a network three times as unsure; one sample tells little of that, twenty copies much."""
    net, x = network()
    pre = net.predict_moments(x)
    z = pre.mean + 3 * pre.variance.sqrt() * torch.randn(pre.mean.shape, generator=torch.Generator().manual_seed(3))
    given = x.repeat(copies, 1), z.argmax(dim=1).repeat(copies)
    T = wanted_temperature(net, *given)
    assert net.layers[0].temperature is None
    assert (T > HARMLESS) == modest
    assert wanted_count(net, *given) == (max(LEAST, (HARMLESS / T) ** 3) if modest else 1)


def test_held_back_samples_that_say_how_often_to_count_help_with_many_noisy_classes(monkeypatch):
    X, y = make_classification(1600, 30, n_informative=10, n_classes=20, random_state=14)
    nll = {}
    for name, factor in (("wanted", wanted_count), ("always", lambda *given: 1.0)):
        monkeypatch.setattr("cavity.estimator.base.wanted_count", factor)
        model = cavity.MessagePassingClassifier(random_state=0).fit(X[:1200], y[:1200])
        nll[name] = -np.log(model.predict_proba(X[1200:])[range(400), y[1200:]]).mean()
    assert nll["wanted"] < nll["always"]
