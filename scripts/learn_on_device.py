"""A network of 64-51-8 units that knows the digits 0 to 7 learns 8 and 9 on an emulated Cortex-M4: the figures and the
picture of docs/how-to/learn-on-device.md.

    python scripts/learn_on_device.py --json docs/data/learning.json --plot docs/images/learning.png

The stream has every 8 and 9 of the training set once and nothing else. QEMU runs the exported C and must end in the
state of ``cavity.packed.Learner``, bit for bit; the accuracy along the stream is the learner's, on the test set. The
margin, the rates, how many directions steps leave alone and where fields start were chosen on held-out training images
of 12 seeds (``--validate`` gives the figures there), among about 200 settings. Three other rules were run on the test
set before; two learnt from mistakes alone and along all directions, one had other rates and no directions of units.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

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
WHITE, OLD, HIDDEN, EPOCHS, HELD_OUT = 16, 8, 51, 50, 300
LEARN = Learn(new_classes=("8", "9"))
#: QEMU lets an instruction take 2^6 ns; the SysTick of the board has 25 MHz.
SHIFT, TICK = 6, 40
#: Samples between two points of the picture.
EVERY = 10


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


def task(seed: int, validate: bool) -> Task:
    """The digits in an order that depends on the seed; to validate, training images are held out for the test."""
    digits = data.load("digits")

    def pixels(x: torch.Tensor) -> np.ndarray:
        return np.asarray((x * digits.std + digits.mean).mul(WHITE).round().to(torch.uint8).numpy())

    x, y = pixels(digits.x_train), digits.y_train.numpy()
    order = np.random.default_rng(seed).permutation(len(x))
    x, y, test = x[order], y[order], (pixels(digits.x_test), digits.y_test.numpy())
    if validate:
        x, y, test = x[HELD_OUT:], y[HELD_OUT:], (x[:HELD_OUT], y[:HELD_OUT])
    return Task((x[y < OLD], y[y < OLD]), (x[y >= OLD], y[y >= OLD]), test)


def trained(known: tuple[np.ndarray, np.ndarray], seed: int) -> Trained:
    """The network of the old classes, which has never seen anything of the new ones."""
    brightness = torch.from_numpy(known[0]).float() / WHITE
    mean, std = brightness.mean(), brightness.std()
    net = cavity.mlp(known[0].shape[1], (HIDDEN,), OLD, seed=seed)
    trainer = cavity.Trainer(net, "mf", seed=seed)
    trainer.fit(((brightness - mean) / std, torch.from_numpy(known[1])), epochs=EPOCHS, batch_size=64)
    model = Trained(net, Inputs.pixels(mean.numpy(), std.numpy(), WHITE), tuple(map(str, range(OLD))))
    return steered(model, known[0])


def accuracies(device: Learner, test: tuple[np.ndarray, np.ndarray], signs: bool = False) -> tuple[float, float]:
    """Percent right of the old and of the new classes."""
    x, y = test
    right = (device.predict_signs(x) if signs else device.predict(x)) == y
    return float(100 * right[y < OLD].mean()), float(100 * right[y >= OLD].mean())


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
    """Bytes of flash of what learning needs, code and constants."""
    object_file = folder / "learn.o"
    subprocess.run(
        [COMPILER, "-mcpu=cortex-m4", "-mthumb", "-Os", "-c", "net_learn.c", "-o", object_file.name],
        cwd=folder,
        check=True,
    )
    listed = subprocess.run(
        ["arm-none-eabi-size", object_file.name], cwd=folder, check=True, capture_output=True, text=True
    )
    text, held, _ = map(int, listed.stdout.splitlines()[1].split()[:3])
    return {"flash": text + held}


def experiment(seed: int, *, validate: bool = False, emulate: bool = True, passes: int = 1) -> dict[str, Any]:
    """Accuracies before, along and after the stream, which comes ``passes`` times, and what a step takes on the
    device."""
    given = task(seed, validate)
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
    found["signs"] = [before, accuracies(device, given.test, signs=True)]
    if emulate:
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
    signs = np.array([record["signs"] for record in records])

    def cell(values: np.ndarray) -> str:
        return f"{values.mean():.1f} ({values.min():.1f} to {values.max():.1f})"

    lines = ["| test accuracy, % | 0 to 7 | 8 and 9 |", "|---|---|---|"]
    rows = {"before": first, "after": last, "before, signs alone": signs[:, 0], "after, signs alone": signs[:, 1]}
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
    parser.add_argument("--seeds", type=int, default=5, help="how many networks")
    parser.add_argument("--validate", action="store_true", help="on held-out training images, without a device")
    parser.add_argument("--passes", type=int, default=1, help="how often the stream comes")
    parser.add_argument("--json", type=Path, help="where to write the records")
    parser.add_argument("--plot", type=Path, help="where to draw the accuracy along the stream")
    args = parser.parse_args()
    if not args.validate and missing():
        parser.error(f"{missing()}: install gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm")
    how = {"validate": args.validate, "emulate": not args.validate, "passes": args.passes}
    records = [experiment(seed, **how) for seed in range(args.seeds)]
    print(summary(records))
    print("forgotten", np.round(forgotten(records), 1).tolist())
    for name in ("ram", "flash", "instructions", "steps"):
        print(name, [record.get(name) for record in records])
    if args.json:
        write_whole(args.json, (json.dumps(records, indent=1) + "\n").encode())
    if args.plot:
        plot(records).savefig(args.plot, dpi=150)


if __name__ == "__main__":
    main()
