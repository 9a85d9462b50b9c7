"""The comparisons: their figures are what the documents show, and the estimator's promise holds."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch

from cavity import data

ROOT = Path(__file__).parents[1]
#: Points of accuracy that the defaults may stay behind MLPClassifier.
ALLOWED = 0.5
#: What the comparison of the estimators wrote.
WRITTEN = json.loads((ROOT / "docs/data/estimators.json").read_text())


@pytest.fixture
def script(monkeypatch):
    """Imports a script by its name."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))

    def load(name: str) -> ModuleType:
        sys.modules.pop(name, None)
        return import_module(name)

    return load


def behind(rows: list[dict]) -> dict[str, float]:
    """How many points message passing is behind MLPClassifier on each set."""
    accuracy = {(row["data"], row["model"]): row["accuracy"] for row in rows}
    return {
        name: accuracy[name, "MLPClassifier"] - accuracy[name, "message passing"]
        for name in dict.fromkeys(row["data"] for row in rows)
    }


def test_the_estimator_keeps_up_on_wine(script) -> None:
    rows = script("compare_estimators").compare(["wine"], folds=5)
    assert behind(rows)["wine"] <= ALLOWED
    assert all(row["nll"] < 0.2 and row["ece"] < 0.1 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in behind(WRITTEN) if name != "wine"])
def test_the_estimator_keeps_up_everywhere(script, name: str) -> None:
    if "MNIST" in name and not any(one.name == "mnist" and one.present for one in data.available()):
        pytest.skip("MNIST is not on this machine")
    assert behind(script("compare_estimators").compare([name], folds=5))[name] <= ALLOWED


def test_written_estimator_figures_are_complete_and_keep_the_promise(script) -> None:
    module = script("compare_estimators")
    assert set(behind(WRITTEN)) == set(module.DATA)
    assert all(points <= ALLOWED for points in behind(WRITTEN).values())
    assert (ROOT / "docs/data/estimators.md").read_text() == module.table(WRITTEN)


def judged(script, numbers: range) -> list[str]:
    """The outcomes of some fits of the campaign; each silent or undocumented failure is an error."""
    module = script("divergence_campaign")
    found = [module.outcome(module.settings(number)) for number in numbers]
    assert [record for record in found if record["outcome"] in ("SILENT", "CRASH")] == []
    return [record["outcome"] for record in found]


def test_no_fit_is_ruined_in_silence(script) -> None:
    outcomes = judged(script, range(10))
    assert {"ok", "warned"} <= set(outcomes)


@pytest.mark.slow
def test_no_fit_of_many_is_ruined_in_silence(script) -> None:
    judged(script, range(10, 150))


def test_the_campaign_goes_on_where_it_was_stopped_and_fails_if_a_fit_is_silent(script, tmp_path, monkeypatch) -> None:
    module, asked = script("divergence_campaign"), []

    def outcome(chosen: dict) -> dict:
        asked.append(chosen["number"])
        return {**chosen, "outcome": "SILENT" if chosen["number"] == 3 else "ok"}

    monkeypatch.setattr(module, "outcome", outcome)
    for fits, status in ((2, 0), (4, 1)):
        monkeypatch.setattr("sys.argv", ["campaign", "--fits", str(fits), "--json", str(tmp_path / "found.json")])
        assert module.main() == status
    assert asked == [0, 1, 2, 3]


def outcome(module: ModuleType, method: str):
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(200, 10, generator=generator)
    labels = torch.multinomial(torch.softmax(z, dim=1), 1, generator=generator).squeeze(1)
    return module.Outcome(method, torch.softmax(z, dim=1), torch.full((50, 10), 0.1), 12.3, 4567), labels


def test_uncertainty_figures_table_and_plots_come_from_what_was_written(script, tmp_path: Path) -> None:
    module = script("compare_uncertainty")
    for method in ("bp-bayes", "mlp"):
        found, labels = outcome(module, method)
        module.write(tmp_path, module.figures(found, labels, "mnist", epochs=2))
    written = json.loads((tmp_path / "mnist-mlp.json").read_text())
    assert written["auroc"] == 1.0
    assert written["accuracy"] == 100 * float((found.test.argmax(dim=1) == labels).double().mean())
    script("uncertainty_figures").draw(tmp_path, "mnist", list(module.TITLES), tmp_path)
    text = (tmp_path / "mnist.md").read_text()
    assert len(text.splitlines()) == 4
    assert f"| scikit-learn MLP | 2 | {written['accuracy']:.2f} |" in text
    for name in ("reliability", "bars"):
        assert (tmp_path / f"uncertainty-mnist-{name}.png").stat().st_size > 10_000


def test_temperature_is_fitted_on_the_held_out_images(script) -> None:
    module = script("compare_uncertainty")
    x = torch.randn(3000, 10, generator=torch.Generator().manual_seed(1))
    y = torch.multinomial(torch.softmax(x, dim=1), 1, generator=torch.Generator().manual_seed(2)).squeeze(1)
    images = module.Images(x[:0], y[:0], x[:2000], y[:2000], x[2000:], y[2000:], x[:10])
    found = module.tempered("bp-point", lambda part: 7 * part, images, 0.0, 1)
    assert float((found.test - torch.softmax(x[2000:], dim=1)).abs().max()) < 0.05


def test_written_uncertainty_figures_agree_with_their_table(script) -> None:
    module, pictures = script("compare_uncertainty"), script("uncertainty_figures")
    folder = ROOT / "docs/data/uncertainty"
    rows = pictures.records(folder, "fashion-mnist", list(module.TITLES))
    assert {row["method"] for row in rows} == set(module.TITLES)
    assert (folder / "fashion-mnist.md").read_text() == pictures.table(rows)


@pytest.mark.parametrize("method", ["binarynet", "bayesbinn", "ewc", "metaplastic"])
def test_rivals_are_tuned_on_held_out_samples(script, method: str) -> None:
    module = script("tune_rivals")
    base = data.load("digits")
    trainer = module.build(method, base.n_features, base.n_classes, 31, {"lr": 0.001, "activation": "gate"})
    found = module.measured(trainer, base, train=1000, tasks=2, told=True)
    assert trainer.steps == 16
    right = [trainer.net.predict(base.permuted(seed).x_train[1000:]) == base.y_train[1000:] for seed in (1000, 1001)]
    first, second = (100 * float(hits.double().mean()) for hits in right)
    assert found["first task"] == pytest.approx(first, abs=1e-3)
    assert found["mean of the last 5"] == pytest.approx((first + second) / 2, abs=1e-3)
    assert ("mean of the last 5, Bayesian" in found) == (method == "bayesbinn")


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_front_pages_show_the_table_that_was_measured(page, script):
    text = (ROOT / page).read_text()
    assert script("front_page").with_table(text, WRITTEN) == text


def test_of_two_values_the_better_one_is_bold(script):
    front = script("front_page")
    assert front.pair("97.4", "97.3", larger=True) == "**97.4** | 97.3"
    assert front.pair("0.11", "0.08", larger=False) == "0.11 | **0.08**"
    assert front.pair("1.0", "1.0", larger=True) == "1.0 | 1.0"
    with pytest.raises(ValueError, match="it has 0"):
        front.with_table("no place", WRITTEN)


def test_mixtures_of_certain_and_uncertain_weights_end_at_the_two_predictions(script) -> None:
    """All most probable is point-wise prediction; all uncertain is where Bayesian prediction has its mean, as long as
    no posterior was kept."""
    digits = data.load("digits")
    tune = script("tune_convolutions")
    trainer = tune.build("mf", "conv:8:3,dense:21", digits.image_shape, {"kappa": 0.1})
    trainer.step(digits.x_train[:64], digits.y_train[:64])
    net, pair = trainer.net, (digits.x_test, digits.y_test)
    found = tune.mixtures(net, *pair)
    wrong = {name: 100 * float((net.predict(pair[0], name) != pair[1]).float().mean()) for name in ("point", "bayes")}
    assert found["certain below, certain readout"] == pytest.approx(wrong["point"])
    by_means = net.predict_moments(pair[0]).mean.argmax(dim=1) != pair[1]
    assert found["uncertain below, uncertain readout"] == pytest.approx(100 * float(by_means.float().mean()))
