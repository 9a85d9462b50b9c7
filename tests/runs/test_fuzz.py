"""Run folders and samples from strangers: a result or the errors that are documented, soon and in little memory."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import shutil

import numpy as np
import pytest
import tomli_w
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import cavity
import fuzzing
from cavity.core.architecture import LARGEST
from cavity.data import DataError
from cavity.export import Trained, describe
from cavity.report.collect import collect_all
from cavity.report.page import page
from cavity.runs import CheckpointError, load_checkpoint, open_run, read_samples, resume, train
from cavity.runs.checkpoint import BLANK, LENGTH_BYTES, _entry
from cavity.runs.task import Task
from fuzzing import altered, as_json, bounded, damaged
from runs.helpers import tiny


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A small run. Its report is made once, so that libraries imported for it count for no example."""
    run = train(tiny(epochs=2, density=0.5), tmp_path_factory.mktemp("fuzz") / "whole")
    page(collect_all([run]))
    return run


@pytest.fixture(scope="module")
def spoilt(whole):
    """A function that writes a copy of the run in which one file has another content."""
    copy = whole.path.with_name("spoilt")

    def write(name: str, content: bytes):
        shutil.copytree(whole.path, copy, dirs_exist_ok=True)
        (copy / name).write_bytes(content)
        return copy

    return write


def sealed(head: bytes, body: bytes) -> bytes:
    """A checkpoint with a checksum that fits, if the header has a place for it."""
    blank = len(head).to_bytes(LENGTH_BYTES, "little") + head + body
    return blank.replace(_entry(BLANK), _entry(hashlib.sha256(blank).hexdigest()), 1)


def taken_apart(content: bytes) -> tuple[dict, bytes]:
    """Header, with texts of JSON in its metadata as values and without a checksum, and body."""
    size = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
    header = json.loads(content[LENGTH_BYTES:size])
    about = header["__metadata__"]
    for name in ("config", "trainer", "task"):
        about[name] = json.loads(about[name])
    about["sha256"] = BLANK
    return header, content[size:]


def put_together(header: dict, body: bytes) -> bytes:
    about = header.get("__metadata__")
    if isinstance(about, dict):
        for name in {"config", "trainer", "task"} & about.keys():
            about[name] = as_json(about[name])
    return sealed(as_json(header).encode(), body)


@st.composite
def checkpoints(draw, content: bytes) -> bytes:
    """Damaged in the open, damaged with a checksum that fits, or of odd values with a checksum that fits."""
    header, body = taken_apart(content)
    kind = draw(st.sampled_from(["open", "header", "body", "values", "values", "values"]))
    if kind == "open":
        return draw(damaged(content))
    if kind == "values":
        return put_together(draw(altered(header)), body)
    head, length = content[LENGTH_BYTES : -len(body)], json.loads(content[LENGTH_BYTES : -len(body)])
    head = head.replace(_entry(length["__metadata__"]["sha256"]), _entry(BLANK))
    return sealed(draw(damaged(head)), body) if kind == "header" else sealed(head, draw(damaged(body)))


def test_the_fuzz_has_a_checksum_that_fits(whole, tmp_path):
    content = (whole.path / "checkpoint.safetensors").read_bytes()
    (tmp_path / "c").write_bytes(put_together(*taken_apart(content)))
    again, before = load_checkpoint(tmp_path / "c"), load_checkpoint(whole.path / "checkpoint.safetensors")
    assert again.trainer["history"] == before.trainer["history"]


def restored(path):
    """Read a checkpoint, and put it into a network and a trainer like those of the run."""
    net = cavity.mlp(21, (11,), 1, density=0.5)
    load_checkpoint(path).restore(net, cavity.Trainer(net, "mf"))
    return net.predict(torch.zeros(2, 21))


@bounded()
@given(st.data())
def test_checkpoints(whole, choice):
    content = (whole.path / "checkpoint.safetensors").read_bytes()
    path = whole.path.with_name("c.safetensors")
    path.write_bytes(choice.draw(checkpoints(content)))
    fuzzing.attempt(restored, path, errors=(CheckpointError,))


def used(path):
    """All that is done with a run without training it."""
    run = open_run(path)
    assert all(isinstance(record.epoch, int) for record in run.records)
    run.load_network().predict(torch.zeros(2, run.load_checkpoint().task.inputs))
    return describe(Trained.of(run))


@bounded()
@given(st.data())
def test_run_folders_with_a_checkpoint_of_a_stranger(whole, spoilt, choice):
    content = (whole.path / "checkpoint.safetensors").read_bytes()
    path = spoilt("checkpoint.safetensors", choice.draw(checkpoints(content)))
    fuzzing.attempt(used, path, errors=(ValueError,))


def test_a_configuration_that_asks_for_more_than_the_checkpoint_has(whole, spoilt):
    """Of these weights not one would get a value; they would take 4.4 TB."""
    path = spoilt("config.toml", whole.config.replace(hidden=(LARGEST, LARGEST)).to_toml().encode())
    wanted = 21 * LARGEST + LARGEST**2 + LARGEST
    with pytest.raises(CheckpointError, match=rf"has 242 weights, config\.toml describes a network of {wanted}"):
        open_run(path).load_network()


def test_a_configuration_that_was_never_completed(whole, spoilt):
    path = spoilt("config.toml", b'dataset = "digits"\n')
    with pytest.raises(ValueError, match="lacks hidden, output, batch_size"):
        open_run(path)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("task", None, "does not say what data"),
        ("task", {"inputs": 21, "classes": ["a", "b"], "image_shape": [3]}, "not a readable checkpoint"),
        ("task", {"inputs": 0, "classes": ["a", "b"], "image_shape": None}, "expected a whole number from 1"),
        ("task", {"inputs": 21, "classes": ["a", "b"], "image_shape": [1, 7, 7]}, "do not have 21 pixels"),
        ("task", fuzzing.DEEP, "not a readable checkpoint"),
        ("trainer", fuzzing.DEEP, "not a readable checkpoint"),
        ("config", fuzzing.DEEP, "not a readable checkpoint"),
    ],
)
def test_values_that_make_no_sense_in_a_checkpoint(whole, spoilt, name, value, reason):
    header, body = taken_apart((whole.path / "checkpoint.safetensors").read_bytes())
    header["__metadata__"][name] = value
    path = spoilt("checkpoint.safetensors", put_together(header, body))
    with pytest.raises(CheckpointError, match=reason):
        open_run(path).load_checkpoint()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX's")
def test_pipes_are_not_waited_for(whole, tmp_path):
    shutil.copy(whole.path / "config.toml", tmp_path)
    for name in ("checkpoint.safetensors", "metrics.jsonl"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match="is a named pipe, not a file"):
        _ = open_run(tmp_path).records
    with pytest.raises(OSError, match="is a named pipe, not a file"):
        open_run(tmp_path).load_network()


def as_toml(values: dict) -> bytes:
    """TOML of what TOML can hold: it has no nothing."""

    def kept(value):
        if isinstance(value, dict):
            return {name: kept(item) for name, item in value.items() if item is not None}
        return [kept(item) for item in value if item is not None] if isinstance(value, list) else value

    text = tomli_w.dumps(kept(values)).replace(f'"{fuzzing.DEEP}"', "[" * 5000)
    return text.encode("utf-8", "surrogatepass")


NAME = st.sampled_from(["self", "dataset", "a", "a.b", "hidden"]) | st.text(max_size=5)
DOTTED = st.builds(
    lambda name, n: (name + f".{name}" * n + " = 1\n").encode(), st.sampled_from("ab"), st.integers(1, 9999)
)


@pytest.mark.slow
@bounded()
@given(st.data())
def test_configurations(whole, spoilt, choice):
    values = {**whole.config.as_dict(), "data_options": {"n_train": 130}}
    text = (whole.path / "config.toml").read_bytes()
    odd = altered(values).map(as_toml) | st.dictionaries(NAME, st.integers()).map(tomli_w.dumps).map(str.encode)
    path = spoilt("config.toml", choice.draw(odd | damaged(text) | DOTTED | st.binary(max_size=100)))
    fuzzing.attempt(used, path, errors=(ValueError,))


@pytest.mark.slow
@bounded()
@given(st.data())
def test_metrics(whole, spoilt, choice):
    text = (whole.path / "metrics.jsonl").read_bytes()
    lines = st.lists(altered(json.loads(text.splitlines()[0])).map(as_json), max_size=3)
    content = choice.draw(
        lines.map("\n".join).map(lambda end: f"{end}\n".encode()) | damaged(text) | st.binary(max_size=100)
    )
    path = spoilt("metrics.jsonl", content)
    records = fuzzing.attempt(lambda: open_run(path).records, errors=(ValueError,))
    assert records is None or len(records) == content.count(b"\n")


@bounded(0.15)
@given(st.data())
def test_runs_that_go_on_from_where_a_stranger_says(whole, spoilt, choice):
    header, body = taken_apart((whole.path / "checkpoint.safetensors").read_bytes())
    about = header["__metadata__"]
    about["trainer"] = choice.draw(altered(about["trainer"]))
    path = spoilt("checkpoint.safetensors", put_together(header, body))
    fuzzing.attempt(lambda: resume(path, epochs=3).records, errors=(ValueError,))


ODD_STATES = {
    "steps": [None, -1, "x", 10**30, 1.5],
    "epoch": [None, -1, 7, 0, [], 2.0],
    "batch": [None, -1, 99, 10**30, True],
    "order_seed": [-1, 2**63, "x"],
    "seconds": [float("inf"), float("nan"), -1, "x"],
    "history": [[], None, [{}], [{"epoch": 1}]],
    "reinforcement": [[], [1, 2, 3], ["x", "y"], [2.0, 2.0], None],
    "clamped": [[], [1, -1], ["x", 1], None],
    "evaluations": [[], None, [{}], [{"calls": -1, "series": None, "recent": []}] * 2],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in ODD_STATES for value in ODD_STATES[name]])
def test_states_of_a_trainer_that_cannot_be(whole, spoilt, name, value):
    header, body = taken_apart((whole.path / "checkpoint.safetensors").read_bytes())
    header["__metadata__"]["trainer"][name] = value
    path = spoilt("checkpoint.safetensors", put_together(header, body))
    with pytest.raises(ValueError, match=r"does not fit|mini-batches of the epoch"):
        resume(path, epochs=3)


@pytest.mark.parametrize("init", [1e300, 1e-300])
@pytest.mark.parametrize("weights", ["binary", "gaussian", "ternary"])
def test_a_spread_that_no_number_holds(whole, spoilt, weights, init):
    path = spoilt("config.toml", whole.config.replace(init=init, weights=weights).to_toml().encode())
    with pytest.raises(ValueError, match="init must be"):
        open_run(path).load_network()
    with pytest.raises(ValueError, match="init must be"):
        resume(path, epochs=3)


@pytest.mark.parametrize("seconds", ["Infinity", "NaN", "-1", "1e999"])
def test_times_that_cannot_be(whole, spoilt, seconds):
    record = json.loads((whole.path / "metrics.jsonl").read_text().splitlines()[0])
    text = json.dumps({**record, "seconds": "@"}).replace('"@"', seconds)
    with pytest.raises(ValueError, match="seconds is"):
        _ = open_run(spoilt("metrics.jsonl", f"{text}\n".encode())).records


def test_homes_of_nobody(whole, spoilt):
    config = whole.config.replace(dataset="~nosuchuser/x.csv", data_options=None)
    path = spoilt("config.toml", config.to_toml().encode())
    for use in (lambda: open_run(path).load_dataset(), lambda: resume(path, epochs=3)):
        with pytest.raises(FileNotFoundError, match="~nosuchuser"):
            use()


@pytest.mark.slow
@bounded(0.1)
@given(st.data())
def test_reports_of_what_a_stranger_measured(whole, spoilt, choice):
    text = (whole.path / "metrics.jsonl").read_bytes()
    header, body = taken_apart((whole.path / "checkpoint.safetensors").read_bytes())
    changed = altered(json.loads(text.splitlines()[0])).map(lambda record: (as_json(record) + "\n").encode())
    if choice.draw(st.booleans()):
        path = spoilt("metrics.jsonl", text + choice.draw(changed))
    else:
        about = choice.draw(altered(header["__metadata__"]["task"]))
        path = spoilt(
            "checkpoint.safetensors",
            put_together({**header, "__metadata__": {**header["__metadata__"], "task": about}}, body),
        )
    written = fuzzing.attempt(lambda: page(collect_all([open_run(path)])), errors=(ValueError,))
    assert written is None or written.startswith("<!doctype html>")


TABLE = Task(2, ("a", "b"), None, torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]))
GREY = Task(48, ("a", "b"), (1, 6, 8), torch.tensor([0.5]), torch.tensor([0.25]))


def bytes_of(save, *arguments, **options) -> bytes:
    stream = io.BytesIO()
    save(stream, *arguments, **options)
    return stream.getvalue()


PICTURE = np.arange(48, dtype=np.uint8).reshape(6, 8)
SAMPLES = {
    "x.csv": (TABLE, b"a,b\n3,2\n1,6\n" * 3),
    "y.csv": (TABLE, b"a;label;b\n3;yes;2\n1;no;1e39\n"),
    "x.npz": (TABLE, bytes_of(np.savez, x=np.arange(8.0).reshape(4, 2))),
    "y.npz": (GREY, bytes_of(np.savez_compressed, x=np.stack([PICTURE, PICTURE]))),
    "x.png": (GREY, bytes_of(Image.fromarray(PICTURE).save, "PNG")),
}
attempt = functools.partial(fuzzing.attempt, errors=(DataError,))


@bounded(2.0)
@given(st.sampled_from(list(SAMPLES)), st.data())
def test_samples_to_predict(whole, name, choice):
    task, content = SAMPLES[name]
    path = whole.path.with_name(name)
    path.write_bytes(choice.draw(damaged(content)))
    result = attempt(read_samples, path, task)
    assert result is None or (result.x.shape[1] == task.inputs and bool(result.x.isfinite().all()))
