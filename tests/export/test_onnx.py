"""ONNX models, run by onnxruntime, against the packed network and the engine's probabilities."""

from __future__ import annotations

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import cavity
from cavity.export import ExportError, Inputs, Trained, describe, to_onnx
from cavity.export.graph import OPSET
from cavity.packed import PackedNetwork
from export.helpers import KINDS, network, samples, trained


def session(path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def standardized(inputs: Inputs, x: np.ndarray) -> torch.Tensor:
    return torch.from_numpy((x / (inputs.white or 1) - inputs.mean) / inputs.std).float()


@pytest.mark.parametrize("kind", KINDS)
def test_classes_and_scores_of_every_kind(kind: str, tmp_path) -> None:
    model = trained(kind)
    [path] = to_onnx(model, tmp_path / "net.onnx")
    x = samples(model.inputs, model.net.input_shape[0], 100)
    classes, scores = session(path).run(["class", "scores"], {"x": x})
    packed = PackedNetwork(describe(model))
    assert (scores == packed.scores(x)).all()
    assert (classes == packed.predict(x)).all()


def test_channels(tmp_path) -> None:
    inputs = Inputs.pixels(np.repeat([0.2, 0.4, 0.7], 50), np.repeat([0.1, 0.25, 0.3], 50))
    model = Trained(network((150, 20, 5)), inputs)
    x = samples(inputs, 150, 100)
    [scores] = session(to_onnx(model, tmp_path / "net.onnx")[0]).run(["scores"], {"x": x})
    assert (scores == PackedNetwork(describe(model)).scores(x)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_of_every_kind(kind: str, tmp_path) -> None:
    model = trained(kind)
    [path] = to_onnx(model, tmp_path / "net.onnx", method="bayes")
    x = samples(model.inputs, model.net.input_shape[0], 100)
    [p] = session(path).run(None, {"x": x})
    np.testing.assert_allclose(p, model.net.predict_proba(standardized(model.inputs, x)).numpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("options", [{"weights": "gaussian"}, {"activation": cavity.Sign(0.7)}])
def test_probabilities_need_no_weights_of_one_bit(options: dict, tmp_path) -> None:
    model = Trained(cavity.mlp(20, [30, 15], 6, **options), Inputs.real())
    x = samples(model.inputs, 20, 100)
    [p] = session(to_onnx(model, tmp_path / "net.onnx", method="bayes")[0]).run(None, {"x": x})
    np.testing.assert_allclose(p, model.net.predict_proba(torch.from_numpy(x)).numpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.01])
def test_a_class_that_is_nearly_certain_goes_to_the_panels(width: float, tmp_path) -> None:
    """One class with weights all but known: its preactivation is narrow beside the others."""
    net = network((10, 8, 4))
    last = net.weighted()[-1]
    last.mean[2] *= 0.01
    last.variance[2] = width
    first = net.weighted()[0]
    first.mean.copy_(first.mean.sign())
    first.variance.fill_(1e-4)
    model = Trained(net, Inputs.real())
    x = samples(model.inputs, 10, 50)
    pre = net.predict_moments(torch.from_numpy(x))
    assert float((pre.variance.amax(1) / pre.variance.amin(1)).max()) > 30
    [p] = session(to_onnx(model, tmp_path / "net.onnx", method="bayes")[0]).run(None, {"x": x})
    np.testing.assert_allclose(p, net.predict_proba(torch.from_numpy(x)).numpy(), rtol=0, atol=1e-5)


def test_the_model_says_what_it_is(tmp_path) -> None:
    model = trained("binary")
    content = onnx.load(to_onnx(model, tmp_path / "net.onnx")[0])
    assert content.opset_import[0].version == OPSET
    assert json.loads({entry.key: entry.value for entry in content.metadata_props}["classes"]) == list(model.classes)
    assert [entry.name for entry in content.graph.output] == ["class", "scores"]


def test_what_cannot_be_exported_says_so(tmp_path, monkeypatch) -> None:
    path = tmp_path / "net.onnx"
    for reason, net in {
        "activation 0 is ReLU": cavity.mlp(3, [3], 2, activation="relu"),
        "output is GaussianOutput": cavity.mlp(3, [3], 1, output="gaussian"),
        "only argmax and one label": cavity.mlp(3, [3], 2, output="label"),
    }.items():
        with pytest.raises(ExportError, match=reason):
            to_onnx(Trained(net, Inputs.real()), path, method="bayes")
    with pytest.raises(ValueError, match="method must be"):
        to_onnx(trained("binary"), path, method="both")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"cavity\[onnx\]"):
        to_onnx(trained("binary"), path)
    assert not path.exists()
