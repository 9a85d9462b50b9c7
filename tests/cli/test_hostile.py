"""Links, pipes, devices and folders in the place of files: a sample of ``scripts/hostile_folders.py``, and reports made
at once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import cavity
from cavity import packed
from cavity.cli import main
from cavity.runs import Config, load_checkpoint, train
from runs.helpers import tiny

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX's")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(cavity.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
#: What has been wrong once.
KNOWN = [
    ("run", ".report.html.tmp", "link to a file", "report run"),
    ("run", ".report.html.tmp", "pipe", "report run"),
    ("run", ".lock", "link to a file", "train --quiet --resume run --epochs 2"),
    ("run", ".lock", "pipe", "train --quiet --resume run --epochs 2"),
    ("run", "metrics.jsonl", "another name of a file", "train --quiet --resume run --epochs 2"),
    ("run", "checkpoint.safetensors", "link to a file", "train --quiet --resume run --epochs 2"),
    ("run", "checkpoint.safetensors", "pipe", "evaluate run"),
    ("run", "config.toml", "link to a pipe", "evaluate run"),
    ("run", "tensorboard", "pipe", "train --quiet --config run/config.toml --out run --force"),
    (
        "results/initialization",
        "table.md",
        "link to a file",
        "reproduce initialization --scale smoke --out results --tables",
    ),
    ("results/initialization", "table.md", "pipe", "reproduce initialization --scale smoke --out results --tables"),
    ("results/initialization", "", "link to a folder", "reproduce initialization --scale smoke --out results --tables"),
    (
        "results/initialization",
        ".work",
        "link to a folder",
        "reproduce initialization --scale smoke --out results --jobs 0",
    ),
    ("in", "x.csv", "pipe", "predict run --input in/x.csv --out out/p.csv"),
    ("in", "x.npz", "pipe", "predict run --input in/x.npz --out out/p.csv"),
    ("out", "p.csv", "link to a device", "predict run --out out/p.csv"),
]


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
    try:
        yield import_module("hostile_folders")
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def originals(script, tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals") / "originals"
    script.prepare(folder, sweeps=False)
    return folder


@pytest.mark.parametrize(
    "known", KNOWN, ids=lambda known: f"{known[2]} as {known[1] or known[0]}, {known[3].split()[0]}"
)
def test_known_attacks(script, originals, tmp_path, known):
    case = script.Case(*known[:3], tuple(known[3].split()))
    assert case in script.cases(originals)
    outcome = script.attempt(case, originals, tmp_path / "scratch")
    assert outcome.wrong == ""


@pytest.mark.slow
def test_others(script, originals, tmp_path):
    cheap = [case for case in script.cases(originals) if case.command[0] in ("evaluate", "predict", "export", "train")]
    for case in random.Random(0).sample(cheap, 15):
        outcome = script.attempt(case, originals, tmp_path / "scratch")
        assert outcome.wrong == "", str(case)


@pytest.mark.slow
def test_all(script, tmp_path):
    script.prepare(tmp_path / "originals")
    cases = script.cases(tmp_path / "originals")
    outcomes = {str(case): script.attempt(case, tmp_path / "originals", tmp_path / "scratch") for case in cases}
    assert {case: outcome for case, outcome in outcomes.items() if outcome.wrong} == {}


@pytest.mark.parametrize("load", [packed.load, load_checkpoint, Config.from_toml])
def test_pipes_are_not_waited_for(tmp_path, load, script):
    os.mkfifo(tmp_path / "pipe")
    with script.within(60), pytest.raises(OSError, match="is a named pipe, not a file"):
        load(tmp_path / "pipe")


def test_folders_that_a_user_linked_work_as_ever(tmp_path):
    """Links in the path that a person names are followed, that to the folder itself among them."""
    (tmp_path / "disk" / "runs").mkdir(parents=True)
    (tmp_path / "runs").symlink_to(tmp_path / "disk" / "runs")
    run = train(tiny(epochs=1), tmp_path / "runs" / "first")
    (tmp_path / "best").symlink_to(run.path)
    assert train(tiny(epochs=1), tmp_path / "best", force=True).finished
    assert sorted(os.listdir(tmp_path / "disk" / "runs" / "first")) == [
        ".lock",
        "checkpoint.safetensors",
        "config.toml",
        "metrics.jsonl",
        "sessions.jsonl",
    ]
    (tmp_path / "nothing").symlink_to(tmp_path / "disk" / "none")
    with pytest.raises(FileExistsError):
        train(tiny(epochs=1), tmp_path / "nothing")


def test_a_checkpoint_on_a_disk_that_is_not_there_is_not_begun_anew(tmp_path, capsys):
    run = train(tiny(epochs=1), tmp_path / "run").path
    (run / "checkpoint.safetensors").rename(tmp_path / "elsewhere")
    (run / "checkpoint.safetensors").symlink_to(tmp_path / "not mounted")
    before = (run / "metrics.jsonl").read_bytes()
    assert main(["train", "--quiet", "--resume", str(run), "--epochs", "2"]) == 2
    assert "checkpoint.safetensors: No such file or directory" in capsys.readouterr().err
    assert (run / "metrics.jsonl").read_bytes() == before


@pytest.mark.slow
def test_four_reports_at_once(tmp_path):
    run = train(tiny(epochs=1), tmp_path / "run").path
    command, last = [sys.executable, "-m", "cavity", "report", str(run)], b"</html>"
    for _ in range(5):
        made = [subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL) for _ in range(4)]
        while any(process.poll() is None for process in made):
            if (run / "report.html").exists():
                assert (run / "report.html").read_bytes().rstrip().endswith(last)
        assert [process.returncode for process in made] == [0] * 4
    assert not list(run.glob(".*.tmp"))
