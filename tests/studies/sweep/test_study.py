"""The trials in their data base: what is pruned, what is run again, what mattered."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from cavity.data import load
from cavity.studies.sweep.importance import FEWEST, importances
from cavity.studies.sweep.plot import save_picture
from cavity.studies.sweep.space import Space
from cavity.studies.sweep.study import Trial, create_study, open_study
from cavity.studies.sweep.table import mattered, shown_value, table
from cavity.studies.sweep.worker import hold_out
from studies.sweep.helpers import tiny, tiny_plan


@contextmanager
def new_study(path, plan):
    create_study(path, plan)
    with open_study(path, plan) as study:
        study.begin()
        yield study


def train(study, curve, seconds=1.0):
    """A trial with that curve, as far as it may go; returns the epochs it had."""
    trial, _ = study.ask()
    for epoch, value in enumerate(curve, start=1):
        if study.report(trial, epoch, value):
            study.finish(trial, value, seconds, pruned=True)
            return epoch
    study.finish(trial, curve[-1], seconds, pruned=False)
    return len(curve)


GOOD = [9, 8, 7, 6, 5, 4, 3, 2]
#: The first has had an epoch as good as the median of those that follow.
UNSTEADY, BAD = [9, 5, 90, 6, 5, 4, 3, 2], [9, 8, 90, 90, 90, 90, 90, 90]


@pytest.mark.parametrize(("prune", "epochs"), [(True, [8, 8, 8, 8, 8, 8, 3]), (False, [8] * 7)])
def test_a_trial_that_falls_behind_most_others_is_ended(prune, epochs, tmp_path):
    plan = tiny_plan(config=tiny(epochs=8), prune=prune)
    with new_study(tmp_path / "sweep.db", plan) as study:
        assert [train(study, curve) for curve in (*[GOOD] * 5, UNSTEADY, BAD)] == epochs
        states = [trial.state for trial in study.trials()]
        assert states == ["complete"] * 6 + ["pruned" if prune else "complete"]
        last = study.trials()[-1]
        assert last.value == 90
        assert list(last.curve) == list(range(1, epochs[-1] + 1))


def test_the_last_epoch_is_never_pruned(tmp_path):
    with new_study(tmp_path / "sweep.db", tiny_plan(config=tiny(epochs=1))) as study:
        assert [train(study, [value]) for value in (1, 1, 1, 1, 1, 1, 99)] == [1] * 7
        assert {trial.state for trial in study.trials()} == {"complete"}


def test_what_was_running_is_run_again_once(tmp_path):
    plan = tiny_plan()
    with new_study(tmp_path / "sweep.db", plan) as study:
        train(study, GOOD[:4])
        trial, values = study.ask()
        study.report(trial, 1, 50.0)
    for _ in range(2):  # The second time nothing is left to be mended.
        with open_study(tmp_path / "sweep.db", plan) as study:
            study.begin()
            assert [t.state for t in study.trials()] == ["complete", "open"]
    with open_study(tmp_path / "sweep.db", plan) as study:
        again, same = study.ask()
        assert (same, again.number) == (values, 2)
        study.finish(again, 3.0, 1.0, pruned=False)
        assert [t.number for t in study.trials()] == [0, 2]


def test_trials_do_not_depend_on_interruptions(tmp_path):
    plan = tiny_plan()

    def asked(path, sittings):
        found = []
        create_study(path, plan)
        for curves in sittings:
            with open_study(path, plan) as study:
                study.begin()
                for value in curves:
                    trial, values = study.ask()
                    found.append(values)
                    study.report(trial, 4, value)
                    study.finish(trial, value, 1.0, pruned=False)
                cut_short, _ = study.ask()
                study.report(cut_short, 1, 1.0)
        return found

    outcomes = [float(value) for value in np.random.default_rng(0).random(14)]
    whole = asked(tmp_path / "whole.db", [outcomes])
    parts = asked(tmp_path / "parts.db", [outcomes[:3], outcomes[3:11], outcomes[11:]])
    assert parts == whole
    assert len({values["rho"] for values in whole}) == 14


def test_divergence_is_told_and_learnt_from(tmp_path):
    with new_study(tmp_path / "sweep.db", tiny_plan()) as study:
        for diverged in (True, False):
            trial, _ = study.ask()
            study.fail(trial, "the field of layer 0 became non-finite", diverged=diverged)
        trials = study.trials()
        assert [trial.state for trial in trials] == ["diverged", "failed"]
        assert trials[0].reason == "the field of layer 0 became non-finite"
        assert trials[0].value is None


def test_a_broken_data_base_is_named(tmp_path):
    path = tmp_path / "sweep.db"
    path.write_bytes(b"nothing of this kind" * 100)
    with pytest.raises(OSError, match=r"sweep\.db could not be read or written"), open_study(path, tiny_plan()):
        pass


def made_up(plan, count, result):
    """Trials at random places, with the results that ``result`` gives to their values."""
    generator = np.random.default_rng(1)
    trials = []
    for number in range(count):
        coordinates = {
            axis.key: generator.uniform(axis.coordinate(axis.low), axis.coordinate(axis.high)) for axis in plan.axes
        }
        values = {axis.name: axis.value(coordinates[axis.key]) for axis in plan.axes}
        value = result(values, generator)
        state = "complete" if number % 3 else "pruned"
        trials.append(Trial(number, state, values, coordinates, value, {1: value}, 1.0))
    return trials


def test_what_matters_is_told_from_what_does_not():
    plan = tiny_plan()
    trials = made_up(plan, 40, lambda values, generator: abs(values["damping"] - 0.8) + 0.01 * generator.random())
    found = {item.name: item for item in importances(plan, trials)}
    assert set(found) == {"rho", "damping", "init"}
    assert found["damping"].matters
    assert not found["rho"].matters
    assert not found["init"].matters
    assert found["damping"].share > 0.5
    assert mattered(list(found.values())).startswith("what mattered: damping (")


def test_chance_does_not_matter_and_few_trials_say_nothing():
    plan = tiny_plan()
    trials = made_up(plan, 40, lambda values, generator: generator.random())
    assert not any(item.matters for item in importances(plan, trials))
    assert importances(plan, trials[: FEWEST - 1]) == []
    assert importances(plan, made_up(plan, 40, lambda values, generator: 1.0)) == []
    assert "too few" in mattered([])


@pytest.mark.parametrize("count", [0, 3, 20])
def test_the_picture_shows_every_option(count, tmp_path):
    plan = tiny_plan(Space(("rho", "damping", "last_rho", "init")))
    trials = made_up(plan, count, lambda values, generator: generator.random())
    paths, _ = save_picture(plan, trials, tmp_path / "sweep")
    assert [path.name for path in paths] == ["sweep.png", "sweep.svg"]
    text = paths[1].read_text()
    assert all(word in text for word in ("ρ − 1", "last ρ − 1", "damping", "ε (init)", "validation error (%)"))
    assert ("that chance takes" in text) == (count >= FEWEST)
    lines = table(plan, trials).splitlines()
    assert len(lines) == 1 + min(count, 11 if count > 10 else 10)
    assert lines[0].split() == ["trial", "validation", "error", "ρ", "damping", "last", "ρ", "ε", "(init)", "epochs"]


def test_values_have_the_digits_that_matter():
    assert [shown_value("rho", value) for value in (1.1, 0.95, 1.0123, 1.00012345)] == [
        "1.100",
        "0.950",
        "1.012",
        "1.00012",
    ]
    assert shown_value("hidden", ()) == "none"


def test_the_test_set_is_not_looked_at():
    data = load("digits")
    held = hold_out(data, 300, seed=3)
    rows = torch.cat([held.x_train, held.x_test])
    assert (len(held.x_train), len(held.x_test)) == (len(data.x_train) - 300, 300)
    assert torch.equal(rows.sort(dim=0).values, data.x_train.sort(dim=0).values)
    again, other = hold_out(data, 300, seed=3), hold_out(data, 300, seed=4)
    assert torch.equal(again.x_test, held.x_test)
    assert not torch.equal(other.x_test, held.x_test)
    # Samples keep their labels.
    place = (data.x_train == held.x_test[0]).all(dim=1).nonzero()[0]
    assert data.y_train[place] == held.y_test[0]


@pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX's")
@pytest.mark.parametrize("suffix", ["", "-journal"])
@pytest.mark.parametrize(
    "put", [os.symlink, os.link, lambda victim, path: os.mkfifo(path)], ids=["link", "name", "pipe"]
)
def test_a_data_base_is_written_nowhere_else(tmp_path, put, suffix):
    """SQLite writes in place, follows links and waits for pipes."""
    plan, path, victim = tiny_plan(), tmp_path / "sweep.db", tmp_path / "victim"
    create_study(path, plan)
    if suffix:
        victim.write_bytes(b"keep")
    else:
        path.rename(victim)
    before = victim.read_bytes()
    put(victim, tmp_path / f"sweep.db{suffix}")
    with pytest.raises(OSError, match=r"is a symbolic link|has other names|is a named pipe"), open_study(path, plan):
        pass
    assert victim.read_bytes() == before


def test_a_data_base_is_made_whole_and_leaves_nothing(tmp_path):
    create_study(tmp_path / "sweep.db", tiny_plan())
    assert os.listdir(tmp_path) == ["sweep.db"]


def foreign_journal(named: Path, pages: int) -> bytes:
    """What SQLite takes for the rest of a transaction on several data bases, by its file format: a header without
    records, then the name of the file that holds the names of all journals."""
    magic, name = bytes.fromhex("d9d505f920a163d7"), str(named).encode()
    head = magic + struct.pack(">IIIII", 0, 0, pages, 512, 4096)
    lock_page, checksum = (1 << 30) // 4096 + 1, sum(name)
    tail = struct.pack(">I", lock_page) + name + struct.pack(">II", len(name), checksum) + magic
    return head.ljust(512, b"\0") + tail


def test_a_journal_cannot_have_another_file_removed(tmp_path):
    plan, path, victim = tiny_plan(), tmp_path / "sweep.db", tmp_path / "victim"
    create_study(path, plan)
    victim.write_text("keep")
    journal = foreign_journal(victim, path.stat().st_size // 4096)
    (tmp_path / "sweep.db-journal").write_bytes(journal)
    with pytest.raises(OSError, match="belongs to several data bases"), open_study(path, plan):
        pass
    assert victim.read_text() == "keep"


def test_the_journal_of_a_crash_is_still_rolled_back(tmp_path):
    """What a killed sweep leaves is its own, and must not be refused."""
    plan, path = tiny_plan(), tmp_path / "sweep.db"
    create_study(path, plan)
    program = """
import os, signal, sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("PRAGMA cache_size = 1")
held.execute("BEGIN EXCLUSIVE")
held.execute("DELETE FROM trials")
held.execute("CREATE TABLE filler (x)")
held.executemany("INSERT INTO filler VALUES (?)", [("x" * 4000,)] * 50)
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert (tmp_path / "sweep.db-journal").stat().st_size > 512
    with open_study(path, plan) as study:
        assert len(study.study.get_trials()) == 1
