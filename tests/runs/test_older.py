"""Runs of older versions go on: what they lack is as it was when they were written.

``fixtures/before`` was written by the version before the rooms were rebuilt and stopped in its third epoch;
``uninterrupted.jsonl`` is what that version measured without a stop.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import cavity.runs.folder
from cavity.runs import CheckpointError, Config, open_run, resume, save_checkpoint
from cavity.runs.checkpoint import POSITION
from cavity.runs.options import option

BEFORE = Path(__file__).parent / "fixtures/before"


@pytest.fixture
def older(tmp_path):
    return Path(shutil.copytree(BEFORE, tmp_path / "older"))


def measured(file):
    """The records without their times."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def assert_ended_alike(run):
    found, expected = measured(run / "metrics.jsonl"), measured(run / "uninterrupted.jsonl")
    assert [record["epoch"] for record in found] == [1, 2, 3, 4]
    for ours, theirs in zip(found, expected, strict=True):
        for name, value in theirs.items():
            assert ours[name] == pytest.approx(value, rel=1e-5, abs=1e-6), (ours["epoch"], name)


def test_a_run_of_the_version_before_ends_as_it_would_have(older):
    assert len(open_run(older).records) == 2
    resume(older)
    assert open_run(older).finished
    assert_ended_alike(older)


@dataclass(frozen=True)
class Later(Config):
    """Options that the version before did not have; one of them has since got another default."""

    plain: int = option(3, "as it always was")
    changed: str = option("automatic", "something better", before="as in the paper")


def test_a_new_option_does_not_stop_an_older_run(older, monkeypatch):
    monkeypatch.setattr(cavity.runs.folder, "Config", Later)
    assert Later().changed == "automatic"
    for _ in range(2):  # the second time it is in the file
        config = open_run(older).config
        assert (config.plain, config.changed) == (3, "as in the paper")
        resume(older)
        assert 'changed = "as in the paper"' in (older / "config.toml").read_text()
    assert_ended_alike(older)


def test_another_value_of_a_new_option_is_another_run(older, monkeypatch):
    monkeypatch.setattr(cavity.runs.folder, "Config", Later)
    config = older / "config.toml"
    config.write_text(config.read_text() + 'changed = "automatic"\n')
    with pytest.raises(CheckpointError, match=r"changed = 'as in the paper', but config\.toml has 'automatic'"):
        resume(older)


def test_a_file_that_a_person_wrote_has_the_new_default(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text("epochs = 3\n")
    assert Later.from_toml(file).changed == "automatic"


def resaved(older, change):
    """The run with another state of the trainer in its checkpoint."""
    run = open_run(older)
    checkpoint, net = run.load_checkpoint(), run.load_network()

    class Changed:
        def state_dict(self):
            state = dict(checkpoint.trainer)
            change(state)
            return state

    save_checkpoint(checkpoint.path, net, Changed(), config=checkpoint.config, task=checkpoint.task)


def test_what_a_trainer_did_not_remember_is_as_at_the_start(older):
    resaved(older, lambda state: state.pop("clamped"))
    resume(older)
    assert_ended_alike(older)


@pytest.mark.parametrize("name", [name for name in POSITION if name != "generator"])
def test_where_a_run_was_must_be_known(older, name):
    resaved(older, lambda state: state.pop(name))
    with pytest.raises(CheckpointError, match=f"trainer's {name} is not in it"):
        resume(older)
