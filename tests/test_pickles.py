"""No file that is read can run code: nothing is unpickled, evaluated or imported from it."""

from __future__ import annotations

import ast
import io
import os
import pickle
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import cavity
from cavity import data, packed
from cavity.data.binary import parse_cifar, parse_idx
from cavity.data.packing import iterate_archive, read_known
from cavity.data.registry import CIFAR_10, MNIST
from cavity.runs import Config, Run, load_checkpoint, open_run, read_samples
from cavity.runs.task import Task
from cavity.studies.experiments.experiment import Store

SOURCES = sorted(Path(cavity.__file__).parent.rglob("*.py"))
#: Modules that make objects of bytes, and calls that make code of text.
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml"}
CALLS = {"eval", "exec", "compile", "__import__"}


def forbidden(tree: ast.AST) -> list[str]:
    """What a file does that could run what somebody else has written."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            found.append(node.module or "")
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            allowed = any(word.arg == "allow_pickle" for word in node.keywords)
            if called in CALLS or called in ("torch.load", "np.load", "numpy.load") or allowed:
                found.append(called)
    return found


def test_the_search_finds_what_it_looks_for():
    for text in ("import pickle", "from joblib import load", "eval('1')", "torch.load(p)", "f(allow_pickle=True)"):
        assert forbidden(ast.parse(text)), text
    assert not forbidden(ast.parse("import json\nmodel.eval()\ntorch.compile(f)\nre.compile('a')"))


def test_nothing_in_the_library_unpickles():
    assert len(SOURCES) > 100
    assert {str(path): found for path in SOURCES if (found := forbidden(ast.parse(path.read_text())))} == {}


class Bomb:
    """Unpickling it leaves a trace."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def bombs(trace: Path) -> dict[str, bytes]:
    """The same in everything that people wrap pickles into."""
    plain = pickle.dumps(Bomb(trace), protocol=2)
    saved, array, archive, tar = io.BytesIO(), io.BytesIO(), io.BytesIO(), io.BytesIO()
    torch.save(Bomb(trace), saved)
    np.savez(array, x=np.array([Bomb(trace)], dtype=object), y=np.array([Bomb(trace)], dtype=object))
    with zipfile.ZipFile(archive, "w") as members:
        for name in ("x", "y", "x.npy", "y.npy", "data.pkl"):
            members.writestr(name, plain)
    with tarfile.open(fileobj=tar, mode="w:gz") as members:
        for name in ("data_batch_1", "test_batch"):
            info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            info.size = len(plain)
            members.addfile(info, io.BytesIO(plain))
    streams = {"torch": saved, "npz": array, "zip": archive, "tar": tar}
    return {"pickle": plain, **{name: stream.getvalue() for name, stream in streams.items()}}


TASK = Task(2, ("a", "b"), (1, 1, 2), torch.zeros(1), torch.ones(1))
#: Every way to hand a file to the library, and the name that the file must have.
READERS = [
    (load_checkpoint, "c.safetensors"),
    (packed.load, "net.cavity"),
    (Config.from_toml, "c.toml"),
    (lambda path: open_run(path.parent), "run/config.toml"),
    (lambda path: Run(path.parent, Config()).records, "run/metrics.jsonl"),
    (lambda path: Store(path.parents[1]).records("smoke"), "experiment/records/a.json"),
    *((data.load, f"own.{suffix}") for suffix in ("npz", "csv", "parquet")),
    *((lambda path: read_samples(path, TASK), f"new.{suffix}") for suffix in ("npz", "csv", "parquet", "png")),
    (lambda path: data.load(path.parents[1]), "images/a/1.png"),
    (lambda path: parse_idx(path.read_bytes(), path, 3), "train-images-idx3-ubyte"),
    (lambda path: parse_cifar(path.read_bytes(), path), "data_batch_1"),
    (lambda path: read_known(path, MNIST.files[1]), "train-labels-idx1-ubyte.gz"),
    (lambda path: list(iterate_archive(path, CIFAR_10)), "cifar-10-python.tar.gz"),
]


def test_no_reader_unpickles(tmp_path):
    trace = tmp_path / "trace"
    for content in bombs(trace).values():
        for read, name in READERS:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # Metrics count by whole lines.
            path.write_bytes(content + b"\n" if path.suffix == ".jsonl" else content)
            with pytest.raises((ValueError, ImportError)):
                read(path)
            path.unlink()
            assert not trace.exists(), name


def test_the_bombs_go_off(tmp_path):
    """Read by those who unpickle, each of them does leave its trace."""
    trace = tmp_path / "trace"
    made = bombs(trace)
    for unpickle in (
        lambda: pickle.loads(made["pickle"]),
        lambda: torch.load(io.BytesIO(made["torch"]), weights_only=False),
        lambda: np.load(io.BytesIO(made["npz"]), allow_pickle=True)["x"],
    ):
        unpickle()
        trace.rmdir()
