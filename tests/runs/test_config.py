"""The options of a run: what may be in a file, what is refused, and the defaults that depend on the data."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from cavity.analysis.metrics import TRAIN_SAMPLES
from cavity.core.algorithms import ALGORITHMS
from cavity.core.channels import ACTIVATIONS, OUTPUTS
from cavity.core.priors import PRIORS
from cavity.data import registry
from cavity.runs import Config, config, measuring
from cavity.runs.config import completed
from cavity.training.recipes import LARGEST_RHO, PAPER, POLARIZATION, SMALLER

EVERYTHING = {
    "task": "classification",
    "encode": "ordinal",
    "impute": "mean",
    "text": "zip",
    "drop": "name,date",
    "dataset": "teacher-student",
    "binary_task": True,
    "data_dir": "somewhere",
    "data_seed": 3,
    "data_options": {"n_train": 250, "teacher_hidden": [3, 3]},
    "test_fraction": 0.25,
    "label": "species",
    "hidden": (7, 5),
    "algorithm": "amp",
    "weights": "ternary",
    "activation": "relu",
    "output": "label",
    "recipe": "paper",
    "schedule": "cosine",
    "rate": (0.1, 0.2, 0.3),
    "rho": (1.1, 1.0, 0.1),
    "damping": (0.5, 0.6, 0.7),
    "init": 0.3,
    "inner_iterations": 2,
    "tolerance": 1e-3,
    "reinforcement": (0.1, 0.2, 0.3),
    "reinforcement_step": 0.01,
    "density": 0.5,
    "bias": True,
    "threshold": True,
    "evaluate_every": 2,
    "epochs": 7,
    "batch_size": 9,
    "seed": 11,
    "device": "cpu",
    "threads": 2,
}


def test_names_are_those_of_the_engine():
    assert tuple(ALGORITHMS) == tuple(config.ALGORITHMS)
    assert tuple(PRIORS) == tuple(config.WEIGHTS)
    assert tuple(ACTIVATIONS) == tuple(config.ACTIVATIONS)
    assert {name.split("-")[0] for name in config.OUTPUTS} == set(OUTPUTS)
    assert set(SMALLER) <= set(registry.names())


#: Options that do not go with some of the others.
NOT_WITH_THE_REST = {"focusing", "layers", "augment", "memory", "readout_samples"}


def test_every_option_survives_the_file(tmp_path):
    assert set(EVERYTHING) == {item.name for item in fields(Config)} - NOT_WITH_THE_REST
    others = [Config(focusing=(3.0, 0.5), hidden=()), Config(layers="conv:3:3,pool:2", augment="shift:2"), Config()]
    others += [Config(memory=6e5), Config(memory=math.inf), Config(readout_samples=5120.0)]
    for number, given in enumerate([Config(**EVERYTHING), *others]):
        file = tmp_path / f"{number}.toml"
        file.write_text(given.to_toml())
        assert Config.from_toml(file) == given


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"batchsize": 3}, "no option 'batchsize'; did you mean batch_size"),
        ({"batch-size": 3}, "did you mean batch_size"),
        ({"zzz": 3}, "no option 'zzz'$"),
        ({"layers": "conv:8"}, "'conv:8' must be conv:CHANNELS:KERNEL"),
        ({"layers": "dense:5", "hidden": (5,)}, "give hidden or layers, not both"),
        ({"layers": "conv:8:3,pool:2,dense:5", "rho": (1.0, 1.0)}, "rho must be one number or 3"),
        ({"augment": "flop"}, "augment must be flip, shift:PIXELS, or both as flip,shift:2, got 'flop'"),
        ({"augment": "shift:-1"}, "augment must be flip"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"epochs": 2.5}, "epochs must be a whole number, got 2.5"),
        ({"epochs": True}, "epochs must be a whole number, got True"),
        ({"epochs": None}, "epochs must be a whole number, got None"),
        ({"bias": 1}, "bias must be true or false, got 1"),
        ({"rho": "high"}, "rho must be a number or a list of numbers, got 'high'"),
        ({"rho": []}, "rho must be a number"),
        ({"rho": float("nan")}, "rho must be a number"),
        ({"hidden": (5, 0)}, "hidden must be at least 1"),
        ({"hidden": (5.5,)}, "hidden must be a list of whole numbers"),
        ({"algorithm": "bip"}, "algorithm must be one of bp, bpi, mf, amp, got 'bip'; did you mean bp"),
        ({"output": "gaussian"}, "output 'gaussian' does not go with task None"),
        ({"output": "sigmoid"}, "output must be one of label, argmax"),
        ({"task": "regression", "output": "argmax"}, "gaussian is that of regression"),
        ({"task": "regression", "binary_task": True}, "binary_task is about classes"),
        ({"task": "ranking"}, "task must be one of classification, regression"),
        ({"binary_task": True, "output": "argmax"}, "use output 'label', or no binary_task"),
        ({"readout_samples": 100, "rho": 1.0}, "readout_samples is for rates that the messages choose"),
        ({"readout_samples": 100, "memory": 50}, "readout_samples is for rates that the messages choose"),
        ({"focusing": (1.0,)}, "focusing must be two numbers"),
        ({"focusing": (2, 1), "reinforcement": 0.5}, "give one of the two"),
        ({"focusing": (2, 1), "weights": "gaussian"}, "use reinforcement"),
        ({"hidden": (5, 5), "rho": (1.0, 0.9)}, "rho must be one number or 3, one for each layer, got 2"),
        ({"data_options": 3}, "data_options must be a table"),
    ],
)
def test_what_is_wrong_is_named(values, message):
    with pytest.raises(ValueError, match=message):
        Config().replace(**values)


@pytest.mark.parametrize("text", ["epochs = ", "\x00", "epochs = 1\nepochs = 2"])
def test_a_file_that_is_no_toml(tmp_path, text):
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"config\.toml: is not a TOML file"):
        Config.from_toml(file)


def test_bytes_that_are_no_text(tmp_path):
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is not a TOML file"):
        Config.from_toml(file)


def test_rho_sums_to_the_same_excess_over_a_run():
    for steps in (200, 46_800):
        first, second, last = PAPER.rho(3, steps)
        assert first == second
        assert (first - 1) * steps == pytest.approx(POLARIZATION, rel=1e-9)
        assert last == 0.9


def test_rho_of_very_short_runs_and_of_one_layer():
    assert PAPER.rho(2, 1) == (LARGEST_RHO, 0.9)
    assert PAPER.rho(1, 1000) == (1 + POLARIZATION / 1000,)


def test_defaults_that_depend_on_the_data():
    digits = completed(Config(), samples=1437, test_samples=360, features=64, classes=10)
    assert (digits.hidden, digits.batch_size, digits.output) == (SMALLER["digits"].hidden, 64, "argmax")
    assert (digits.recipe, digits.rho, digits.damping) == ("annealed", None, None)
    paper = completed(Config(recipe="paper"), samples=1437, test_samples=360, features=64, classes=10)
    assert (paper.rho, paper.damping) == (PAPER.rho(3, 30 * (1437 // 64)), (0.8,))
    assert Config(damping=0.5).recipe == "paper", "numbers of one's own are for the paper's update"
    assert (
        completed(Config(dataset="permuted-digits"), samples=1437, test_samples=360, features=64, classes=10).hidden
        == digits.hidden
    )
    fashion = completed(
        Config(dataset="fashion-mnist", binary_task=True), samples=60_000, test_samples=10_000, features=784, classes=2
    )
    assert (fashion.hidden, fashion.batch_size, fashion.output) == ((501, 501), 128, "label")
    assert completed(Config(dataset="own.csv"), samples=50, test_samples=10, features=4, classes=3).batch_size == 50
    with pytest.raises(ValueError, match="'label' is for two classes, the data have 10: use 'argmax', or binary_task"):
        completed(Config(output="label"), samples=50, test_samples=10, features=4, classes=10)


def test_measuring_is_rare_where_it_costs_and_always_where_it_does_not():
    assert completed(Config(), samples=1437, test_samples=360, features=64, classes=10).evaluate_every == 1
    fashion = {"samples": 60_000, "test_samples": 10_000, "features": 784, "classes": 10}
    for algorithm, products in ((name, one.passes) for name, one in ALGORITHMS.items()):
        every = completed(Config(dataset="fashion-mnist", algorithm=algorithm), **fashion).evaluate_every
        share = measuring.MEASURING * (10_000 + TRAIN_SAMPLES) / (every * products * 60_000)
        assert 0.5 * measuring.SHARE < share <= measuring.SHARE, algorithm
    assert completed(Config(evaluate_every=2), **fashion).evaluate_every == 2


def test_what_is_given_is_kept():
    given = Config(**EVERYTHING)
    assert completed(given, samples=100, test_samples=20, features=4, classes=2) == given


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rho = " + "[" * 5000, "is not a TOML file"),
        ("rho = " + "{a = " * 5000, "is not a TOML file"),
        ("rho = 1" + "0" * 400, "rho must be a number"),
        ("epochs = 1" + "0" * 5000, "is not a TOML file"),
        ("self = 1", "there is no option 'self'"),
        ("a" + ".a" * 8000 + " = 1", "500 dots in a line"),
        ("# " + "a" * (1 << 16), "more than 65536 bytes"),
        ("data_options." + ".".join("a" * 400) + " = 1\nrho = 'a'", "rho must be a number"),
        ("\ud800", "is not a TOML file"),
    ],
)
def test_files_that_no_parser_likes(tmp_path, text, message):
    """Refused in a moment: a key of thousands of parts takes the parser minutes, and deep arrays all of its stack."""
    file = tmp_path / "c.toml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ValueError, match=message) as caught:
        Config.from_toml(file)
    assert str(caught.value).startswith(f"{file}: ")
