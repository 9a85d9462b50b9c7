"""Every experiment from end to end on a few hundred digits, and the command around them."""

from __future__ import annotations

import json
import math

import pytest
import torch

from cavity.cli import main
from cavity.studies.experiments import EXPERIMENTS, SCALES, Request, initialization
from cavity.studies.experiments.curves_architectures import tuned
from cavity.studies.experiments.experiment import find
from cavity.studies.experiments.local_energy import preactivations
from cavity.studies.experiments.setup import Setup


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """One folder for all: cells that two experiments share are computed once."""
    return tmp_path_factory.mktemp("results")


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_from_end_to_end(name, results, monkeypatch, capsys):
    monkeypatch.setenv("CAVITY_DATA", str(results / "no-data-here"))
    assert main(["reproduce", name, "--scale", "smoke", "--jobs", "0", "--out", str(results)]) == 0
    folder = results / name
    text = (folder / "table.md").read_text()
    assert text.startswith("# ")
    assert "\nsmoke scale: " in text
    assert text.count("\n|") >= 3
    assert text.strip() in capsys.readouterr().out
    assert (folder / f"{name}.png").stat().st_size > 5000
    assert "smoke scale: " in (folder / f"{name}.svg").read_text()
    records = list((folder / "records").glob("*.json"))
    assert len(records) == len(find(name).cells(Request("smoke")))
    assert max(path.stat().st_size for path in records) < 10_000


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_grids_have_distinct_cells(name, scale):
    cells = find(name).cells(Request(scale))
    assert len({cell.key for cell in cells}) == len(cells) > 0
    fewer = find(name).cells(Request(scale, seeds=1))
    assert {cell.setup.seed for cell in fewer} == {0}
    assert {cell.key for cell in fewer} <= {cell.key for cell in cells}


def test_the_list_names_every_experiment(capsys):
    assert main(["reproduce", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)


def test_mistakes_are_named(capsys, tmp_path):
    for words, message in (
        ([], "name an experiment"),
        (["polarisation"], "no experiment 'polarisation'; did you mean polarization?"),
        (["sparsity", "--seeds", "0"], "expected a positive whole number, got '0'"),
        (["sparsity", "--scale", "huge"], "invalid choice: 'huge'"),
    ):
        assert main(["reproduce", *words]) == 2
        assert message in capsys.readouterr().err
    assert main(["reproduce", "polarization", "--tables", "--out", str(tmp_path)]) == 0
    assert "no finished cell of scale paper" in capsys.readouterr().out


@pytest.mark.slow
def test_failed_cells_are_an_error(capsys, tmp_path):
    words = ["polarization", "--scale", "smoke", "--datasets", "no-such-data", "--out", str(tmp_path)]
    assert main(["reproduce", *words]) == 1
    assert "failed: no-such-data-bp-0-" in capsys.readouterr().out


def test_local_energy_starts_at_the_error_and_grows(results):
    words = ["local-energy", "--scale", "smoke", "--epochs", "15", "--jobs", "0", "--out", str(results / "longer")]
    assert main(["reproduce", *words]) == 0
    (file,) = (results / "longer" / "local-energy" / "records").glob("*-bp-*.json")
    found = json.loads(file.read_text())["result"]
    assert found["start"] == found["final"]["train_error"]
    none, some, more = found["local_energy"]
    assert none == 0 < some < more


def test_flipped_networks_use_sign_units():
    weights = [torch.tensor([[1.0, -1.0]]), torch.tensor([[1.0], [-1.0]])]
    x = torch.tensor([[2.0, 1.0], [1.0, 2.0], [1.0, 1.0]])
    assert preactivations(weights, x).tolist() == [[1, -1], [-1, 1], [1, -1]]


def test_the_density_of_magnetisations_is_one():
    for epsilon in (0.5, 1.0):
        steps = 20_000
        total = sum(initialization.density(-1 + (2 * k + 1) / steps, epsilon) for k in range(steps)) * 2 / steps
        assert total == pytest.approx(1.0, abs=1e-4)
    assert initialization.expected_polarization(1e-3) == pytest.approx(1e-6, rel=1e-4)
    assert math.isclose(initialization.expected_polarization(1e3), 1.0, abs_tol=2e-3)


def test_settings_of_the_appendix():
    assert tuned(Setup("bp", "mnist", (501,) * 3)).damping == (0.1, 0.1, 0.1, 0.9)
    assert tuned(Setup("mf", "mnist", (101,) * 3)).rho == (1.001, 1.001, 1.001, 0.9)
    assert tuned(Setup("amp", "mnist", (101,) * 3)).rho == (1.0, 1.0, 1.0, 0.9)
    usual = Setup("bp", "mnist", (501, 501))
    assert tuned(usual) == usual


def test_data_sets_are_not_averaged(tmp_path):
    words = ["--scale", "smoke", "--epochs", "1", "--jobs", "0", "--datasets", "digits,digits-two-class"]
    assert main(["reproduce", "polarization", *words, "--out", str(tmp_path)]) == 0
    folder = tmp_path / "polarization"
    assert {path.name for path in folder.glob("*.png")} == {
        "polarization-digits.png",
        "polarization-digits-two-class.png",
    }
    text = (folder / "table.md").read_text()
    assert text.count("Data: digits.") == text.count("Data: digits-two-class.") == 1
    assert text.count("1 epoch, 1 seed") == 2
