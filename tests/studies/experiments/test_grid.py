"""The grid: finished cells are skipped, killed ones go on exactly, failures are shown, threads are shared."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cavity
from cavity.runs.session import threads
from cavity.studies.experiments import Request
from cavity.studies.experiments.experiment import Cell, Store, find
from cavity.studies.experiments.running import run_grid
from studies.experiments.helpers import cell, quiet, tiny

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(cavity.__file__).parents[1]), "OMP_NUM_THREADS": "1"}


def run(cells, folder, jobs=0, name="table-datasets"):
    """Run a grid in silence; returns what failed and what was said."""
    said = io.StringIO()
    store = Store(folder / name)
    return run_grid(find(name), cells, store, jobs, quiet(said)), said.getvalue(), store


def curves(path):
    found = json.loads(path.read_text())["result"]["curves"]
    found.pop("seconds")
    return found


def test_finished_cells_are_skipped(tmp_path):
    cells = [cell(seed=0), cell(seed=1)]
    _, said, store = run(cells[:1], tmp_path)
    assert "1 cells, 0 finished before" in said
    before = store.record_path(cells[0]).stat().st_mtime_ns
    failures, said, store = run(cells, tmp_path)
    assert failures == []
    assert "2 cells, 1 finished before" in said
    assert store.record_path(cells[0]).stat().st_mtime_ns == before
    assert [record.cell for record in store.records("smoke")] == cells
    assert store.records("paper") == []
    assert not any(store.folder.glob(".work/*/*"))


@pytest.mark.slow
def test_processes_give_what_this_process_gives_and_show_their_failures(tmp_path):
    bad, cells = cell("bad", dataset="nothing-like-this"), [cell(), cell("digits-binarynet", method="binarynet-adam")]
    _, _, here = run(cells, tmp_path / "here")
    failures, said, there = run([bad, *cells], tmp_path / "there", jobs=2)
    assert [failure.cell for failure in failures] == [bad]
    assert "nothing-like-this" in failures[0].reason
    assert "Traceback" in failures[0].details.read_text()
    assert "FAILED  bad" in said
    assert said.count("done") == 2
    assert not there.is_finished(bad)
    for one in cells:
        assert curves(there.record_path(one)) == curves(here.record_path(one))


@pytest.mark.slow
def test_an_experiment_may_print(tmp_path):
    (cell, *_) = find("timing").cells(Request("smoke"))
    failures, said, store = run([cell], tmp_path, jobs=1, name="timing")
    assert failures == []
    assert "done" in said
    assert store.is_finished(cell)


def test_a_cell_of_another_experiment_is_taken_over(tmp_path):
    run([cell()], tmp_path)
    failures, said, store = run([cell()], tmp_path, name="polarization")
    assert failures == []
    assert "1 cells, 1 finished before" in said
    assert store.is_finished(cell())
    # local-energy makes its records in another way.
    _, said, _ = run(
        [Cell("digits-mf", tiny(), "smoke", {"fractions": [0.1], "repeats": 1})], tmp_path, 0, "local-energy"
    )
    assert "1 cells, 0 finished before" in said


@pytest.mark.parametrize("method", ["bp", pytest.param("binarynet-adam", marks=pytest.mark.slow)])
def test_a_killed_cell_goes_on_to_the_same_result(method, tmp_path):
    one = cell(method=method, epochs=40)
    # One thread everywhere: sums are rounded in an order that depends on it.
    with threads(1):
        _, _, whole = run([one], tmp_path / "whole")
    store = Store(tmp_path / "killed" / "table-datasets")
    command = [sys.executable, "-m", "cavity.studies.experiments.cell", "table-datasets", str(store.folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        process.stdin.write(json.dumps(one.as_dict()) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "[1, 40]\n"
        process.send_signal(signal.SIGKILL)
    assert not store.is_finished(one)
    assert (store.work_folder(one) / "checkpoint.safetensors").exists()
    with threads(1):
        _, said, again = run([one], tmp_path / "killed")
    assert "done" in said
    assert curves(again.record_path(one)) == curves(whole.record_path(one))


def test_a_cell_ends_with_the_process_that_asked_for_it(tmp_path):
    command = [sys.executable, "-m", "cavity.studies.experiments.cell", "table-datasets", str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        # BinaryNet, because message passing would be compiled for so many epochs.
        process.stdin.write(json.dumps(cell(method="binarynet", epochs=100_000).as_dict()) + "\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdin.close()
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            process.stdout.readline()
        assert process.returncode == 130


@pytest.mark.slow
def test_terminating_the_command_stops_its_cells(tmp_path):
    words = ["reproduce", "polarization", "--scale", "smoke", "--epochs", "10000", "--out", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-m", "cavity", *words], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("*/.work/*/checkpoint.safetensors")) and time.monotonic() < deadline:
            time.sleep(0.1)
        process.terminate()
        assert process.wait(30) == 130
        assert "stopped; run the same command to go on" in process.stdout.read()
    assert not list(tmp_path.glob("*/records/*"))


def test_two_grids_do_not_share_a_folder(tmp_path):
    with Store(tmp_path / "table-datasets").only_writer(), pytest.raises(OSError, match="written by another process"):
        run([cell()], tmp_path)


def test_a_broken_record_is_named(tmp_path):
    _, _, store = run([cell()], tmp_path)
    store.record_path(cell()).write_text("{}")
    with pytest.raises(ValueError, match=r"digits-mf-0-\w+.json: is not a record"):
        store.records("smoke")
