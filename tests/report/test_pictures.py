"""Bitmaps."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from cavity.report.page import png_uri
from cavity.report.palette import NEGATIVE, POSITIVE
from cavity.report.pictures import weights_picture


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3), (4, 5, 4)])
def test_png_holds_the_same_bytes(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    uri = png_uri(pixels)
    head, body = uri.split(",")
    assert head == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(body))) as image:
        assert np.array_equal(np.asarray(image), pixels)


def test_sign_is_colour_and_size_is_opacity():
    picture = weights_picture(np.array([[[-2.0, -1.0], [0.0, 4.0]]]), 2.0)
    assert picture.shape == (2, 2, 4)
    assert tuple(picture[0, 0]) == (*NEGATIVE, 255)
    assert tuple(picture[0, 1]) == (*NEGATIVE, 128)
    assert picture[1, 0, 3] == 0
    assert tuple(picture[1, 1]) == (*POSITIVE, 255)


def test_three_channels_are_a_colour_picture():
    means = np.array([1.0, 0.0, -1.0]).reshape(3, 1, 1)
    assert weights_picture(means, 1.0).tolist() == [[[255, 128, 0]]]


def test_other_channels_are_averaged():
    means = np.array([1.0, 0.0]).reshape(2, 1, 1)
    assert weights_picture(means, 1.0).tolist() == [[[*POSITIVE, 128]]]
