"""What is searched: ranges, scales, and the configurations they make."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cavity.runs import Config
from cavity.studies.sweep.plan import Plan
from cavity.studies.sweep.space import LISTED, PAPER_DEFAULT, SEARCHABLE, AroundOne, Space, default_widths
from studies.sweep.helpers import tiny, tiny_plan


def test_rho_is_searched_by_its_distance_from_1():
    axis = AroundOne("rho", 0.9, 1.1, unit=1e-6)
    per_decade = [axis.coordinate(1 + 10.0**power) for power in range(-5, 0)]
    steps = [upper - lower for lower, upper in pairwise(per_decade)]
    assert max(steps) == pytest.approx(min(steps), rel=0.01)
    assert axis.coordinate(0.99) == pytest.approx(-axis.coordinate(1.01))
    assert axis.coordinate(1.0) == 0


@pytest.mark.parametrize("name", SEARCHABLE)
def test_values_come_back_from_their_coordinates(name):
    (axis,) = Space((name,)).resolved((101,), 100).axes(100)
    values = axis.values if name in LISTED else [axis.low + share * (axis.high - axis.low) for share in (0, 0.3, 1)]
    for value in values:
        assert axis.holds(value)
        back = axis.value(axis.coordinate(value))
        assert back == value if name in LISTED else back == pytest.approx(value, rel=1e-12)


def test_default_ranges_fit_the_run():
    long, short = (Space(PAPER_DEFAULT).resolved((201, 201), steps) for steps in (10_000, 20))
    assert long.rho == (1 - 5e-4, 1 + 1e-3)
    assert short.rho == (0.75, 1.1)
    assert long.hidden == ((201,), (51, 51), (101, 101), (201, 201))
    usual = Space().resolved((201,), 100, batch_size=64, epochs=10, most=100)
    assert (usual.batch_size, usual.epochs) == ((16, 32, 64, 100), (2, 5, 10))
    with pytest.raises(ValueError, match="epochs is searched, but 1 leaves no choice"):
        Space(("epochs",)).resolved((201,), 100, epochs=1)
    assert default_widths((501,)) == ((501,), (127,), (251,))
    with pytest.raises(ValueError, match="no hidden layers: give a list"):
        default_widths(())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": ()}, "search names nothing"),
        ({"search": ("dampin",)}, "'dampin', which cannot be searched; did you mean damping"),
        ({"search": ("seed",)}, "cannot be searched; there are rho"),
        ({"search": ("epochs",), "epochs": (3, 3)}, "epochs must have at least two different choices"),
        ({"batch_size": (0, 3)}, "choices of batch_size must be whole numbers of at least 1"),
        ({"search": ("rho",), "damping": (0, 0.5)}, "damping has a range but search does not name it"),
        ({"search": PAPER_DEFAULT, "rho": (1.1, 0.9)}, "range of rho must be two numbers, the smaller first"),
        ({"search": PAPER_DEFAULT, "rho": (0.0, 0.9)}, "range of rho must lie above 0"),
        ({"search": PAPER_DEFAULT, "damping": (0.5, 1.0)}, r"range of damping must lie in \[0, 1\)"),
        ({"init": (0, 1)}, "range of init must lie above 0"),
        ({"init": (1, float("nan"))}, "range of init must be two numbers"),
        ({"hidden": ((51,), (51,))}, "hidden must have at least two different choices"),
        ({"hidden": ((51,), (0,))}, "widths of hidden must be whole numbers of at least 1"),
    ],
)
def test_errors_name_the_option(options, message):
    with pytest.raises(ValueError, match=message):
        Space(**options)


def test_a_trial_is_the_configuration_with_its_values():
    plan = tiny_plan(Space(("rho", "damping", "init", "hidden"), hidden=((15,), (15, 15))))
    config = plan.configuration({"rho": 1.01, "damping": 0.5, "init": 0.3, "hidden": (15, 15)})
    assert (config.rho, config.damping, config.init) == ((1.01, 1.01, 0.9), (0.5,), 0.3)
    assert (config.hidden, config.epochs, config.algorithm, config.evaluate_every) == ((15, 15), 4, "mf", 1)
    assert plan.configuration({"rho": 1.01, "damping": 0.5, "init": 0.3, "hidden": (15,)}).rho == (1.01, 0.9)


def test_mini_batches_and_epochs_are_those_of_the_trial():
    plan = tiny_plan(Space(("batch_size", "epochs")))
    config = plan.configuration({"batch_size": 32, "epochs": 2})
    assert (config.batch_size, config.epochs, config.recipe) == (32, 2, "annealed")
    both = tiny_plan(Space(("rho", "epochs"), epochs=(2, 4)))
    rho = both.transferred({"rho": 1.01, "epochs": 2}).rho[0]
    assert (rho - 1) * 2 * (1438 // 128) == pytest.approx(0.01 * 2 * (1150 // 128))


def test_errors_of_numbers_are_no_percentages():
    config = tiny(dataset="somewhere.csv", task="regression")
    plan = tiny_plan(Space(("init",)), config)
    assert (plan.title, plan.shown(0.51234)) == ("validation RMSE", "0.5123")
    assert tiny_plan(Space(("init",)), config, objective="error-bayes").title == "validation Bayesian RMSE"
    assert tiny_plan(Space(("init",))).shown(4.2) == "4.20 %"


@pytest.mark.parametrize(
    ("given", "values", "rho"),
    [
        (None, {"last_rho": 0.8}, (1.05, 0.8)),
        ((1.001,), {"last_rho": 0.8}, (1.001, 0.8)),
        ((1.001, 0.95), {"last_rho": 0.8}, (1.001, 0.8)),
        ((1.001, 0.95), {"rho": 1.01}, (1.01, 0.95)),
        (None, {"rho": 1.01, "last_rho": 0.8}, (1.01, 0.8)),
    ],
)
def test_the_last_layer_has_a_rho_of_its_own(given, values, rho):
    plan = tiny_plan(Space(tuple(values)), tiny(rho=given))
    assert plan.configuration(values).rho == rho


def test_the_first_trial_is_what_train_would_do():
    messages = tiny_plan(Space(), Config(epochs=30))
    assert messages.config.recipe == "annealed"
    assert messages.usual() == {"hidden": (201, 201), "batch_size": 64, "epochs": 30, "init": 1.0}
    plan = tiny_plan(Space(PAPER_DEFAULT), Config(epochs=30))
    assert plan.config.recipe == "paper"
    usual = plan.usual()
    assert usual == {"rho": 1 + 2 / (30 * 17), "damping": 0.8, "init": 1.0, "hidden": (201, 201)}
    assert plan.configuration(usual).rho == (usual["rho"], usual["rho"], 0.9)


def test_on_the_whole_training_set_rho_is_as_strong():
    plan = tiny_plan(config=tiny(batch_size=64, evaluate_every=None))
    config = plan.transferred({"rho": 1.01, "damping": 0.5, "init": 1.0})
    steps, more_steps = 4 * (1150 // 64), 4 * (1438 // 64)
    assert config.rho is not None
    assert (config.rho[0] - 1) * more_steps == pytest.approx(0.01 * steps)
    assert config.rho[1] == 0.9
    assert config.evaluate_every is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials must be a whole number of at least 1, got 0"),
        ({"objective": "speed"}, "objective must be one of error, error-bayes, nll, evidence, got 'speed'"),
        ({"validation": 1.0}, "validation must be a share between 0 and 1"),
        ({"validation": 0.0001}, "leaves samples on both sides, got 0.0001 of 1438"),
        ({"config": tiny(damping=(0.8, 0.9))}, "damping is searched as one number"),
        ({"space": Space(("last_rho",)), "config": tiny(hidden=())}, "only one rho: search rho"),
        (
            {"space": Space(("hidden",), hidden=((15,), (15, 15))), "config": tiny(rho=(1, 0.9))},
            "rho must be one number or 3",
        ),
    ],
)
def test_a_plan_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tiny_plan(**options)


def test_a_plan_is_written_and_read(tmp_path):
    space = Space(("hidden", "last_rho", "rho"), hidden=((15,), (15, 15)))
    plan = tiny_plan(space, objective="nll", prune=False, trials=7)
    path = tmp_path / "sweep.toml"
    path.write_text(plan.to_toml())
    assert Plan.from_toml(path) == plan
    path.write_text("trials = 3")
    with pytest.raises(ValueError, match=r"sweep.toml: is not the plan of a sweep"):
        Plan.from_toml(path)
