"""1,000 samples of five networks have the same scores, classes and confidences in formats that need no compiler."""

from __future__ import annotations

import runpy

import numpy as np
import onnxruntime
import pytest

from cavity.export import to_html, to_onnx, to_packed, to_python
from cavity.packed import load
from export.conformance import NETWORKS, Answers, answers, model, vectors

#: Runs the network of a page on samples: [scores as text, class, confidence] of each.
RUN = """const done = arguments[arguments.length - 1];
window.ready.then(() => done(arguments[0].map(row => {
  const { scores, best, confidence } = window.network.answer(row);
  return [scores.map(String), best, confidence];
})), error => done(String(error)));"""


def packed(name: str, folder) -> Answers:
    net, x = load(to_packed(model(name), folder / "net.cavity")[0]), vectors(name)
    return Answers(net.scores(x), net.predict(x), net.confidence(x))


def python(name: str, folder) -> Answers:
    net, x = runpy.run_path(str(to_python(model(name), folder / "net.py")[0])), vectors(name)
    return Answers(net["scores"](x), net["predict"](x), net["confidence"](x))


def onnx(name: str, folder) -> Answers:
    session = onnxruntime.InferenceSession(
        to_onnx(model(name), folder / "net.onnx")[0], providers=["CPUExecutionProvider"]
    )
    return Answers(*session.run(["scores", "class", "confidence"], {"x": vectors(name)}))


@pytest.mark.parametrize("target", [packed, python, onnx])
@pytest.mark.parametrize("name", NETWORKS)
def test_every_target_says_the_same(name: str, target, tmp_path) -> None:
    answers(name).require(target(name, tmp_path))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_page_says_the_same(name: str, browser, tmp_path) -> None:
    (path,) = to_html(model(name), tmp_path / "net.html")
    browser.get(path.as_uri())
    rows = browser.execute_async_script(RUN, vectors(name).tolist())
    scores, classes, confidences = zip(*rows, strict=True)
    answers(name).require(Answers(np.array([[int(s) for s in row] for row in scores]), classes, confidences))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_samples_are_a_test(name: str) -> None:
    """All classes occur, and confidences of all sizes."""
    found = answers(name)
    assert len(np.unique(found.classes)) == max(2, found.scores.shape[1])
    low, high = np.percentile(found.confidences, [10, 90])
    assert low + 30 < high
