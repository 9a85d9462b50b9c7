"""The temperature of a readout: what it does to a prediction, and that held-out samples choose it."""

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification

import cavity
from cavity.estimator.tempering import EXPECTED, TEMPERATURES, choose_temperature


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
