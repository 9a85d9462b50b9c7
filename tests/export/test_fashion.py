"""A 784-501-501-10 network on all 10,000 test images of Fashion-MNIST, in every format."""

from __future__ import annotations

import os
import subprocess
import time

import numpy as np
import pytest
import torch

import cavity
from cavity.data import DataNotFound, load
from cavity.export import Inputs, Trained, to_c, to_onnx, to_packed
from export.helpers import compiled, run_c

#: Prints the nanoseconds that a prediction takes, the best of several passes over the images.
STOPWATCH = """#include <stdio.h>
#include <time.h>
#include "net.h"

static net_input images[1000][NET_INPUTS];

int main(void)
{
  double best = 1e30;
  int pass, i;
  volatile int sum = 0;
  if (fread(images, sizeof images, 1, stdin) != 1)
    return 1;
  for (pass = 0; pass < 40; ++pass) {
    const clock_t start = clock();
    double taken;
    for (i = 0; i < 1000; ++i)
      sum += net_predict(images[i]);
    taken = (double)(clock() - start) / CLOCKS_PER_SEC / 1000;
    best = taken < best ? taken : best;
  }
  printf("%.0f\\n", 1e9 * best);
  return 0;
}
"""


@pytest.fixture(scope="module")
def data():
    if not os.environ.get("CAVITY_DATA"):
        pytest.skip("$CAVITY_DATA is not set, so there are no real data sets to read")
    try:
        return load("fashion-mnist")
    except DataNotFound:
        pytest.skip("$CAVITY_DATA has no fashion-mnist")


@pytest.fixture(scope="module")
def model(data) -> Trained:
    """Trained on 50 mini-batches by mean field: enough for weights that are not random."""
    net = cavity.mlp(784, [501, 501], 10, seed=0)
    some = data.subset(n_train=6400)
    cavity.Trainer(net, "mf", damping=0.8, seed=0).fit((some.x_train, some.y_train), epochs=1, batch_size=128)
    return Trained(net, Inputs.pixels(data.mean.numpy(), data.std.numpy()), data.classes)


@pytest.fixture(scope="module")
def pixels(data) -> np.ndarray:
    return np.rint((data.x_test * data.std + data.mean).numpy() * 255).astype(np.uint8)


@pytest.fixture(scope="module")
def expected(model, data) -> np.ndarray:
    """What the network predicts, ties included: a sum of the first layer that is 0 has the sign +1."""
    guess: np.ndarray = model.net.predict(data.x_test).numpy()
    assert (guess == data.y_test.numpy()).mean() > 0.6
    return guess


@pytest.mark.slow
def test_packed(model, pixels, expected, tmp_path) -> None:
    [path] = to_packed(model, tmp_path / "net.cavity")
    assert path.stat().st_size < 84_500
    assert (cavity.packed.load(path).predict(pixels) == expected).all()


@pytest.mark.parametrize("flags", [[], ["-DNET_PORTABLE"]])
def test_c(flags, model, pixels, expected, tmp_path) -> None:
    to_c(model, tmp_path / "net.c")
    assert (run_c(compiled(tmp_path, "-O3", *flags), pixels) == expected).all()


def test_onnx(model, data, pixels, expected, tmp_path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    point, bayes = tmp_path / "net.onnx", tmp_path / "bayes.onnx"
    to_onnx(model, point)
    to_onnx(model, bayes, method="bayes")
    sessions = [onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]) for path in (point, bayes)]
    assert (sessions[0].run(["class"], {"x": pixels})[0] == expected).all()
    p = np.concatenate([sessions[1].run(None, {"x": part})[0] for part in np.split(pixels, 10)])
    np.testing.assert_allclose(p, model.net.predict_proba(data.x_test).numpy(), rtol=0, atol=1e-5)


def test_c_is_five_times_faster_than_floats(model, data, pixels, tmp_path) -> None:
    to_c(model, tmp_path / "net.c")
    program = compiled(tmp_path, "-O3", main=STOPWATCH)
    weights = [layer.point() for layer in model.net.weighted()]

    def forward(x: torch.Tensor) -> torch.Tensor:
        for w in weights[:-1]:
            x = torch.sign(torch.nn.functional.linear(x, w))
        return torch.nn.functional.linear(x, weights[-1])

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            floats = min(_seconds(lambda: [forward(data.x_test[i : i + 1]) for i in range(100)]) for _ in range(20))
    finally:
        torch.set_num_threads(threads)
    done = subprocess.run([program], input=pixels[:1000].tobytes(), stdout=subprocess.PIPE, check=True)
    assert floats / 100 > 5e-9 * float(done.stdout)


def _seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
