"""The command line as a whole: quick help, near misses, one-line errors, exit codes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import cavity
from cavity.cli import COMMANDS, main
from cavity.cli.parser import Parser

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(cavity.__file__).parents[1])}


def failure(capsys, *words):
    """The one line on stderr of a command that must fail."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cavity: ")
    assert err.count("\n") == 1
    return err


def test_help_is_quick_and_imports_nothing_heavy():
    program = "import sys; from cavity.cli import main; code = main(sys.argv[1:]); "
    program += "print([m for m in ('torch', 'numpy', 'rich', 'sklearn') if m in sys.modules]); sys.exit(code)"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", program, "--help"], env=ENVIRONMENT, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    assert done.stdout.endswith("[]\n")
    # Time of the processor, which a busy machine does not stretch.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_import_cavity_leaves_torch_alone_until_it_is_needed():
    program = (
        "import sys, cavity\n"
        "assert 'torch' not in sys.modules\n"
        "assert {'mlp', 'Trainer', 'data'} <= set(dir(cavity))\n"
        "cavity.mlp(2, (3,), 1); cavity.landscape.polarization\n"
        "assert 'torch' in sys.modules and 'mlp' in vars(cavity)\n"
        "from cavity import *; Trainer, Binary\n"
    )
    subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, check=True)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = cavity.nothing


def test_help_lists_every_command(capsys):
    for words in ([], ["--help"], ["-h"]):
        assert main(words) == 0
        text = capsys.readouterr().out
        assert all(f"  {name} " in text for name in COMMANDS)
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"cavity {cavity.__version__}\n"


@pytest.mark.parametrize("command", ["train", "evaluate", "predict", "data", "sweep"])
def test_each_command_has_help_with_its_python_equivalent(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"usage: cavity {command}" in text
    assert "In Python:" in text


def test_near_misses_are_named(capsys):
    assert "no command trian; did you mean train?" in failure(capsys, "trian")
    assert "no command zzz; there are train, evaluate" in failure(capsys, "zzz")
    assert "no option --versoin" in failure(capsys, "--versoin")
    assert "no option --epoch; did you mean --epochs?" in failure(capsys, "train", "--epoch", "3")
    assert "no option --bach-size; did you mean --batch-size?" in failure(capsys, "train", "--bach-size=3")
    assert "no argument mnist" in failure(capsys, "train", "mnist")


def test_errors_are_one_line_and_debug_shows_more(capsys, tmp_path):
    assert "is not a folder" in failure(capsys, "evaluate", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        main(["--debug", "evaluate", str(tmp_path / "none")])
    with pytest.raises(FileNotFoundError):
        main(["evaluate", str(tmp_path / "none"), "--debug"])
    assert "c.toml: No such file" in failure(capsys, "train", "--config", str(tmp_path / "c.toml"))


def test_a_closed_pipe_is_no_error():
    words = [sys.executable, "-m", "cavity", "data", "list"]
    with subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate()
    assert err == b""


def test_a_parser_keeps_argparse_manners():
    parser = Parser(prog="cavity test", description="text")
    parser.add_argument("--number", type=int)
    assert parser.parse_args(["--number", "3"]).number == 3
    with pytest.raises(ValueError, match=r"argument --number: invalid int value: 'x' \(see cavity test --help\)"):
        parser.parse_args(["--number", "x"])


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_option_says_its_default(command):
    """A flag is off unless it is given; whatever takes a value says what it is otherwise, or must be given."""
    parser = Parser(prog=f"cavity {command}", description="text")
    import_module(COMMANDS[command][0]).add_arguments(parser)
    formatter = parser.formatter_class(parser.prog)
    for action in parser._actions:
        if action.option_strings and action.nargs != 0 and not action.required:
            assert "default" in formatter._get_help_string(action), action.option_strings


def test_defaults_are_written_as_they_would_be_typed():
    parser = Parser(prog="cavity test", description="text")
    parser.add_argument("--fractions", default=(0.5, 1e-6), help="some")
    parser.add_argument("--seconds", type=float, default=30.0, help="time")
    parser.add_argument("--size", default="paper", help="size: the paper's (default), or less")
    text = " ".join(parser.format_help().split())
    assert "some (default: 0.5,1e-06)" in text
    assert "time (default: 30)" in text
    assert "or less (default" not in text


def test_dir_has_the_public_names_alone_and_they_can_be_completed():
    program = (
        "import cavity, rlcompleter, sys\n"
        "import cavity.util.text\n"
        "names = dir(cavity)\n"
        "assert [name for name in names if name.startswith('_')] == ['__version__'], names\n"
        "assert 'util' not in names and 'lazy' not in names and 'TYPE_CHECKING' not in names\n"
        "assert set(cavity.__all__) < set(names) and 'packed' in names\n"
        "assert 'torch' not in sys.modules\n"
        "found = rlcompleter.Completer({'cavity': cavity}).attr_matches('cavity.ml')\n"
        "assert [word.split('(')[0] for word in found] == ['cavity.mlp'], found\n"
        "assert 'torch' in sys.modules\n"
        "assert all(hasattr(cavity, name) for name in names)\n"
    )
    subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, check=True)
