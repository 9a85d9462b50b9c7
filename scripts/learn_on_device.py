"""A network of 64-51-8 units that knows the digits 0 to 7 learns 8 and 9 on an emulated Cortex-M4: the figures and the
picture of docs/how-to/learn-on-device.md.

    python scripts/learn_on_device.py --json docs/data/learning.json --plot docs/images/learning.png

The stream has every 8 and 9 of the training set once and nothing else. QEMU runs the exported C and must end in the
state of ``cavity.packed.Learner``, bit for bit; the accuracy along the stream is the learner's, on the test set. Ten
networks have a split of all digits of their own, five share the split of ``data.load("digits")``.

The margin, the rates, how many directions steps leave alone and where fields start were chosen on held-out training
images of 24 seeds (``--validate`` gives the figures there), among about 200 settings. Five rules or settings were run
on the fixed test set, this one last. Of the others, two learnt from mistakes alone and along all directions; the rest
had larger steps and fewer directions.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import cavity
from cavity import data
from cavity.export import Inputs, Learn, Trained, learner, steered, to_c
from cavity.packed import Learner
from cavity.util.files import write_whole

DEVICE = Path(__file__).parent / "device"
#: Debian's packages gcc-arm-none-eabi and qemu-system-arm; the C library's headers are in libnewlib-arm-none-eabi.
COMPILER, EMULATOR = "arm-none-eabi-gcc", "qemu-system-arm"
WHITE, OLD, HIDDEN, EPOCHS = 16, 8, 51, 50
LEARN = Learn(new_classes=("8", "9"))
#: Seeds of the networks with a split of their own, of those that share one, and of those that settings are chosen by.
OWN, FIXED, CHOSEN_BY = range(100, 110), range(5), range(24)
#: QEMU lets an instruction take 2^6 ns; the SysTick of the board has 25 MHz.
SHIFT, TICK = 6, 40
#: Samples between two points of the picture.
EVERY = 10
#: Test images: those of ``data.load``, a fifth of each class that depends on the seed, or so many training images.
Split = Literal["fixed", "own"] | int


class Task(NamedTuple):
    """Pixels and classes: what is known, the stream of new classes, and what accuracies are measured on."""

    known: tuple[np.ndarray, np.ndarray]
    stream: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]


class Answers(NamedTuple):
    """What the device sends: classes before learning, whether it learnt, instructions of both, and its last state."""

    classes: np.ndarray
    learnt: np.ndarray
    predict: np.ndarray
    learn: np.ndarray
    fields: bytes


def task(seed: int, split: Split) -> Task:
    """The digits in an order that depends on the seed, split into what is known, the stream and the test."""
    digits = data.load("digits")

    def pixels(x: torch.Tensor) -> np.ndarray:
        return np.asarray((x * digits.std + digits.mean).mul(WHITE).round().to(torch.uint8).numpy())

    x, y = pixels(digits.x_train), digits.y_train.numpy()
    test = pixels(digits.x_test), digits.y_test.numpy()
    if split == "own":
        x, y = np.concatenate([x, test[0]]), np.concatenate([y, test[1]])
    order = np.random.default_rng(seed).permutation(len(x))
    x, y = x[order], y[order]
    if split != "fixed":
        held = fifths(y) if split == "own" else np.arange(len(y)) < split
        x, y, test = x[~held], y[~held], (x[held], y[held])
    return Task((x[y < OLD], y[y < OLD]), (x[y >= OLD], y[y >= OLD]), test)


def fifths(y: np.ndarray) -> np.ndarray:
    """Whether a sample is among the first fifth of its class, (samples,)."""
    first = np.zeros(len(y), bool)
    for members in (np.flatnonzero(y == label) for label in np.unique(y)):
        first[members[: round(len(members) / 5)]] = True
    return first


def trained(samples: tuple[np.ndarray, np.ndarray], seed: int) -> Trained:
    """The network of the classes of these samples, which has never seen anything of others."""
    brightness, classes = torch.from_numpy(samples[0]).float() / WHITE, int(samples[1].max()) + 1
    mean, std = brightness.mean(), brightness.std()
    net = cavity.mlp(samples[0].shape[1], (HIDDEN,), classes, seed=seed)
    trainer = cavity.Trainer(net, "mf", seed=seed)
    trainer.fit(((brightness - mean) / std, torch.from_numpy(samples[1])), epochs=EPOCHS, batch_size=64)
    model = Trained(net, Inputs.pixels(mean.numpy(), std.numpy(), WHITE), tuple(map(str, range(classes))))
    return steered(model, samples[0])


def jointly(given: Task, seed: int) -> list[tuple[float, float]]:
    """Accuracies of a network of the same size that is trained on all classes at once: its posterior's, its signs'."""
    both = (np.concatenate(pair) for pair in zip(given.known, given.stream, strict=True))
    order = np.random.default_rng(seed).permutation(len(given.known[1]) + len(given.stream[1]))
    x, y = (values[order] for values in both)
    model = trained((x, y), seed)
    brightness = torch.from_numpy(given.test[0]).float() / WHITE
    standard = (brightness - float(model.inputs.mean[0])) / float(model.inputs.std[0])
    return [percent(model.net.predict(standard, method).numpy(), given.test[1]) for method in ("bayes", "point")]


def percent(predicted: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Percent right of the old and of the new classes."""
    right = predicted == y
    return float(100 * right[y < OLD].mean()), float(100 * right[y >= OLD].mean())


def accuracies(device: Learner, test: tuple[np.ndarray, np.ndarray], signs: bool = False) -> tuple[float, float]:
    """Those of the device, by its means or by its signs."""
    return percent(device.predict_signs(test[0]) if signs else device.predict(test[0]), test[1])


def missing() -> str | None:
    """Which tool is not installed."""
    absent = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]
    return f"there is no {' and no '.join(absent)} here" if absent else None


def on_device(model: Trained, stream: tuple[np.ndarray, np.ndarray], folder: Path, optimize: str = "-Os") -> Answers:
    """The stream on a Cortex-M4 in QEMU; ``folder`` keeps what was built."""
    to_c(model, folder / "net.c", learn=LEARN, force=True)
    x, y = stream
    (folder / "stream.bin").write_bytes(np.column_stack([x, y]).astype(np.uint8).tobytes())
    flags = ["-mcpu=cortex-m4", "-mthumb", optimize, "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-fstack-usage"]
    sections = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]
    link = ["-nostartfiles", "-nostdlib", "-T", str(DEVICE / "board.ld"), "-I", ".", "-o", "firmware.elf"]
    sources = [str(DEVICE / "board.c"), "net.c", "net_learn.c"]
    subprocess.run([COMPILER, *flags, *sections, *link, *sources, "-lc", "-lgcc"], cwd=folder, check=True)
    machine = ["-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "none", "-icount", f"shift={SHIFT}"]
    host = ["-semihosting-config", "enable=on,target=native", "-kernel", "firmware.elf"]
    subprocess.run([EMULATOR, *machine, *host], cwd=folder, check=True, timeout=600)
    answers = (folder / "answers.bin").read_bytes()
    table = np.frombuffer(answers[: 16 * len(y)], "<u4").reshape(-1, 4)
    instructions = table[:, 2:] * (TICK / (1 << SHIFT))
    return Answers(table[:, 0], table[:, 1], instructions[:, 0], instructions[:, 1], answers[16 * len(y) :])


def sizes(folder: Path) -> dict[str, int]:
    """Bytes that learning needs: flash of its code and constants, and stack of the deepest chain of calls, at most."""
    flags = ["-mcpu=cortex-m4", "-mthumb", "-Os", "-fstack-usage"]
    subprocess.run([COMPILER, *flags, "-c", "net_learn.c", "-o", "learn.o"], cwd=folder, check=True)
    listed = subprocess.run(["arm-none-eabi-size", "learn.o"], cwd=folder, check=True, capture_output=True, text=True)
    text, held, _ = map(int, listed.stdout.splitlines()[1].split()[:3])
    usage = [line.split("\t") for line in (folder / "learn.su").read_text().splitlines()]
    frames = {name.rsplit(":", 1)[1]: int(size) for name, size, _ in usage}
    entries = [frames.pop(f"net_{name}") for name in ("learn", "predict_state", "predict_signs", "state_init")]
    # The other functions are called by these, and at most all of them at once.
    return {"flash": text + held, "stack": max(entries) + sum(frames.values())}


def experiment(seed: int, split: Split = "fixed", *, passes: int = 1) -> dict[str, Any]:
    """Accuracies before, along and after the stream, which comes ``passes`` times, and what a step takes on the
    device; held-out images are for choosing settings, without a device."""
    given = task(seed, split)
    joint = jointly(given, seed)
    given = given._replace(stream=(np.tile(given.stream[0], (passes, 1)), np.tile(given.stream[1], passes)))
    model = trained(given.known, seed)
    device = learner(model, LEARN)
    curve, seen = [accuracies(device, given.test)], [0]
    before, guesses, learnt = accuracies(device, given.test, signs=True), [], []
    for number, (x, y) in enumerate(zip(*given.stream, strict=True), start=1):
        guesses.append(device.predict(x[None])[0])
        learnt.append(device.learn_one(x, int(y)))
        if number % EVERY == 0 or number == len(given.stream[1]):
            curve.append(accuracies(device, given.test))
            seen.append(number)
    found: dict[str, Any] = {"seed": seed, "seen": seen, "curve": curve, "steps": sum(learnt)}
    found |= {"signs": [before, accuracies(device, given.test, signs=True)], "joint": joint}
    if split in ("fixed", "own"):
        with tempfile.TemporaryDirectory() as name:
            answers = on_device(model, given.stream, Path(name))
            found |= sizes(Path(name))
        assert (answers.classes == guesses).all(), "the device predicts other classes than the reference"
        assert (answers.learnt == learnt).all(), "the device learns from other samples than the reference"
        assert answers.fields == b"".join(h.tobytes() for h in device.fields), "the device ends in another state"
        found["ram"] = sum(h.nbytes for h in device.fields)
        known, new = answers.learn[answers.learnt == 0], answers.learn[answers.learnt == 1]
        means = {"predict": answers.predict.mean(), "right": known.mean(), "wrong": new.mean(), "most": new.max()}
        found["instructions"] = {name: round(float(value)) for name, value in means.items()}
    return found


def summary(records: list[dict[str, Any]]) -> str:
    """Markdown: mean and range over the seeds."""
    first, last = (np.array([record["curve"][place] for record in records]) for place in (0, -1))
    signs, joint = (np.array([record[name] for record in records]) for name in ("signs", "joint"))

    def cell(values: np.ndarray) -> str:
        return f"{values.mean():.1f} ({values.min():.1f} to {values.max():.1f})"

    lines = ["| test accuracy, % | 0 to 7 | 8 and 9 |", "|---|---|---|"]
    rows = {"before": first, "after": last, "before, signs alone": signs[:, 0], "after, signs alone": signs[:, 1]}
    rows |= {"all ten classes at once": joint[:, 0], "all ten at once, signs alone": joint[:, 1]}
    lines += [f"| {name} | {cell(values[:, 0])} | {cell(values[:, 1])} |" for name, values in rows.items()]
    return "\n".join(lines)


def plot(records: list[dict[str, Any]]) -> Figure:
    """Accuracy along the stream: every seed thinly, their mean boldly."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    curves = np.array([record["curve"] for record in records])
    for part, (name, colour) in enumerate(
        (("0 to 7, never shown again", "#2b6cb0"), ("8 and 9, the stream", "#c05621"))
    ):
        axes.plot(records[0]["seen"], curves[:, :, part].T, color=colour, alpha=0.25, linewidth=1)
        axes.plot(records[0]["seen"], curves[:, :, part].mean(axis=0), color=colour, linewidth=2.2, label=name)
    axes.set(xlabel="samples of the stream", ylabel="test accuracy, %", ylim=(0, 102), xlim=(0, records[0]["seen"][-1]))
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="lower right")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def forgotten(records: list[dict[str, Any]]) -> list[float]:
    """Points of accuracy on the old classes that each network lost."""
    return [record["curve"][0][0] - record["curve"][-1][0] for record in records]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--validate", type=int, metavar="N", help="on N held-out training images, without a device")
    parser.add_argument("--passes", type=int, default=1, help="how often the stream comes")
    parser.add_argument("--json", type=Path, help="where to write the records")
    parser.add_argument("--plot", type=Path, help="where to draw the accuracy along the stream")
    args = parser.parse_args()
    if args.validate is None and missing():
        parser.error(f"{missing()}: install gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm")
    plan: dict[Split, range] = {"own": OWN, "fixed": FIXED} if args.validate is None else {args.validate: CHOSEN_BY}
    found = {str(split): [experiment(seed, split, passes=args.passes) for seed in plan[split]] for split in plan}
    for split, records in found.items():
        print(f"split: {split}\n{summary(records)}")
        print("forgotten", np.round(forgotten(records), 1).tolist(), "mean", round(np.mean(forgotten(records)), 2))
        for name in ("ram", "stack", "flash", "instructions", "steps"):
            print(name, [record.get(name) for record in records])
    if args.json:
        write_whole(args.json, (json.dumps(found, indent=1) + "\n").encode())
    if args.plot:
        plot(next(iter(found.values()))).savefig(args.plot, dpi=150)


if __name__ == "__main__":
    main()
