"""The cost model: it reproduces what was measured, and the page shows what it says."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from types import ModuleType

import pytest

from engine.distributed.launch import ROOT

MEASURED = [ROOT / f"docs/data/distributed-{algorithm}.json" for algorithm in ("mf", "bp")]


@pytest.fixture
def simulation(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    sys.modules.pop("simulate_scaling", None)
    return import_module("simulate_scaling")


@pytest.mark.parametrize("path", MEASURED, ids=lambda path: path.stem)
def test_the_measurement_is_reproduced(path, simulation) -> None:
    row = simulation.reproduce(json.loads(path.read_text()))
    assert row.simulated == pytest.approx(row.measured, rel=0.1)


def test_the_page_shows_the_figures(simulation) -> None:
    page = (ROOT / "docs/scaling.md").read_text()
    assert simulation.measured_table([simulation.reproduce(json.loads(path.read_text())) for path in MEASURED]) in page
    assert simulation.predicted_table("mf") in page


def test_an_all_reduce_hides_behind_the_layers_below(simulation) -> None:
    layers = [simulation.Layer(1, 2.0, 1.0), simulation.Layer(2, 3.0, 1.0)]
    free = simulation.step_seconds(4.0, layers, lambda size: 0.0, stolen=0.0)
    assert free == 4 + 2 + 3 + 1 + 1
    # The first takes 2 and is over before the second layer is down; the second takes 4, one of it behind an update.
    assert simulation.step_seconds(4.0, layers, lambda size: 2.0 * size, stolen=0.0) == free + 3
    assert simulation.step_seconds(4.0, layers, lambda size: 2.0 * size, stolen=1.0) == free + 6
