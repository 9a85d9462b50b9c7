"""Learning on the device: integers follow the equations, C follows the integers, and what cannot learn is told so."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
import torch

import cavity
from cavity.cli import main
from cavity.core.channels import ArgMax
from cavity.core.messages import Fields, Moments
from cavity.export import ExportError, Inputs, Learn, Trained, describe, learner, steered, to_c
from cavity.export.learning import grown
from cavity.packed import Learner, PackedNetwork
from cavity.packed.gaussian import FINE, LIMIT
from cavity.packed.learning import steered as packed_steered
from export.helpers import compiled, network

SIZES = (20, 13, 4)
INPUTS = Inputs.pixels(np.float32(0.31), np.float32(0.27), 16)


def model(sizes: tuple[int, ...] = SIZES, inputs: Inputs = INPUTS, **options) -> Trained:
    return Trained(network(sizes, **options), inputs)


def stream(device: Learner, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random pixels, the extremes among them, and random labels."""
    random, learning = np.random.default_rng(seed), device.learning
    x = random.integers(0, learning.white + 1, (count, learning.sizes[0])).astype(np.uint8)
    x[0], x[1] = 0, learning.white
    return x, random.integers(0, learning.sizes[2], count)


def with_signs(trained: Trained, device: Learner) -> Trained:
    """The network whose weights are the signs of the fields."""
    sizes = device.learning.sizes
    net = cavity.mlp(sizes[0], sizes[1:-1], sizes[-1])
    for layer, fields in zip(net.weighted(), device.fields, strict=True):
        h = torch.from_numpy(np.where(fields >= 0, 1.0, -1.0)).float()
        layer.set_state(Fields(h, None), Moments(torch.tanh(h), 1 - torch.tanh(h).square()))
    return replace(trained, net=net, classes=())


def test_a_step_is_that_of_mean_field() -> None:
    device = learner(model((30, 21, 5)), Learn(rates=(0.5, 0.5, 0.5), margin=8))
    random = np.random.default_rng(1)
    # Fields of moderate size: units are undecided, and steps large.
    device.fields = [random.integers(-LIMIT // 2, LIMIT // 2, h.shape).astype(np.int16) for h in device.fields]
    x, labels = stream(device, 40)
    net = cavity.Network([cavity.Dense(30, 21), "sign", cavity.Dense(21, 5), ArgMax("pairwise")])
    trainer = cavity.Trainer(net, "mf", rate=0.5, rho=1.0, damping=0.0)
    moved = 0
    for q, label in zip(x[2:], labels[2:], strict=True):
        before = [h.copy() for h in device.fields]
        for layer, fields in zip(net.weighted(), before, strict=True):
            h = torch.from_numpy(fields / (1 << FINE)).float()
            layer.set_state(Fields(h, None), Moments(torch.tanh(h), 1 - torch.tanh(h).square()))
        if not device.learn_one(q, int(label)):
            continue
        moved += 1
        standard = (torch.from_numpy(q).float() / 16 - 0.31) / 0.27
        trainer.step(standard[None], torch.tensor([int(label)]))
        for layer, old, new in zip(net.weighted(), before, device.fields, strict=True):
            step, wanted = new.astype(int) - old, (layer.field.numpy() - old / (1 << FINE)) * (1 << FINE)
            # Tables have steps of 1/32, which the density feels most; roundings leave a few units of the last place.
            assert np.abs(step - wanted).max() < 0.05 * np.abs(wanted).max() + 4
    assert moved > 20


def test_steps_leave_alone_what_the_known_classes_have_in_common() -> None:
    random, plain = np.random.default_rng(2), model()
    # Bright and dark samples: what they share is a direction of its own.
    brightness, noise = random.uniform(0, 16, (500, 1)), random.normal(0, 1, (500, 20))
    known = np.clip(np.rint(brightness + noise), 0, 16).astype(np.uint8)
    learning = learner(steered(plain, known)).learning
    x = learning.inputs(known.astype(int)) / (1 << learning.bits)
    values, u = np.linalg.eigh(x.T @ x / len(x))
    for q in known[:50]:
        given = learning.inputs(q.astype(int))
        left = packed_steered(given, learning.directions[0], 8 << learning.bits) / (1 << learning.bits)
        # (1 + λ/λ̄)⁻¹ of the part along each direction, and all of what lies in none of the twelve.
        wanted = np.where(np.arange(20) < 8, 1, 1 / (1 + values / values.mean())) * (given @ u) / (1 << learning.bits)
        # Directions are rounded to 2^-8, and so is twice each of the twelve differences.
        assert np.abs(left @ u - wanted).max() < 0.02 * np.abs(given).max() / (1 << learning.bits) + 0.05
        assert np.abs(left).max() < 0.35 * np.abs(given).max() / (1 << learning.bits) + 0.5
    bare = learner(plain).learning
    assert [len(each) for each in bare.directions] == [0, 0]
    assert bare.rate < learning.rate


@pytest.mark.parametrize("seed", range(3))
def test_signs_are_the_packed_network(seed: int) -> None:
    trained, learn = model(seed=seed), Learn(new_classes=("4", "5"))
    device = learner(trained, learn)
    x, labels = stream(device, 300, seed)
    assert (device.predict_signs(x) == PackedNetwork(describe(grown(trained, learn))).predict(x)).all()
    for q, label in zip(x, labels, strict=True):
        device.learn_one(q, int(label))
    assert any((h != start).any() for h, start in zip(device.fields, device.learning.start, strict=True))
    assert (device.predict_signs(x) == PackedNetwork(describe(with_signs(trained, device))).predict(x)).all()


def test_it_learns_what_it_is_told_until_it_is_sure() -> None:
    device = learner(model(), Learn(rates=(1.0, 1.0, 1.0)))
    x, labels = stream(device, 6)
    for _ in range(200):
        if not any([device.learn_one(q, int(label)) for q, label in zip(x[2:], labels[2:], strict=True)]):
            break
    assert (device.predict(x[2:]) == labels[2:]).all()
    before = [h.copy() for h in device.fields]
    assert not device.learn_one(x[2], int(labels[2]))
    assert all((h == old).all() for h, old in zip(device.fields, before, strict=True))


MAIN = """#include <stdio.h>
#include "net_learn.h"

int main(void)
{
  static net_state state;
  static net_input sample[NET_INPUTS];
  int label;
  net_state_init(&state);
  while (fread(sample, sizeof sample, 1, stdin) == 1 && (label = getchar()) != EOF) {
    putchar(net_predict_state(&state, sample));
    putchar(net_predict_signs(&state, sample));
    putchar(net_learn(&state, sample, label));
  }
  if (net_learn(&state, sample, -1) || net_learn(&state, sample, NET_CLASSES))
    return 1;
  return fwrite(&state, sizeof state, 1, stdout) != 1;
}
"""
SANITIZED = ("-fsanitize=undefined,address", "-fno-sanitize-recover")
EXTREMES = {
    "digits": (SIZES, INPUTS),
    "fewer bits": ((784, 9, 3), Inputs.pixels(np.float32(0.13), np.float32(0.31))),
    "tiny std": ((9, 5, 3), Inputs.pixels(np.float32(0.5), np.float32(0.004))),
    "many classes": ((12, 40, 100), Inputs.pixels(0.5, 0.5, 1)),
}
FLAGS = {"plain": (), "32 bits": ("-m32",), "C99": ("-DNET_PORTABLE",), "UB": SANITIZED}
CASES = [("digits", flags) for flags in FLAGS] + [(kind, "UB") for kind in EXTREMES if kind != "digits"]


@pytest.mark.parametrize(("kind", "flags"), CASES)
def test_the_c_source_is_bit_equal(kind: str, flags: str, tmp_path) -> None:
    # The largest steps there are, where overflows would be seen.
    trained = model(*EXTREMES[kind])
    if kind != "many classes":
        trained = steered(trained, stream(learner(trained), 50, seed=1)[0])
    learn = Learn(rates=(2.0, 2.0, 2.0) if flags == "UB" else (0.3, 0.2, 0.2))
    if flags == "32 bits":
        (tmp_path / "empty.c").write_text("#include <stdio.h>\n")
        if subprocess.run(["gcc", "-m32", "-c", "empty.c"], cwd=tmp_path, capture_output=True, check=False).returncode:
            pytest.skip("there are no 32-bit headers here (gcc-multilib)")
    to_c(trained, tmp_path / "net.c", learn=learn)
    device = learner(trained, learn)
    x, labels = stream(device, 250)
    wanted = bytearray()
    for q, label in zip(x, labels, strict=True):
        wanted += bytes([device.predict(q[None])[0], device.predict_signs(q[None])[0]])
        wanted.append(device.learn_one(q, int(label)))
    program = compiled(tmp_path, *FLAGS[flags], "net_learn.c", main=MAIN)
    given = np.column_stack([x, labels]).astype(np.uint8).tobytes()
    got = subprocess.run([program], input=given, stdout=subprocess.PIPE, check=True).stdout
    assert got == bytes(wanted) + b"".join(h.tobytes() for h in device.fields)


def test_no_float_no_heap_and_every_name_prefixed(tmp_path) -> None:
    files = to_c(model(), tmp_path / "x.c", prefix="digit", learn=Learn())
    assert [path.name for path in files] == ["x.h", "x.c", "x_learn.h", "x_learn.c"]
    code = re.sub(r"/\*.*?\*/|\"[^\"]*\"", "", "".join(path.read_text() for path in files[2:]), flags=re.DOTALL)
    assert not re.search(r"\b(float|double|malloc|calloc|free)\b", code)
    defined = re.findall(r"^(?:static |DIGIT_LEARN_INLINE )[^;{=]*?(\w+)[\[(]", code, re.MULTILINE)
    defined += re.findall(r"^(?:#define|int|void|\}) (\w+)", code, re.MULTILINE)
    assert len(defined) > 20
    assert [name for name in defined if not name.lower().startswith("digit_") and name != "__attribute__"] == []


def test_the_header_is_right_about_memory(tmp_path) -> None:
    trained = model((64, 51, 10))
    to_c(trained, tmp_path / "net.c", learn=Learn())
    header = (tmp_path / "net_learn.h").read_text()
    ram, stack = (
        int(re.search(rf"(\d+) bytes\s+(?:\* )?{after}", header)[1]) for after in ("that the caller", "of stack")
    )
    assert ram == 2 * 51 * (64 + 10)
    compiled(tmp_path, "-fstack-usage", "-O2", "net_learn.c", main=MAIN)
    usage = [line.split("\t") for path in tmp_path.glob("*net_learn.su") for line in path.read_text().splitlines()]
    frames = {name.rsplit(":", 1)[1]: int(size) for name, size, _ in usage}
    entries = [frames.pop(f"net_{name}") for name in ("learn", "predict_state", "predict_signs", "state_init")]
    # The other functions are called by these, and at most all of them at once.
    assert max(entries) + sum(frames.values()) <= stack <= 1.5 * entries[0]


def test_networks_that_cannot_learn_are_refused() -> None:
    cases = {
        "2 hidden layers": model((9, 5, 5, 3)),
        "output is Label": model((9, 5, 1)),
        "ternary weights": model(weights="ternary"),
        "layer 0 is sparse": model(density=0.5),
        "thresholds or biases": model(bias=True),
        "real numbers": model(inputs=Inputs.real(0.0, 1.0)),
        "of each feature": model(inputs=Inputs.pixels(np.full(20, 0.3), np.full(20, 0.2))),
        "101 classes": model((4, 3, 101)),
    }
    for words, trained in cases.items():
        with pytest.raises(ExportError, match=f"cannot learn on a device.*{words}"):
            learner(trained)
    with pytest.raises(ExportError, match="activation 0 is ReLU"):
        learner(model(activation="relu", weights="gaussian"))
    with pytest.raises(ExportError, match="all classes are new"):
        learner(model(), Learn(new_classes=("0", "1", "2", "3")))
    with pytest.raises(ValueError, match="rates must be"):
        Learn(rates=(0.3, 2.5, 0.1))
    with pytest.raises(ValueError, match="margin must be a number from 0 to 8"):
        Learn(margin=9)
    with pytest.raises(ValueError, match="must be different names"):
        Learn(new_classes=("a", "a"))


def test_samples_that_are_none_are_refused() -> None:
    device = learner(model())
    for label in (-1, 4):
        with pytest.raises(ValueError, match="label must be a class from 0 to 3"):
            device.learn_one(np.zeros(20), label)
    for wrong in (np.zeros(19), np.full(20, 0.5), np.full(20, 17), np.full(20, -1)):
        with pytest.raises(ValueError, match="samples must"):
            device.learn_one(wrong, 0)


def test_the_command(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--dataset", "digits", "--hidden", "11", "--epochs", "1", "--out", "run"]) == 0
    options = ["export", "run", "--out", "net.c", "--format", "c"]
    assert main([*options, "--learn", "--new-classes", "ten", "3"]) == 0
    assert "net_learn.c (" in capsys.readouterr().out
    assert "#define NET_CLASSES 11" in (tmp_path / "net.h").read_text()
    assert main([*options, "--force", "--new-classes", "ten"]) == 2
    assert main(["export", "run", "--out", "x.onnx", "--format", "onnx", "--learn"]) == 2
