"""``cavity entropy`` on a small run, what the report makes of it, and a sweep that chooses by the evidence."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cavity
from cavity.cli import main
from cavity.report.collect import collect
from cavity.report.overview import sections
from cavity.runs import Config, open_run, train
from cavity.runs.entropy import read_entropies


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two classes along a line."""
    path = tmp_path_factory.mktemp("data") / "own.csv"
    random = np.random.default_rng(0)
    rows = ["u,v,w,label"]
    rows += [
        ",".join(f"{n % 2 + 0.2 * value:.3f}" for value in random.standard_normal(3)) + f",{n % 2}" for n in range(80)
    ]
    path.write_text("\n".join(rows))
    return path


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    config = Config(dataset=str(table), hidden=(9,), algorithm="mf", epochs=10, batch_size=16, bias=True)
    return train(config, tmp_path_factory.mktemp("runs") / "run")


def test_it_prints_writes_and_draws(run, capsys):
    status = main(["entropy", str(run.path), "--samples", "40", "--distances", "0.05,0.1"])
    text = capsys.readouterr().out
    found = read_entropies(open_run(run.path))
    assert found is not None
    assert status == (1 if found.evidence is None or None in found.local_entropy else 0)
    assert (found.distances, found.samples, found.evidence_samples) == ((0.05, 0.1), 40, 40)
    assert "log-evidence per training sample (40 samples)" in text
    assert f"{found.local_energy[0]:.2f} %" in text
    assert (run.path / "entropy.png").read_bytes().startswith(b"\x89PNG")
    for entropy, most in zip(found.local_entropy, found.unconstrained, strict=True):
        assert entropy is not None
        assert entropy < most
    # Knowing nothing, every label has probability a half.
    assert found.evidence is not None
    assert -np.log(2) < found.evidence < 0
    shown = {figure.key for section in sections([collect(run, "run")]) for figure in section.figures}
    assert {"local-entropy", "local-energy"} <= shown


def test_links_in_the_place_of_what_it_writes(run, tmp_path):
    victim = tmp_path / "victim"
    for name in ("entropy.json", "entropy.png"):
        victim.write_text("kept")
        (run.path / name).unlink()
        (run.path / name).symlink_to(victim)
        assert main(["entropy", str(run.path), "--samples", "40", "--distances", "0.05,0.1"]) == 0
        assert victim.read_text() == "kept"
        assert not (run.path / name).is_symlink()


def test_the_report_without_it(run, tmp_path):
    (run.path / "entropy.json").rename(tmp_path / "entropy.json")
    try:
        shown = {figure.key for section in sections([collect(run, "run")]) for figure in section.figures}
    finally:
        (tmp_path / "entropy.json").rename(run.path / "entropy.json")
    assert shown.isdisjoint({"local-entropy", "local-energy"})


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"evidence": 1}', "null", "9" * 5000])
def test_something_else_in_its_place(run, tmp_path, content):
    kept = (run.path / "entropy.json").read_bytes()
    (run.path / "entropy.json").write_text(content)
    try:
        with pytest.raises(ValueError, match=r"entropy\.json: is not what cavity entropy writes"):
            read_entropies(run)
        values = json.loads(kept)
        for wrong in ([0.1, "x"], [0.1, 10**400], [0.1, float("nan")], [True, 0.1]):
            (run.path / "entropy.json").write_text(json.dumps({**values, "distances": wrong}))
            with pytest.raises(ValueError, match="is not what"):
                read_entropies(run)
    finally:
        (run.path / "entropy.json").write_bytes(kept)


def test_bad_input(run, capsys):
    assert main(["entropy", str(run.path), "--samples", "0"]) == 2
    assert "samples must be at least 1, got 0" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_by_the_evidence(table, tmp_path):
    """No sample is held out, nothing but the prior is searched, and the best trial has the largest evidence."""
    pytest.importorskip("optuna")
    out = tmp_path / "sweep"
    words = ["--dataset", str(table), "--hidden", "5|15", "--trials", "3", "--batch-size", "16", "--select", "evidence"]
    assert main(["sweep", *words, "--quiet", "--out", str(out)]) == 0
    sweep = cavity.sweep.open_sweep(out)
    assert sweep.plan.space.search == ("init", "hidden")
    assert sweep.plan.sizes.validation == 0
    trial = sweep.best
    assert trial is not None
    assert trial.value == min(one.value for one in sweep.trials if one.value is not None)
    config = sweep.best_config
    data = cavity.runs.folder.load_data(config)
    net = cavity.mlp(3, trial.values["hidden"], 1, init=trial.values["init"], seed=config.seed)
    options = {"algorithm": "amp", "iterations": 100, "tolerance": 0.01, "batch_size": 16}
    again = cavity.entropy.log_evidence(net, data.x_train, data.y_train, **options).value
    assert trial.value == pytest.approx(-again / len(data.x_train), rel=1e-4)


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--objective", "nll"], "--objective does not go with"), (["--search", "rho"], "does not depend on rho")],
)
def test_what_does_not_go_with_it(table, capsys, words, said):
    pytest.importorskip("optuna")
    assert main(["sweep", "--dataset", str(table), "--select", "evidence", *words]) == 2
    assert said in capsys.readouterr().err
