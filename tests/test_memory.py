"""Every reader of untrusted files against files made to cost it as much memory as possible (``SECURITY.md``).

Each takes at most ``FIXED`` bytes and ``TIMES`` what the file holds: its size, or what it unpacks to if that is more.
Of parquet, which pyarrow reads, it is ``PARQUET_TIMES``.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image

from cavity.packed.file import MAGIC, PREAMBLE
from cavity.runs import train
from memory import TABLE, peaks
from packed.helpers import resealed
from runs.helpers import tiny
from runs.test_fuzz import sealed, taken_apart

#: The promise of ``SECURITY.md``.
FIXED, TIMES, PARQUET_TIMES = 16 << 20, 32, 128
#: What a file of this test is about as large as, or unpacks to.
SIZE = 2_000_000

pytestmark = pytest.mark.skipif(not TABLE.exists(), reason="peaks of memory are read from Linux's /proc")


def arrays(save=np.savez, **values):
    """An .npz, and what it unpacks to."""

    def write(path: Path) -> int:
        save(path.with_suffix(".npz"), **values)
        path.with_suffix(".npz").rename(path)
        return sum(value.nbytes for value in values.values())

    return write


def text(content: str):
    def write(path: Path) -> int:
        return path.write_bytes(content.encode())

    return write


def wide_row(value: str, columns: int) -> str:
    return f"{value}," * columns


def numbered(count: int) -> str:
    return "".join(f"{i}," for i in range(count))


TWO = np.arange(SIZE // 2) % 2
TABLES = {
    "labels that widen each other.npz": arrays(
        np.savez_compressed,
        x_train=np.zeros((70_000, 1), np.uint8),
        y_train=np.array(["a", "b"] * 35_000),
        x_test=np.zeros((2, 1), np.uint8),
        y_test=np.array(["a" * 10_000, "b" * 10_000]),
    ),
    "a class for every sample.npz": arrays(
        x=np.zeros((SIZE // 5, 1), np.uint8), y=np.arange(SIZE // 5, dtype=np.int32)
    ),
    "a text for every sample.npz": arrays(
        x=np.zeros((SIZE // 5, 1), np.uint8), y=np.arange(SIZE // 5, dtype=np.int32).view("S4")
    ),
    "samples of one byte.npz": arrays(x=np.zeros((SIZE // 2, 1), np.uint8), y=TWO.astype(np.uint8)),
    "samples of one bit of a byte.npz": arrays(x=np.zeros((SIZE // 2, 1), bool), y=TWO.astype(bool)),
    "samples of one byte and texts.npz": arrays(x=np.zeros((SIZE // 2, 1), np.int8), y=TWO.astype("S1")),
    "few samples of many bytes.npz": arrays(x=np.zeros((4, SIZE // 4), np.uint8), y=TWO[:4]),
    "images.npz": arrays(x=np.zeros((SIZE // 1024, 32, 32), np.uint8), y=TWO[: SIZE // 1024]),
    "a class for every line.csv": text("a,label\n" + "".join(f"1,{i}\n" for i in range(SIZE // 9))),
    "60,000 classes.csv": text("a,label\n" + "".join(f"1,{i % 60_000}\n" for i in range(SIZE // 8))),
    "short lines.csv": text("a,label\n" + "1,a\n1,b\n" * (SIZE // 8)),
    "one long label.csv": text("a,label\n" + "1,a\n1,b\n" * (SIZE // 8) + "1," + "c" * 100_000 + "\n"),
    "nameless columns.csv": text("," * SIZE + "label\n"),
    "nameless columns in wide letters.csv": text("," * SIZE + "\U0001f600,label\n"),
    "numbered columns.csv": text(numbered(SIZE // 8) + "label\n"),
    "few lines of many columns.csv": text(
        "," * (SIZE // 9) + "label\n" + f"{wide_row('1', SIZE // 9)}a\n" * 2 + f"{wide_row('1', SIZE // 9)}b\n" * 2
    ),
    "one line of many columns.csv": text("," * (SIZE // 4) + "label\n" + wide_row("11", SIZE // 4) + "a\n"),
    "texts and gaps.csv": text("a,b,label\n" + "x,,a\n,1,b\n" * (SIZE // 10)),
    "many columns with gaps.csv": text(
        "," * (SIZE // 9) + "label\n" + f"{wide_row('', SIZE // 9)}a\n{wide_row('1', SIZE // 9)}b\n" * 2
    ),
    "many columns of texts.csv": text(
        "," * (SIZE // 9) + "label\n" + f"{wide_row('x', SIZE // 9)}a\n{wide_row('x', SIZE // 9)}b\n" * 2
    ),
    "empty lines.csv": text("a,label\n" + "1,a\n2,b\n" * 5 + "\n" * SIZE),
}
SAMPLES = {
    "one number a line.csv": ("samples-1", text("a\n" + "1\n" * (SIZE // 2))),
    "two numbers a line.csv": ("samples-2", text("a,b\n" + "1,1\n" * (SIZE // 4))),
    "labels that nobody asks for.csv": (
        "samples-2",
        text("a,b,y\n" + "".join(f"1,1,{i}\n" for i in range(SIZE // 11))),
    ),
    "one byte a sample.npz": ("samples-1", arrays(x=np.zeros((SIZE, 1), np.uint8))),
    "sixteen pixels a sample.npz": ("samples-image", arrays(x=np.zeros((SIZE // 16, 4, 4), np.uint8))),
    "one sample of a million columns.csv": ("samples-wide", text("," * 999_999 + "\n" + "1," * 999_999 + "1\n")),
}


def layer(outputs: int, inputs: int, mask: bool = False, bias: bool = False) -> dict:
    return {"shape": [outputs, inputs], "mask": mask, "bias": bias}


def network(
    groups: list, layers: list, body: bytes, classes: tuple = (), odd: str = "", version: int = 1, statistics: int = 0
):
    """A packed network with a checksum that fits, or with an ``odd`` header; of fixed point with ``statistics``."""
    header = {
        "input": {"kind": "fixed" if statistics else "pixels", "groups": groups, "white": 255},
        "statistics": statistics,
        "offset_bytes": 4,
        "shift": 0,
        "layers": layers,
        "output": "argmax",
        "classes": list(classes),
    }
    head = (odd or json.dumps(header, separators=(",", ":"))).encode()

    def write(path: Path) -> int:
        return path.write_bytes(resealed(PREAMBLE.pack(MAGIC, version, len(head)) + head + body))

    return write


ROWS = 1 << 18
PACKED = {
    "8 groups of one": network(
        [[1, 1]] * 8, [layer(ROWS, 8, True, True)], bytes(5 * ROWS) + b"\xff" * ROWS + bytes(ROWS)
    ),
    "thresholds": network(
        [[1, 1]] * 8, [layer(ROWS, 8, bias=True) | {"shift": 16}], bytes(5 * ROWS) + bytes(4 * ROWS), version=2
    ),
    "2,048 groups of one": network(
        [[1, 1]] * 2048, [layer(4096, 2048, True)], bytes(4 * 4096) + bytes(1 << 20) + b"\xff" * (1 << 20)
    ),
    "16 groups of one": network([[1, 1]] * 16, [layer(ROWS, 16)], bytes(6 * ROWS)),
    "31 groups of 65": network([[65, 1]] * 31, [layer(4096, 65 * 31)], bytes(4 * 4096) + bytes(4096 * 252)),
    "300,000 groups": network([[1, 1]] * 300_000, [layer(1, 300_000)], bytes(4) + bytes(37_500)),
    "58,000 groups": network([[1, 1]] * 58_000, [layer(40, 58_000)], bytes(160) + bytes(40 * 7250)),
    "40,000 layers": network([[1, 1]], [layer(1, 1)] * 40_000, bytes(4) + bytes(40_000)),
    "a wide layer above": network(
        [[1, 1]], [layer(8, 1), layer(1 << 20, 8, True)], bytes(40) + bytes(1 << 20) + b"\xff" * (1 << 20)
    ),
    "8-bit weights": network(
        [[1000, 1]], [layer(2000, 1000, True) | {"shift": 0, "int8": True}], bytes(8000) + b"\x81" * SIZE, version=3
    ),
    "8-bit weights above": network(
        [[1, 1]],
        [layer(8, 1) | {"shift": 0}, layer(ROWS, 8, True) | {"shift": 0, "int8": True}],
        bytes(40) + b"\x7f" * (8 * ROWS),
        version=3,
    ),
    "numbers in fixed point": network(
        [[SIZE // 12, 1]],
        [layer(1, SIZE // 12) | {"shift": 0}],
        np.ones(3 * (SIZE // 12), "<i4").tobytes() + bytes(4) + bytes(-(-(SIZE // 12) // 8)),
        version=3,
        statistics=SIZE // 12,
    ),
    "many classes": network([[1, 1]], [layer(ROWS, 1)], bytes(5 * ROWS), tuple(f"{i % 90 + 10}" for i in range(ROWS))),
    "tables in the header": network([], [], b"", odd="[" + "{}," * (SIZE // 3) + "{}]"),
    "lists in the header": network([], [], b"", odd="[" + "[]," * (SIZE // 3) + "{}]"),
    "texts in the header": network([], [], b"", odd="[" + '"Ā",' * (SIZE // 5) + "0]"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small run to be altered."""
    return train(tiny(epochs=1), tmp_path_factory.mktemp("memory") / "run")


def with_text(content: bytes, name: str, value: str) -> bytes:
    """A checkpoint whose header has another text, and a checksum that fits."""
    header, body = taken_apart(content)
    about = header["__metadata__"]
    about |= {key: json.dumps(about[key]) for key in ("config", "trainer", "task")} | {name: value}
    return sealed(json.dumps(header, separators=(",", ":")).encode(), body)


def with_tensors(content: bytes, change, **texts) -> bytes:
    """A checkpoint of other tensors, and a checksum that fits."""
    tensors = change(safetensors.torch.load(content))
    about = taken_apart(content)[0]["__metadata__"] | texts
    about |= {key: json.dumps(about[key]) for key in ("config", "trainer", "task")}
    written = safetensors.torch.save(tensors, about)
    size = int.from_bytes(written[:8], "little")
    return sealed(written[8 : 8 + size], written[8 + size :])


def weights(dtype: torch.dtype, inputs: int, hidden: int):
    """Only the fields of a larger network, in any type."""

    def change(tensors: dict) -> dict:
        others = {name: tensor for name, tensor in tensors.items() if not name.startswith("network.")}
        shapes = {"network.layers.0.field": (hidden, inputs), "network.layers.1.field": (1, hidden)}
        return others | {name: torch.zeros(shape).to(dtype) for name, shape in shapes.items()}

    return change


def run_folders(run):
    """Folders of a run with something altered, and the reader each is for."""
    file = (run.path / "checkpoint.safetensors").read_bytes()
    many = "[" + "{}," * (SIZE // 3) + "{}]"
    record = json.loads((run.path / "metrics.jsonl").read_text())
    task = {"inputs": 1000, "classes": ["a", "b"], "image_shape": None}
    for name in ("config", "task", "trainer"):
        yield "network", f"tables as {name}", {"checkpoint.safetensors": with_text(file, name, many)}
        words = '["' + '","'.join(f"{i % 9000 + 1000}" for i in range(SIZE // 7)) + '"]'
        yield "network", f"texts as {name}", {"checkpoint.safetensors": with_text(file, name, words)}
    for dtype in (torch.uint8, torch.float8_e5m2, torch.float16, torch.float32):
        hidden = SIZE // 1000 // dtype.itemsize
        config = run.config.replace(hidden=(hidden,), density=0.5).to_toml().encode()
        content = with_tensors(file, weights(dtype, 1000, hidden), task=task)
        yield "network", f"weights of {dtype}", {"config.toml": config, "checkpoint.safetensors": content}
    ones = f"hidden = [{','.join('1' * 30_000)}]"
    config = re.sub(r"hidden = \[.*?\]", ones, run.config.to_toml(), count=1, flags=re.DOTALL).encode()
    content = with_tensors(file, weights(torch.float32, 1, 30_000), task=task | {"inputs": 1})
    yield "network", "30,000 layers", {"config.toml": config, "checkpoint.safetensors": content}
    empty = {f"network.{i}": torch.zeros(0) for i in range(SIZE // 75)}
    yield "network", "empty tensors", {"checkpoint.safetensors": with_tensors(file, lambda tensors: tensors | empty)}
    small = {**dict.fromkeys(record), "epoch": 1, "seconds": 1, "polarization": [], "overlap": []}
    lines = {
        "records": json.dumps(small, separators=(",", ":")) + "\n",
        "tables": many + "\n",
        "numbers": json.dumps({**small, "overlap": [0.5] * (SIZE // 4)}, separators=(",", ":")) + "\n",
        "empty lines": "\n" * SIZE,
    }
    for name, line in lines.items():
        content = (line * max(1, SIZE // len(line))).encode()
        yield "records", f"{name} as metrics", {"metrics.jsonl": content}


def parquet_files():
    """Where pyarrow is installed: pages that unpack to much, and labels without end."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return

    def writer(unpacked: int, options: dict | None = None, **columns):
        def write(path: Path) -> int:
            pq.write_table(pa.table(columns), path, **(options or {}))
            return max(unpacked, path.stat().st_size)

        return write

    rows = SIZE // 16
    long = pa.DictionaryArray.from_arrays(pa.array(TWO[:2000].astype(np.int32)), ["a" * (100 << 20), "b"])
    similar = [f"{'a' * 20_000}{number}" for number in range(20_000)]
    plain = {"use_dictionary": False, "column_encoding": {"label": "DELTA_BYTE_ARRAY", "a": "PLAIN"}}
    yield "zeros.parquet", writer(16 * rows, a=np.zeros(rows), label=TWO[:rows])
    yield "bytes.parquet", writer(16 * rows, a=np.zeros(rows, np.uint8), label=TWO[:rows].astype(bool))
    yield "a class for every row.parquet", writer(16 * rows, a=np.zeros(rows), label=np.arange(rows))
    yield "a text for every row.parquet", writer(16 * rows, a=np.zeros(rows), label=list(map(str, range(rows))))
    yield "a text of 100 MiB.parquet", writer(0, {"compression": "zstd"}, a=np.zeros(2000), label=long)
    yield (
        "texts that begin alike.parquet",
        writer(0, plain | {"compression": "zstd"}, a=np.zeros(20_000), label=similar),
    )
    yield "many columns.parquet", writer(0, label=TWO[:9], **{f"c{i}": np.zeros(9) for i in range(2000)})
    lean = {"write_statistics": False, "store_schema": False, "use_dictionary": False, "compression": "none"}
    yield "lean columns.parquet", writer(0, lean, label=TWO[:9], **{f"{i:x}": np.zeros(9, "f") for i in range(2000)})
    yield "many groups.parquet", writer(0, {"row_group_size": 1}, a=np.zeros(5000), label=TWO[:5000])


def folders():
    """Tiny images, and what may pass for the record of an experiment."""

    def images(path: Path) -> int:
        for name in "ab":
            (path / name).mkdir(parents=True)
        first = path / "a" / "0.png"
        Image.new("L", (1, 1)).save(first)
        for number in range(1, 6000):
            (path / "ab"[number % 2] / f"{number}.png").write_bytes(first.read_bytes())
        return 6000 * first.stat().st_size

    def records(content: str) -> Callable[[Path], int]:
        def write(path: Path) -> int:
            (path / "records").mkdir(parents=True)
            return (path / "records" / "a.json").write_bytes(content.encode())

        return write

    yield "data", "tiny images", images
    yield "experiment", "tables as a record", records("[" + "{}," * (SIZE // 3) + "{}]")
    yield "experiment", "numbers as a record", records("[" + "0," * (SIZE // 2) + "0]")


@pytest.mark.slow
def test_no_file_takes_more_than_is_promised(run, tmp_path):
    cases, held = [], []
    for reader, name, write in folders():
        cases.append((reader, tmp_path / name))
        held.append(write(tmp_path / name))
    for name, write in [*TABLES.items(), *parquet_files()]:
        cases.append(("data", tmp_path / name))
        held.append(write(tmp_path / name))
    for name, (reader, write) in SAMPLES.items():
        cases.append((reader, tmp_path / name))
        held.append(write(tmp_path / name))
    for name, write in PACKED.items():
        cases.append(("packed", tmp_path / name))
        held.append(write(tmp_path / name))
    for reader, name, files in run_folders(run):
        folder = Path(shutil.copytree(run.path, tmp_path / name))
        held.append(sum((folder / file).write_bytes(content) for file, content in files.items()))
        cases.append((reader, folder))
    worse = []
    for (reader, path), size, peak in zip(cases, held, peaks(cases), strict=True):
        line = (
            f"{reader}: {path.name}: {peak.grown:,} bytes for {size:,}, {peak.grown / size:.1f} times; {peak.outcome}"
        )
        print(line)
        times = PARQUET_TIMES if path.suffix == ".parquet" else TIMES
        if peak.grown > FIXED + times * size or peak.outcome.startswith("undocumented"):
            worse.append(line)
    assert not worse, "\n".join(worse)
