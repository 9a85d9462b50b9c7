"""Random networks of every kind that is exported, and what they compute in rational numbers."""

from __future__ import annotations

import math
import shutil
import subprocess
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import cavity
from cavity.core.network import Network
from cavity.export import Inputs, Trained
from cavity.packed import Description

#: Kind → sizes, options of ``mlp``, whether the inputs are pixels. Widths are no multiples of 8, 16, 32 or 64.
KINDS = {
    "binary": ((13, 7, 5, 3), {}, True),
    "one hidden layer": ((67, 70, 4), {}, True),
    "wide": ((531, 33, 129, 10), {}, True),
    "no hidden layer": ((19, 4), {"bias": True}, True),
    "label": ((21, 9, 1), {}, True),
    "label without hidden layer": ((21, 1), {}, True),
    "bias": ((13, 11, 6, 3), {"bias": True}, True),
    "sparse": ((70, 66, 9, 3), {"density": 0.4}, True),
    "sparse with bias": ((33, 10, 1), {"density": 0.5, "bias": True}, True),
    "ternary": ((37, 65, 5), {"weights": "ternary"}, True),
    "ternary with bias": ((37, 9, 9, 5), {"weights": "ternary", "bias": True}, True),
    "real": ((23, 12, 4), {}, False),
    "real, sparse with bias": ((23, 12, 1), {"density": 0.5, "bias": True}, False),
    "real without hidden layer": ((23, 6), {"bias": True}, False),
    "threshold": ((13, 11, 6, 5), {"threshold": True}, True),
    "threshold and bias, sparse": ((33, 10, 9, 3), {"density": 0.5, "bias": True, "threshold": True}, True),
    "threshold, label": ((21, 9, 1), {"threshold": True}, True),
    "threshold, ternary, real": ((23, 12, 12, 4), {"weights": "ternary", "threshold": True}, False),
    "threshold without hidden layer": ((19, 4), {"threshold": True}, True),
    "threshold, real without hidden layer": ((19, 4), {"threshold": True}, False),
}


OPTIONS = {"bias": False, "density": 1.0, "weights": "binary"}


def network(sizes: tuple[int, ...], seed: int = 0, **options) -> Network:
    """A random network; a third of ternary weights are 0."""
    if options.pop("threshold", False):
        # In the readout too, where mlp has none.
        bias, density, weights = (options.get(name, usual) for name, usual in OPTIONS.items())
        parts = [cavity.Dense(*pair, bias=bias) for pair in pairwise(sizes)]
        chain = [
            part
            for coupling in parts
            for part in (cavity.Layer(coupling, weights, density=density, threshold=True), "sign")
        ]
        net = cavity.Network([*chain[:-1], "label" if sizes[-1] == 1 else "argmax"], seed=seed)
    else:
        net = cavity.mlp(sizes[0], sizes[1:-1], sizes[-1], seed=seed, **options)
    for layer in net.weighted():
        if layer.prior.name == "ternary":
            layer.precision.fill_(0.9)
        if layer.threshold is not None:
            b = torch.randn(layer.shape[0], generator=torch.Generator().manual_seed(seed))
            # Some differ by whole numbers, or by nothing: then the sums alone decide.
            b[1::3] = b[0] + torch.arange(len(b[1::3])) // 2
            layer.threshold.begin(3 * b, torch.tensor(3.0), balanced=True)
    return net


def samples(inputs: Inputs, features: int, count: int, seed: int = 0) -> np.ndarray:
    """Random pixels, or numbers with the inputs' mean and std; the first two samples are the extremes."""
    random = np.random.default_rng(seed)
    if inputs.white is None:
        return (inputs.mean + inputs.std * random.standard_normal((count, features))).astype(np.float32)
    x = random.integers(0, inputs.white + 1, (count, features)).astype(np.uint8)
    x[0], x[1] = 0, inputs.white
    return x


def trained(kind: str, seed: int = 0, white: int = 255) -> Trained:
    sizes, options, pixels = KINDS[kind]
    random = np.random.default_rng(seed)
    if pixels:
        inputs = Inputs.pixels(np.float32(0.31), np.float32(0.27), white)
    else:
        inputs = Inputs.real(random.standard_normal(sizes[0]), random.uniform(0.5, 3, sizes[0]))
    classes = tuple(f"class {number}" for number in range(max(2, sizes[-1])))
    return Trained(network(sizes, seed, **options), inputs, classes)


def windowed() -> Trained:
    """Two convolutions and a pool."""
    net = cavity.network("conv:3:2:1:1,pool:2,conv:2:2", (1, 6, 5), 3, seed=1)
    return Trained(net, Inputs.pixels(0.3, 0.3))


def exact_classes(net: Network, inputs: Inputs, x: np.ndarray) -> np.ndarray:
    """Classes by rational arithmetic from the definition: standardise, multiply, add, sign(0) = +1."""
    scale = Fraction(1, inputs.white or 1)
    columns = x.shape[1]
    mean, std = ([Fraction(v) for v in np.broadcast_to(part, columns).tolist()] for part in (inputs.mean, inputs.std))
    rows = [[(Fraction(v) * scale - m) / s for v, m, s in zip(row, mean, std, strict=True)] for row in x.tolist()]
    # Over one denominator, sums are of Python's whole numbers.
    one = math.lcm(*(value.denominator for row in rows for value in row))
    h = np.array([[int(value * one) for value in row] for row in rows], object)
    for number, layer in enumerate(net.weighted()):
        w = layer.point().numpy()
        offsets = [one * sum(map(Fraction, row), Fraction(0)) for row in w[:, columns:].astype(float).tolist()]
        z = h @ w[:, :columns].T.astype(int).astype(object) + np.array(offsets, object)
        if number < len(net.layers) - 1:
            h, columns, one = np.where(z >= 0, 1, -1).astype(object), z.shape[1], 1
    if z.shape[1] == 1:
        return (z[:, 0] >= 0).astype(np.int64)
    return np.array([max(range(len(row)), key=lambda k: (row[k], -k)) for row in z.tolist()])


def compiled(folder: Path, *flags: str, main: str | None = None) -> Path:
    """The program of net.c, net.h and a main that predicts what comes in through its standard input."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("there is no gcc here")
    (folder / "main.c").write_text(main or MAIN)
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    program = folder / "program"
    subprocess.run([gcc, "-O1", *strict, *flags, "main.c", "net.c", "-o", program.name], cwd=folder, check=True)
    return program


def raw(description: Description, x: np.ndarray) -> np.ndarray:
    """Samples in the type that C takes: pixels, or fixed-point numbers."""
    fixed = description.inputs.fixed
    return x.astype(np.uint8) if fixed is None else fixed.raw(x).astype(np.int32)


def run_c(program: Path, q: np.ndarray) -> np.ndarray:
    """Classes of samples in the type that the program takes."""
    done = subprocess.run([program], input=np.ascontiguousarray(q).tobytes(), stdout=subprocess.PIPE, check=True)
    return np.array(done.stdout.split(), np.int64)


MAIN = """#include <stdio.h>
#include "net.h"

int main(void)
{
  static net_input sample[NET_INPUTS];
  while (fread(sample, sizeof sample, 1, stdin) == 1)
    printf("%d\\n", net_predict(sample));
  return 0;
}
"""


def near_zero(net: Network, x, pixels: bool = True) -> np.ndarray:
    """Samples (samples,) whose first preactivations come within rounding errors of 0, or of each other where they are
    compared: those of float32, or of fixed-point inputs, which are half a step of 1/1024 in r, and the same in q."""
    first = net.weighted()[0]
    z = first.apply_known(first.point(), x)
    error = 1e-5 * math.sqrt(x.shape[1]) if pixels else x.shape[1] * (2**-10 + 2**-14)
    if len(net.layers) == 1 and z.shape[1] > 1:
        best = z.topk(2, dim=1).values
        return (best[:, 0] - best[:, 1] < 2 * error).numpy()
    return (z.abs() < error).any(dim=1).numpy()
