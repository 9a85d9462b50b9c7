"""A plug-in is a class and its place in a registry, an option is a field: with nothing else to do it is seen from
everywhere."""

from __future__ import annotations

import importlib.util
import re
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest

import cavity
import cavity.cli.train
import cavity.runs.folder
from cavity.cli import main
from cavity.core.algorithms import ALGORITHMS, MF
from cavity.core.channels import ACTIVATIONS, OUTPUTS, ArgMax, Sign
from cavity.core.priors import PRIORS, Binary
from cavity.data.raw import Part, Raw
from cavity.data.registry import SOURCES, Source
from cavity.runs import Config, open_run
from cavity.runs.measuring import interval
from cavity.runs.options import option
from cavity.runs.training import reopen
from cavity.studies.bench import contenders, running
from cavity.util.registry import Registry

ROOT = Path(__file__).parents[1]
SUMMARY = "a toy that nobody needs"


class ToyActivation(Sign):
    name, summary = "toy-activation", SUMMARY


class ToyPrior(Binary):
    name, summary = "toy-prior", SUMMARY


class ToyAlgorithm(MF):
    name, summary = "toy-algorithm", SUMMARY


class ToyOutput(ArgMax):
    name, summary = "toy-output", SUMMARY


def read_toy(source, request):
    random = np.random.default_rng(request.seed)
    parts = [Part(random.normal(size=(n, 6)), np.arange(n) % 3) for n in (60, 30)]
    return Raw(source.name, *parts, source.classes, "overall")


TOY_DATA = Source("toy-data", SUMMARY, classes=("a", "b", "c"), read=read_toy)

#: What is added: the option that names it, the registry, the class, and its list in the documentation.
PLUGINS = {
    "activation": ("activation", ACTIVATIONS, ToyActivation, "activations"),
    "prior": ("weights", PRIORS, ToyPrior, "weights"),
    "algorithm": ("algorithm", ALGORITHMS, ToyAlgorithm, "algorithms"),
    "output": ("output", OUTPUTS, ToyOutput, "outputs"),
}
#: What a newcomer does: one entry each.
STEPS = {
    **{kind: ["a class in a file of its own", "its place in the registry"] for kind in PLUGINS},
    "data set": ["an entry with its reader"],
    "option": ["a field"],
}


@contextmanager
def registered(registry, one):
    registry.register(one)
    try:
        yield
    finally:
        registry.unregister(one.name)


@pytest.fixture(params=PLUGINS)
def plugin(request):
    """One toy of each kind, registered for the time of a test."""
    name, registry, one, listed = PLUGINS[request.param]
    if not isinstance(registry, Registry):
        pytest.skip(f"{name} is kept in a plain dictionary")
    with registered(registry, one):
        yield name, one, listed
    assert one.name not in registry


@pytest.fixture
def toy_data(monkeypatch):
    monkeypatch.setitem(SOURCES, TOY_DATA.name, TOY_DATA)


def documented(text):
    """A page of the documentation with its lists."""
    spec = importlib.util.spec_from_file_location("lists", ROOT / "docs/hooks/lists.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook.expanded(text)


def help_of(capsys, *words):
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    return capsys.readouterr().out


def trained(folder, *words):
    small = ["--hidden", "5", "--epochs", "1", "--batch-size", "30", "--threads", "1", "--device", "cpu", "--quiet"]
    return main(["train", *small, "--out", str(folder), *words])


def test_a_plugin_is_taken_by_the_command_line_and_the_file(plugin, toy_data, capsys, tmp_path):
    name, one, _ = plugin
    assert one.name in help_of(capsys, "train")
    assert trained(tmp_path / "run", f"--{name}", one.name, "--dataset", TOY_DATA.name) == 0
    assert getattr(Config.from_toml(tmp_path / "run/config.toml"), name) == one.name
    trainer = reopen(tmp_path / "run").trainer
    net = trainer.net
    parts = [*net.activations, net.output, trainer.method.algorithm, *(layer.prior for layer in net.weighted())]
    assert any(isinstance(part, one) for part in parts)
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    assert (
        main(["train", "--config", str(tmp_path / "run/config.toml"), "--out", str(tmp_path / "two"), "--quiet"]) == 0
    )
    wrong = one.name.replace("toy", "tay")
    assert trained(tmp_path / "no", f"--{name}", wrong) == 2
    assert one.name in capsys.readouterr().err


def test_a_plugin_is_taken_by_the_estimator(plugin):
    name, one, _ = plugin
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 2
    if name == "output":
        pytest.skip("an estimator's output follows from its labels")
    estimator = cavity.MessagePassingClassifier((5,), epochs=1, random_state=0, **{name: one.name})
    assert estimator.fit(X, y).predict(X).shape == (60,)


def test_a_plugin_is_in_the_documentation(plugin):
    _, one, listed = plugin
    assert f"| `{one.name}` | {SUMMARY}" in documented(f"<!-- list: {listed} -->")
    assert f"<!-- list: {listed} -->" in (ROOT / "docs/names.md").read_text()


def test_an_algorithm_is_measured_and_races(toy_data):
    with registered(ALGORITHMS, ToyAlgorithm):
        assert ToyAlgorithm.name in contenders.names()
        assert contenders.title_of(ToyAlgorithm.name) == "TOY-ALGORITHM"
        data = running.dataset(TOY_DATA.name, None, False)
        trainer = contenders.build(ToyAlgorithm.name, [6, 5, 3], "cpu", seed=0, compile=False)
        trainer.step(data.x_train[:10], data.y_train[:10])
        assert isinstance(trainer.method.algorithm, ToyAlgorithm)
        assert interval(ToyAlgorithm.name, 60_000, 10_000, 10**6) == interval("mf", 60_000, 10_000, 10**6)


def test_a_data_set_is_one_entry(toy_data, capsys, tmp_path):
    assert main(["data", "list"]) == 0
    assert re.search(rf"toy-data +here +{SUMMARY}", capsys.readouterr().out)
    assert trained(tmp_path / "run", "--dataset", "permuted-toy-data", "--seed", "3") == 0
    run = open_run(tmp_path / "run")
    assert run.load_dataset().classes == ("a", "b", "c")
    assert trained(tmp_path / "no", "--dataset", "toy-dat") == 2
    assert "did you mean toy-data?" in capsys.readouterr().err
    assert f"| `toy-data` | {SUMMARY} | nothing |" in documented("<!-- list: data-sets -->")
    data = cavity.data.load("toy-data")
    assert cavity.MessagePassingClassifier((5,), epochs=1).fit(data.x_train, data.y_train).classes_.size == 3


@dataclass(frozen=True)
class Wider(Config):
    """One option more."""

    flavour: float = option(3.0, "a toy option", least=1)


@pytest.fixture
def wider(monkeypatch):
    for module in (cavity.cli.train, cavity.runs.folder):
        monkeypatch.setattr(module, "Config", Wider)


def test_an_option_is_one_field(wider, toy_data, capsys, tmp_path):
    assert re.search(r"--flavour X +a toy option \(default: 3\)", help_of(capsys, "train"))
    assert trained(tmp_path / "run", "--dataset", "toy-data", "--flavour", "4.5") == 0
    assert "flavour = 4.5" in (tmp_path / "run/config.toml").read_text()
    assert open_run(tmp_path / "run").config.flavour == 4.5
    for words, message in {
        ("--flavour", "0.5"): "flavour must be at least 1, got 0.5",
        ("--flavor", "2"): "there is no option --flavor; did you mean --flavour?",
    }.items():
        assert trained(tmp_path / "no", *words) == 2
        assert message in capsys.readouterr().err
    file = tmp_path / "own.toml"
    file.write_text("flavour = 'sweet'")
    assert trained(tmp_path / "no", "--config", str(file)) == 2
    assert "own.toml: flavour must be a number, got 'sweet'" in capsys.readouterr().err


def test_every_option_is_in_the_documentation():
    listed = documented("<!-- list: options -->")
    assert all(f"| `{item.name}` | {item.metadata['help']}" in listed for item in fields(Config))
    assert "<!-- list: options -->" in (ROOT / "docs/names.md").read_text()


def test_the_table_of_places_counts_right():
    """The steps are those that the tests above take, and no more."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = dict(re.findall(r"^\| an? ([a-z ]+) \| (\d) \|", text, re.MULTILINE))
    assert {kind: int(count) for kind, count in rows.items()} == {kind: len(steps) for kind, steps in STEPS.items()}
