"""``cavity train``: options, files, folders, displays, signals."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest
from rich.console import Console

import cavity
from cavity.cli import main, train
from cavity.cli.parser import Parser
from cavity.runs import Config, open_run
from cavity.runs import train as train_run
from cavity.runs.training import reopen, start
from cavity.training.callbacks import Callback
from cavity.training.display import LiveDisplay, duration
from runs.helpers import TINY_DATA, assert_same_outcome, tiny

TINY = [
    *(word for name, value in TINY_DATA.items() for word in ("--data-option", f"{name}={value}")),
    *("--dataset", "teacher-student", "--hidden", "11", "--algorithm", "mf", "--batch-size", "30", "--epochs", "3"),
    *("--threads", "1", "--device", "cpu"),
]


def parsed(*words):
    parser = Parser("cavity train", "")
    train.add_arguments(parser)
    return train.given_options(parser.parse_args(words))


def test_every_option_of_the_configuration_has_a_flag():
    parser = Parser("cavity train", "")
    train.add_arguments(parser)
    assert {item.name for item in fields(Config)} <= {action.dest for action in parser._actions}


def test_options_are_read():
    assert parsed() == {}
    assert parsed("--hidden", "5,7", "--rho", "1,1.1,0.9", "--bias", "--no-binary-task", "--damping", "0.5") == {
        "hidden": [5, 7],
        "rho": [1.0, 1.1, 0.9],
        "bias": True,
        "binary_task": False,
        "damping": [0.5],
    }
    assert parsed("--hidden", "none") == {"hidden": []}
    words = ["--data-option", "n_train=3", "--data-option", "inputs=binary", "--data-option", "teacher_hidden=[3,3]"]
    assert parsed(*words) == {"data_options": {"n_train": 3, "inputs": "binary", "teacher_hidden": [3, 3]}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--hidden", "5,x"], "expected widths such as 501,501"),
        (["--rho", "high"], "expected a number or several"),
        (["--data-option", "n_train"], "expected name=value"),
        (["--algorithm", "sgd"], "choose from"),
        (["--epochs", "0"], "epochs must be at least 1"),
        (["--output", "argmax", "--binary-task"], "use output 'label'"),
        (["--output", "label"], "use 'argmax', or binary_task"),
        (["--hidden", "5,5", "--rho", "1,1"], "rho must be one number or 3"),
        (["--damping", "1.5"], "damping must be"),
        (["--dataset", "fashon-mnist"], "did you mean fashion-mnist"),
        (["--data-option", "n_train=3"], "only generators have options"),
        (["--resume", "x", "--hidden", "5"], "--hidden does not go with --resume"),
        (["--resume", "x", "--force"], "--force does not go with --resume"),
        (["--resume", "nowhere"], "nowhere is not a folder"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_lines_when_it_is_no_terminal(tmp_path, capsys):
    assert main(["train", *TINY, "--out", str(tmp_path / "run")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert "130 + 40 samples, network 21-11-1, binary weights, sign, mf, 3 epochs on cpu" in lines[0]
    errors = r"[\d.]+ % \(Bayes [\d.]+ %\)"
    assert re.match(rf"epoch 2/3  train {errors}  test {errors}  polarization 0\.\d{{3}} 0\.\d{{3}}", lines[2])
    assert lines[-1].endswith(f"report in {tmp_path / 'run' / 'report.html'}")


def test_quiet_prints_the_folder_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *TINY, "--quiet"]) == 0
    assert capsys.readouterr().out == "runs/teacher-student-mf-1\n"


def test_a_file_and_options_over_it(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert main(["train", *TINY, "--out", str(first), "--quiet"]) == 0
    assert main(["train", "--config", str(first / "config.toml"), "--out", str(second), "--quiet"]) == 0
    assert_same_outcome(first, second)
    other = tmp_path / "other"
    words = ["--config", str(first / "config.toml"), "--epochs", "1", "--bias", "--out", str(other), "--quiet"]
    assert main(["train", *words]) == 0
    assert open_run(other).config == open_run(first).config.replace(epochs=1, bias=True)


def test_resume_with_more_epochs_and_when_all_is_done(tmp_path, capsys):
    path = str(tmp_path / "run")
    assert main(["train", *TINY, "--out", path, "--quiet"]) == 0
    assert main(["train", *TINY, "--out", path]) == 2
    assert "go on with it by --resume" in capsys.readouterr().err
    assert main(["train", "--resume", path]) == 0
    assert "has done all its 3 epochs" in capsys.readouterr().out
    assert main(["train", "--resume", path, "--epochs", "4"]) == 0
    assert len(open_run(path).records) == 4
    assert main(["train", *TINY, "--out", path, "--force", "--quiet"]) == 0
    assert len(open_run(path).records) == 3


@pytest.mark.skipif(find_spec("tensorboard") is not None, reason="TensorBoard is installed")
def test_tensorboard_is_missing(tmp_path, capsys):
    assert main(["train", *TINY, "--out", str(tmp_path / "run"), "--tensorboard"]) == 2
    assert "pip install 'cavity[tensorboard]'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_tensorboard_has_the_metrics(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    path = tmp_path / "run"
    assert main(["train", *TINY, "--out", str(path), "--tensorboard", "--quiet"]) == 0
    events = EventAccumulator(str(path / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("test_error")] == [1, 2, 3]
    values = [event.value for event in events.Scalars("polarization/layer 0")]
    assert values == pytest.approx([record.polarization[0] for record in open_run(path).records], rel=1e-6)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_can_go_on(tmp_path, capsys, monkeypatch, number):
    class Interrupt(Callback):
        def on_step(self, trainer, info):
            if trainer.steps == 6:
                os.kill(os.getpid(), number)

        def on_epoch(self, trainer, record):
            pass

    class Quiet(Interrupt):
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    handler = signal.getsignal(number)
    whole, path = tmp_path / "whole", tmp_path / "run"
    assert main(["train", *TINY, "--out", str(whole), "--quiet"]) == 0
    with monkeypatch.context() as patch:
        patch.setattr(train, "_display", lambda session: Quiet())
        assert main(["train", *TINY, "--out", str(path)]) == 130
    assert f"stopped in epoch 2; go on with: cavity train --resume {path}" in capsys.readouterr().out
    assert signal.getsignal(number) == handler
    assert main(["train", "--resume", str(path), "--quiet"]) == 0
    assert_same_outcome(whole, path)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="limits on files are POSIX's")
def test_a_disk_that_is_full(tmp_path):
    path = tmp_path / "run"
    assert main(["train", *TINY, "--out", str(path), "--quiet"]) == 0
    before = (path / "checkpoint.safetensors").read_bytes()
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
    program = limit + "from cavity.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, "train", "--resume", str(path), "--epochs", "4", "--quiet"],
        env={**os.environ, "PYTHONPATH": str(Path(cavity.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "checkpoint.safetensors could not be written (File too large); what it held before is kept" in done.stderr
    assert (path / "checkpoint.safetensors").read_bytes() == before
    assert main(["train", "--resume", str(path), "--quiet"]) == 0
    assert len(open_run(path).records) == 4


def test_plain_lines_show_what_was_learnt_on_the_way_where_nothing_was_measured(tmp_path, capsys):
    options = ["--dataset", "digits", "--hidden", "11", "--epochs", "3", "--algorithm", "mf", "--evaluate-every", "2"]
    assert main(["train", *options, "--out", str(tmp_path / "run")]) == 0
    first, second, third = [line for line in capsys.readouterr().out.splitlines() if line.startswith("epoch ")]
    assert re.search(r"epoch 1/3  running training error \d+\.\d\d %  polarization", first)
    assert "test " in second
    assert "test " in third
    assert [record.test_error is None for record in open_run(tmp_path / "run").records] == [True, False, False]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_second_interrupt_within_a_write_leaves_no_temporary_file(tmp_path, capsys, monkeypatch):
    """The first asks for an end after the step, the second comes while the checkpoint of that step is written."""
    sync, syncs, path = os.fsync, [], tmp_path / "run"

    def interrupting(descriptor):
        syncs.append(descriptor)
        if (path / "metrics.jsonl").exists():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        sync(descriptor)

    monkeypatch.setattr("cavity.util.files.os.fsync", interrupting)
    assert main(["train", *TINY, "--out", str(path), "--checkpoint-seconds", "0"]) == 130
    monkeypatch.undo()
    assert syncs
    assert not list(path.glob(".*.tmp"))
    assert main(["train", *TINY, "--out", str(path), "--quiet"]) == 0
    whole = train_run(tiny(), tmp_path / "whole")
    assert_same_outcome(whole.path, path)


def test_the_live_display(tmp_path, monkeypatch):
    monkeypatch.setattr("cavity.training.display.REFRESH", 0.0)
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=120, markup=False, highlight=False)
    session = start(tiny(), tmp_path / "run")
    with LiveDisplay(console, 3, session.steps_per_epoch) as display:
        session.fit([display])
    shown = text.getvalue()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert re.search(
        r"step 5/12, \d:\d\d left, running training error \d+\.\d\d %, polarization 0\.\d{3} 0\.\d{3}", plain
    )
    assert "step 12/12, 0:00 left" in plain
    rows = [line.split() for line in plain.splitlines() if re.match(r" +\d ", line)]
    records = open_run(tmp_path / "run").records
    assert [int(cells[0]) for cells in rows] == [1, 2, 3]
    for cells, record in zip(rows, records, strict=True):
        errors = (record.train_error, record.test_error, record.train_error_bayes, record.test_error_bayes)
        assert cells[1:5] == [f"{error:.2f}" for error in errors]
        assert cells[-2:] == [f"{value:.3f}" for value in record.polarization]


def test_the_live_display_of_a_resumed_run_begins_with_what_was(tmp_path):
    run = train_run(tiny(), tmp_path / "run")
    text = io.StringIO()
    session = reopen(run.path, epochs=4)
    with LiveDisplay(Console(file=text, force_terminal=True, width=100), 4, session.steps_per_epoch) as display:
        session.fit([display])
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.getvalue())
    assert [line.split()[0] for line in plain.splitlines() if re.match(r" +\d ", line)] == ["1", "2", "3", "4"]


def test_a_run_that_diverges_says_so_in_a_line(tmp_path, capsys):
    options = ["--dataset", "digits", "--hidden", "11", "--epochs", "2", "--rho", "3", "--batch-size", "100", "--quiet"]
    assert main(["train", *options, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().err
    assert said.startswith("cavity: training has diverged: ")
    assert said.count("\n") == 1
    assert main(["train", *options[:-3], "--quiet", "--rho", "1", "--out", str(tmp_path / "other")]) == 0
    assert capsys.readouterr().err == ""


def test_durations():
    assert [duration(s) for s in (0, 59.6, 61, 3723)] == ["0:00", "1:00", "1:01", "1:02:03"]
