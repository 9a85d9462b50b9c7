"""Floors and the bound are counted, and the count is reported wherever a run is."""

from __future__ import annotations

import io
import json

import pytest
import torch
from rich.console import Console

import cavity
from cavity import report
from cavity.runs import load_checkpoint, resume, train
from cavity.training.callbacks import Callback
from cavity.training.display import LiveDisplay, PlainDisplay
from runs.helpers import assert_same_outcome, tiny

# What brings weights to the bound ruins them, and training says so.
pytestmark = pytest.mark.filterwarnings("ignore:training has diverged:cavity.DivergenceWarning")

#: ρ that brings all weights to the bound in the second epoch, and one that brings none.
CLAMPS, QUIET = (1e6, 1e6), (1.0, 0.9)


class Count(Callback):
    """Entries that were clamped, and all, by epoch; ``stop`` ends training after that step."""

    def __init__(self, stop=None):
        self.stop, self.epochs = stop, [[0, 0]]

    def on_step(self, trainer, info):
        self.epochs[-1][0] += int(info.clamped_entries)
        self.epochs[-1][1] += info.entries
        trainer.stop = trainer.steps == self.stop

    def on_epoch(self, trainer, record):
        self.epochs.append([0, 0])


def test_the_record_of_an_epoch_counts_all_its_steps(tmp_path):
    count = Count()
    run = train(tiny(rho=CLAMPS), tmp_path / "run", callbacks=[count])
    expected = [clamped / entries for clamped, entries in count.epochs[:-1]]
    assert expected[-1] > 0.3
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(text)["clamped"] for text in lines] == expected
    assert [record.clamped for record in run.records] == expected


def test_a_run_that_needs_no_clamp_says_zero(tmp_path):
    assert [record.clamped for record in train(tiny(rho=QUIET), tmp_path / "run").records] == [0.0] * 3


def test_the_count_survives_a_stop_in_mid_epoch(tmp_path):
    whole = train(tiny(rho=CLAMPS), tmp_path / "whole")
    train(tiny(rho=CLAMPS), tmp_path / "stopped", callbacks=[Count(stop=10)])
    assert load_checkpoint(tmp_path / "stopped" / "checkpoint.safetensors").trainer["clamped"][0] > 0
    resume(tmp_path / "stopped")
    assert_same_outcome(whole.path, tmp_path / "stopped")


@pytest.mark.parametrize("rho", [CLAMPS, QUIET])
@pytest.mark.parametrize("kind", ["plain", "live"])
def test_displays_say_it_where_there_is_something_to_say(kind, rho):
    said = io.StringIO()
    console = Console(file=said, width=200, force_terminal=kind == "live")
    x = torch.randn((60, 12), generator=torch.Generator().manual_seed(0))
    trainer = cavity.Trainer(cavity.mlp(12, (7,), 1), "mf", rho=rho)
    display = PlainDisplay(console, 3) if kind == "plain" else LiveDisplay(console, 3, 6)
    with display:
        trainer.fit((x, torch.where(x[:, 0] > 0, 1, -1)), epochs=3, batch_size=10, callbacks=[display])
    assert ("clamped" in said.getvalue()) == (rho == CLAMPS)


@pytest.mark.parametrize("rho", [CLAMPS, QUIET])
def test_the_report_draws_it_where_there_is_something_to_draw(tmp_path, rho):
    run = train(tiny(rho=rho), tmp_path / "run")
    text = report.write([run], tmp_path / "report.html").read_text()
    assert ("were clamped to stay finite" in text) == (rho == CLAMPS)
