"""Convolutional networks in every export: the classes of the engine, where all its sums are exact."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch

import cavity
from cavity.core.network import Network
from cavity.export import ExportError, Inputs, Trained, describe, to_c, to_onnx, to_packed
from cavity.export.footprint import constant_bytes
from cavity.packed import load
from export.conformance import expected
from export.helpers import compiled, run_c

KINDS = {
    "stride and padding": ("conv:5:3:2:1,dense:9", (2, 7, 6), {"bias": True}),
    "max pooling": ("conv:5:3,pool:2,conv:4:2", (1, 9, 9), {}),
    "average pooling": ("conv:5:3,average:2,conv:4:2,average:2,dense:5", (1, 11, 11), {"weights": "ternary"}),
    "label": ("conv:3:3:2,dense:7", (1, 9, 9), {"density": 0.7}),
    "padding above": ("conv:33:3:1:1,pool:2,conv:9:3:2:1,dense:9", (1, 10, 9), {}),
    "padding above, sparse": ("conv:6:3:1:1,pool:2,conv:35:3:1:2,pool:3,dense:9", (2, 8, 8), {"density": 0.6}),
    "means at the border": ("conv:5:3,average:2,conv:4:2:1:1,pool:2", (1, 9, 9), {}),
    "a large window": ("conv:5:7:2:3,dense:9", (3, 12, 12), {"weights": "ternary"}),
}


def network(kind: str) -> Network:
    """With thresholds in every layer but the readout, and what is trained in its weights drawn at random."""
    layers, shape, options = KINDS[kind]
    net = cavity.network(layers, shape, 1 if kind == "label" else 4, threshold=True, seed=1, **options)
    for number, layer in enumerate(net.weighted()):
        if layer.prior.name == "ternary":
            layer.precision.fill_(0.9)
        if layer.threshold is not None:
            b = torch.randn(layer.shape[0], generator=torch.Generator().manual_seed(number))
            layer.threshold.begin(2 * b, torch.tensor(2.0), balanced=True)
    return net.double()


@pytest.mark.parametrize("kind", KINDS)
def test_every_export_agrees_with_the_engine(kind: str, tmp_path) -> None:
    """Whole numbers with mean 0 and std 1: nothing is rounded, neither in float64 nor in multiples of 2^-10."""
    net = network(kind)
    features = int(np.prod(net.input_shape))
    x = np.random.default_rng(0).integers(-3, 4, (200, features)).astype(np.float32)
    expected = net.predict(torch.from_numpy(x)).numpy()
    expected = (expected > 0).astype(np.int64) if kind == "label" else expected
    assert len(np.unique(expected)) > 1
    trained = Trained(net, Inputs.real())
    (path,) = to_packed(trained, tmp_path / "net.cavity")
    assert (load(path).predict(x) == expected).all()
    to_c(trained, tmp_path / "net.c")
    assert (run_c(compiled(tmp_path), (x * (1 << 10)).astype(np.int32)) == expected).all()
    (model,) = to_onnx(trained, tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    assert (session.run(["class"], {"x": x})[0] == expected).all()


@pytest.mark.parametrize("flags", [(), ("-DNET_PORTABLE",)])
def test_channels_of_their_own_scale_and_8_bits(flags: tuple[str, ...], tmp_path) -> None:
    """Windows over colour channels with factors, by the definition: what is rounded is not the engine's."""
    net = cavity.network("conv:5:3:2:1,pool:2,conv:6:2:1:1,dense:9", (3, 11, 9), 4, weights="gaussian", seed=1)
    for number, layer in enumerate(net.weighted()):
        layer.mean.normal_(generator=torch.Generator().manual_seed(number))
    trained = Trained(net, Inputs.pixels(np.repeat([0.2, 0.4, 0.5], 99), np.repeat([0.1, 0.25, 0.3], 99)))
    pixels = np.random.default_rng(0).integers(0, 256, (100, 297)).astype(np.uint8)
    description = describe(trained)
    wanted = expected(description, pixels).classes
    assert len(np.unique(wanted)) == 4
    (path,) = to_packed(trained, tmp_path / "net.cavity")
    assert (load(path).predict(pixels) == wanted).all()
    to_c(trained, tmp_path / "net.c")
    assert (run_c(compiled(tmp_path, *flags), pixels) == wanted).all()


def test_weights_are_held_once(tmp_path) -> None:
    """A word for each of 8 filters and a threshold for each, then dense layers: no row of 784 bits for every unit."""
    trained = Trained(cavity.network("conv:8:3,pool:2,dense:10", (1, 28, 28), 10, seed=1), Inputs.pixels(0.3, 0.3))
    rows = 10 * 4 * -(-8 * 13 * 13 // 32) + 10 * 4
    assert constant_bytes(describe(trained)) == 8 * 4 + 8 * 2 + rows
    (path,) = to_packed(trained, tmp_path / "net.cavity")
    assert path.stat().st_size < 4 * 8 * 26 * 26 + 2500


def test_pixels_agree_too(tmp_path) -> None:
    net, inputs = network("max pooling"), Inputs.pixels(0.3, 0.2)
    pixels = np.random.default_rng(0).integers(0, 256, (200, 81)).astype(np.uint8)
    (path,) = to_packed(Trained(net, inputs), tmp_path / "net.cavity")
    x = torch.from_numpy((pixels / 255 - 0.3) / 0.2)
    assert (load(path).predict(pixels) == net.predict(x).numpy()).all()


def test_probabilities_are_for_dense_layers(tmp_path) -> None:
    with pytest.raises(ExportError, match="only dense layers can be exported with their uncertainty"):
        to_onnx(Trained(network("label"), Inputs.real()), tmp_path / "net.onnx", method="bayes")
