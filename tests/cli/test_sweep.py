"""``cavity sweep`` on the command line: what is searched, what is fixed, and errors that name the option."""

from __future__ import annotations

import subprocess
import sys

import pytest

import cavity.studies.sweep.study
from cavity.cli import main
from cavity.cli.parser import Parser
from cavity.cli.sweep import add_arguments, asked
from cavity.runs import Config
from cavity.studies.sweep import Space
from studies.sweep.helpers import ENVIRONMENT, tiny_plan


def parsed(*words):
    parser = Parser(prog="cavity sweep", description="")
    add_arguments(parser)
    return asked(parser.parse_args(words))


def failure(capsys, *words):
    assert main(["sweep", *words]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_what_has_one_value_is_not_searched():
    assert parsed() == (Config(), Space())
    assert parsed("--hidden", "101", "--epochs", "3") == (
        Config(hidden=(101,), epochs=3),
        Space(("batch_size", "init")),
    )
    assert parsed("--rho", "1.001,0.9", "--init", "0.5", "--damping", "0.7") == (
        Config(rho=(1.001, 0.9), init=0.5, damping=(0.7,)),
        Space(("hidden",)),
    )


def test_the_numbers_of_the_paper_are_searched_with_its_recipe():
    assert parsed("--recipe", "paper", "--hidden", "101")[1] == Space(("rho", "damping", "init"))
    assert parsed("--batch-size", "32|64", "--epochs", "5")[1] == Space(
        ("hidden", "batch_size", "init"), batch_size=(32, 64)
    )
    assert parsed("--batch-size", "32")[0] == Config(batch_size=32)


def test_ranges_and_lists_are_searched():
    config, space = parsed("--rho", "0.99..1.001", "--hidden", "51,51|101|none", "--last-rho", "0.5..0.9")
    assert config == Config()
    assert space == Space(
        ("rho", "damping", "init", "hidden", "last_rho"),
        rho=(0.99, 1.001),
        hidden=((51, 51), (101,), ()),
        last_rho=(0.5, 0.9),
    )
    assert parsed("--search", "last-rho,init")[1] == Space(("last_rho", "init"))
    assert parsed("--search", "init", "--hidden", "11")[0] == Config(hidden=(11,))


def test_a_configuration_is_where_the_search_begins(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(Config(rho=(1.002, 0.95), damping=(0.7,), hidden=(15,), epochs=3, batch_size=64).to_toml())
    config, space = parsed("--config", str(path), "--epochs", "5", "--search", "rho,damping")
    assert (config.epochs, config.hidden) == (5, (15,))
    assert tiny_plan(space, config).usual() == {"rho": 1.002, "damping": 0.7}
    assert tiny_plan(space, config).configuration({"rho": 1.1, "damping": 0.5}).rho == (1.1, 0.95)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rho", "a..b"], "argument --rho: expected a range such as 0.5..0.9"),
        (["--batch-size", "32|x"], "argument --batch-size: expected a positive whole number"),
        (["--epochs", "5|5"], "epochs must have at least two different choices"),
        (["--search", "epochs", "--epochs", "5"], "--epochs has one value but --search names it"),
        (["--rho", "1.1..0.9"], "range of rho must be two numbers, the smaller first"),
        (["--damping", "0.5..1"], "range of damping must lie in [0, 1)"),
        (["--hidden", "51|x"], "argument --hidden: expected widths"),
        (["--init", "1,2"], "--init must be one number or a range"),
        (["--last-rho", "0.9"], "--last-rho takes a range"),
        (["--search", "roh"], "did you mean rho?"),
        (["--search", "hidden", "--hidden", "51"], "--hidden has one value but --search names it"),
        (["--search", "rho", "--damping", "0.1..0.5"], "--damping has a range but --search does not name it"),
        (["--batch-size", "9", "--epochs", "3", "--init", "1", "--hidden", "51"], "nothing is left to search"),
        (["--trials", "0"], "trials must be a whole number of at least 1"),
        (["--validation", "0"], "validation must be a share between 0 and 1"),
        (["--objective", "speed"], "argument --objective: invalid choice"),
        (["--trial", "3"], "no option --trial; did you mean --trials?"),
        (["--dataset", "nothing-like-this"], "nothing-like-this"),
        (["--resume", "nowhere"], "nowhere is not a folder"),
        (["--resume", "nowhere", "--epochs", "3"], "--epochs does not go with --resume"),
        (["--resume", "nowhere", "--rho", "0.9..1"], "--rho does not go with --resume"),
        (["--resume", "nowhere", "--no-prune"], "--no-prune does not go with --resume"),
    ],
)
def test_errors_name_the_option(words, message, capsys, tmp_path):
    out = [] if "--resume" in words else ["--out", str(tmp_path / "new")]
    assert message in failure(capsys, *words, *out)
    assert not (tmp_path / "new").exists()


def test_jobs_must_be_positive(capsys, tmp_path):
    words = ["--hidden", "11", "--trials", "1", "--out", str(tmp_path / "new"), "--quiet"]
    assert "jobs must be a whole number of at least 1, got 0" in failure(capsys, *words, "--jobs", "0")


def test_a_folder_in_use_is_not_overwritten(capsys, tmp_path):
    (tmp_path / "sweep.toml").write_text("")
    assert "exists already: go on with it by --resume" in failure(capsys, "--out", str(tmp_path))


def test_a_missing_optuna_is_one_clear_error(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(cavity.studies.sweep.study, "find_spec", lambda name: None)
    said = failure(capsys, "--out", str(tmp_path / "new"))
    assert said == 'cavity: a sweep needs Optuna: pip install "cavity[sweep]"\n'
    with pytest.raises(ImportError, match="needs Optuna"):
        cavity.studies.sweep.run(Config(), out=tmp_path / "new")


def test_help_is_quick_and_shows_the_python_equivalent():
    program = "import sys; from cavity.cli import main\ntry: main(['sweep', '--help'])\nexcept SystemExit: pass\n"
    program += "print([m for m in ('torch', 'numpy', 'rich', 'optuna', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert "In Python: sweep = cavity.sweep.run(" in done.stdout
    assert done.stdout.endswith("[]\n")
