"""Estimators of images: convolutional layers, images or rows of pixels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

import cavity

OPTIONS = {"weights": "binary", "activation": "sign", "threshold": True, "epochs": 4, "random_state": 0}


def digits() -> tuple[np.ndarray, np.ndarray]:
    x, y = load_digits(return_X_y=True)
    return x.reshape(-1, 1, 8, 8), y


@pytest.mark.slow
def test_images_and_rows_train_the_same_network() -> None:
    x, y = digits()
    images = cavity.MessagePassingClassifier(layers="conv:16:3,pool:2,dense:31", **OPTIONS)
    rows = clone(images).set_params(image_shape=(1, 8, 8))
    flat = x.reshape(len(x), -1)
    images.fit(x[:1000], y[:1000])
    rows.fit(flat[:1000], y[:1000])
    assert images.score(x[1000:], y[1000:]) > 0.8
    np.testing.assert_array_equal(images.predict_proba(x[1000:]), rows.predict_proba(flat[1000:]))
    np.testing.assert_array_equal(images.predict(x[1000:]), images.predict(flat[1000:]))
    assert images.network_.balanced
    assert images.network_.input_shape == (1, 8, 8)


def test_a_stream_balances_thresholds_by_its_first_samples() -> None:
    x, y = digits()
    model = cavity.MessagePassingClassifier(layers="conv:8:3,pool:2", **OPTIONS)
    model.partial_fit(x[:200], y[:200], classes=range(10))
    scale = model.network_.layers[0].threshold.scale.clone()
    model.partial_fit(x[200:400], y[200:400])
    assert model.network_.balanced
    assert model.network_.layers[0].threshold.scale == scale


def test_what_does_not_fit_is_refused() -> None:
    x, y = digits()
    model = cavity.MessagePassingClassifier(layers="conv:8:3", **OPTIONS)
    with pytest.raises(ValueError, match="the data are no images"):
        model.fit(x.reshape(len(x), -1), y)
    with pytest.raises(ValueError, match=r"image_shape must be \(channels, height, width\)"):
        clone(model).set_params(image_shape=(8, 8)).fit(x.reshape(len(x), -1), y)
    model.set_params(epochs=1).fit(x[:100], y[:100])
    with pytest.raises(ValueError, match=r"images of shape \(1, 8, 8\), got \(1, 8, 7\)"):
        model.predict(x[:, :, :, :7])
