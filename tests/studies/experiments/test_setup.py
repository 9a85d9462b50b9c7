"""Setups survive JSON, and build what they say."""

from __future__ import annotations

import json

import pytest
import torch

from cavity.baselines import (
    BayesBiNNTrainer,
    BinaryNetTrainer,
    ElasticTrainer,
    ExpectationTrainer,
    MetaplasticTrainer,
    NormalizedTrainer,
    PerceptronTrainer,
)
from cavity.studies.experiments import Request, Size, table_datasets
from cavity.studies.experiments.experiment import Cell, Record, find, longest
from cavity.studies.experiments.setup import METHODS, Setup, build, load
from cavity.training.trainer import Trainer
from studies.experiments.helpers import cell, record, tiny


def test_a_setup_survives_json():
    setup = tiny(rho=(1.0, 1.0, 0.9), damping=(0.1, 0.2, 0.3))
    tempered = setup.replace(last_evidence=0.2)
    for one in (setup, tempered):
        assert Setup.from_dict(json.loads(json.dumps(one.as_dict()))) == one
    # Records from before there was a last_evidence are still found by their name.
    assert "last_evidence" not in setup.as_dict()
    assert tempered.as_dict()["last_evidence"] == 0.2
    with pytest.raises(ValueError, match="a setup has activation"):
        Setup.from_dict({"method": "bp"})
    with pytest.raises(ValueError, match=r"method must be one of bp, .*got 'belief'"):
        tiny(method="belief")


def test_keys_tell_cells_apart_and_are_the_same_after_json():
    one = cell()
    assert Cell.from_dict(json.loads(json.dumps(one.as_dict()))).key == one.key
    others = [cell(seed=1), cell(epochs=3), cell(density=0.5), Cell("digits-mf", one.setup, "laptop")]
    others.append(Cell("digits-mf", one.setup, "smoke", {"sparsity": 0.5}))
    assert len({other.key for other in (one, *others)}) == 6
    assert one.key.startswith("digits-mf-0-")


@pytest.mark.parametrize("method", METHODS)
def test_each_method_is_built_as_it_says(method):
    kinds = {
        "ebp": ExpectationTrainer,
        "sgd": PerceptronTrainer,
        "adam": PerceptronTrainer,
        "bayesbinn": BayesBiNNTrainer,
        "ewc": ElasticTrainer,
        "metaplastic": MetaplasticTrainer,
        "binarynet": BinaryNetTrainer,
        "binarynet-adam": BinaryNetTrainer,
        "binarynet-bn": NormalizedTrainer,
    }
    kind = kinds.get(method, Trainer)
    two = tiny(method=method, dataset="digits-two-class")
    data = load(two)
    assert set(data.y_train.tolist()) == {-1, 1}
    assert (len(data.x_train), len(data.x_test)) == (100, 50)
    assert isinstance(build(two, data), kind)
    assert build(two, data).net.outputs == 1
    assert build(tiny(method=method), load(tiny())).net.outputs == 10


def test_options_reach_the_trainer():
    setup = tiny(method="bp", rho=(1.1, 1.2, 0.7), damping=(0.1, 0.2, 0.3), density=0.5, init=2.0, output="exact")
    trainer = build(setup, load(setup))
    assert (trainer.plan.rho, trainer.plan.damping) == (setup.rho, setup.damping)
    assert trainer.net.output.method == "exact"
    layer = trainer.net.weighted()[0]
    assert 0.3 < layer.free_weights / layer.field.numel() < 0.7
    assert float(layer.field[layer.mask].std()) == pytest.approx(2.0, rel=0.2)
    assert build(tiny(method="bp"), load(tiny())).plan.rho == (1.0001, 1.0001, 0.9)


def test_options_reach_the_baselines():
    setup = tiny(method="bayesbinn", activation="gate", density=0.5, lr=0.25, schedule="cosine")
    trainer = build(setup, load(setup))
    assert (trainer.optimizer.lr, trainer.schedule is None) == (0.25, False)
    assert trainer.net.layers[0].threshold == pytest.approx(32**0.5)
    with pytest.raises(ValueError, match="activation must be one of sign, gate, got 'relu'"):
        build(setup.replace(method="binarynet", activation="relu"), load(setup))


def test_a_request_changes_what_it_names():
    sizes = {"paper": Size(100, 5, ("mnist",), 101), "laptop": Size(30, 1, ("mnist",), 51)}
    assert Request().size(sizes) == sizes["paper"]
    changed = Request("laptop", seeds=2, datasets=("digits",)).size(sizes)
    assert changed == Size(30, 2, ("digits",), 51)


def test_of_shorter_and_longer_runs_the_longest_counts():
    short, long = record(3.0, epochs=2), record(2.0, epochs=5)
    other_seed, short_seed = record(1.0, epochs=5, seed=1), record(1.0, epochs=2, seed=2)
    other_method = record(1.0, epochs=2, method="amp")
    assert longest([short, other_seed, long]) == [other_seed, long]
    assert longest([long, other_seed, short]) == [long, other_seed]
    # What is averaged over seeds has trained as long; another method may have trained for less.
    assert longest([long, short_seed, other_method]) == [long, other_method]


def test_records_survive_json():
    one = record(3.0)
    assert Record.from_dict(json.loads(json.dumps(one.as_dict()))) == one


def test_unknown_experiments_are_named():
    with pytest.raises(ValueError, match="no experiment 'sparcity'; did you mean sparsity"):
        find("sparcity")


def test_a_damped_field_of_the_last_layer_is_a_smaller_rho_and_less_evidence():
    """h ← αh + (1 − α)(ρh + H), with H from the same step with a damped mean."""
    alpha, rho = 0.8, 0.9
    printed, released = tiny(hidden=(11, 11)), tiny(hidden=(11, 11), **table_datasets.FIELD_DAMPED)
    data = load(printed)
    fields = []
    for setup in (printed, released):
        trainer = build(setup, data)
        start = trainer.net.layers[-1].field.clone()
        trainer.step(data.x_train[:50], data.y_train[:50])
        fields.append(trainer.net.layers[-1].field)
    H = fields[0] - rho * start
    expected = alpha * start + (1 - alpha) * (rho * start + H)
    torch.testing.assert_close(fields[1], expected)
    torch.testing.assert_close(trainer.net.layers[-1].mean, torch.tanh(expected))
