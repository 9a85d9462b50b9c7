"""The gallery's examples, and what the site makes of them and of the command line's parsers."""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module, util

import pytest

from cavity.cli import COMMANDS
from docs.blocks import ROOT

EXAMPLES = sorted((ROOT / "docs" / "gallery").glob("*.py"))
NAVIGATION = (ROOT / "mkdocs.yml").read_text()


def hook(name):
    """A hook of the site by its name; dataclasses look their module up, so it must be known."""
    spec = util.spec_from_file_location(f"hooks_{name}", ROOT / "docs" / "hooks" / f"{name}.py")
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


cells, commands = hook("cells"), hook("commands")

SOURCE = """# %% [markdown]
# # Title
# Some *prose*.
#
# More of it.

# %%
x = 6
print("x is", x)

# %% A line
import matplotlib.pyplot as plt

plt.figure(figsize=(1, 1))
plt.plot([x, 7])
plt.show()
"""


def test_cells_are_prose_and_code_with_their_lines():
    assert cells.read(SOURCE) == [
        cells.Cell(1, True, "", "# Title\nSome *prose*.\n\nMore of it."),
        cells.Cell(7, False, "", 'x = 6\nprint("x is", x)'),
        cells.Cell(
            11,
            False,
            "A line",
            "import matplotlib.pyplot as plt\n\nplt.figure(figsize=(1, 1))\nplt.plot([x, 7])\nplt.show()",
        ),
    ]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 1\n# %%\n", "line 1: an example begins"),
        ("# %% [markdown]\n# Title\nx = 1\n", "line 3: prose is a comment"),
    ],
)
def test_what_is_no_example_is_refused(source, problem):
    with pytest.raises(ValueError, match=problem):
        cells.read(source)


def test_an_example_is_run_and_becomes_a_notebook():
    read = cells.read(SOURCE)
    shown = cells.run(read, "example.py")
    assert [one.text for one in shown] == ["", "x is 6\n", ""]
    assert [len(one.pictures) for one in shown] == [0, 0, 1]
    assert shown[2].pictures[0].startswith(b"\x89PNG")

    notebook = json.loads(json.dumps(cells.notebook(read, shown)))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert [cell["cell_type"] for cell in notebook["cells"]] == ["markdown", "code", "code"]
    assert len({cell["id"] for cell in notebook["cells"]}) == 3
    assert "".join(notebook["cells"][1]["source"]) == read[1].text
    assert notebook["cells"][1]["outputs"] == [{"output_type": "stream", "name": "stdout", "text": ["x is 6\n"]}]
    assert set(notebook["cells"][2]["outputs"][0]["data"]) == {"image/png"}


@pytest.mark.parametrize(
    ("line", "problem"), [("1 / 0", ZeroDivisionError), ("import warnings; warnings.warn('old')", UserWarning)]
)
def test_an_example_that_fails_says_where(line, problem):
    with pytest.raises(problem) as raised:
        cells.run(cells.read(f"# %%\nx = 1\n\n# %%\n{line}\n"), "example.py")
    assert any(str(entry.path) == "example.py" and entry.lineno == 4 for entry in raised.traceback)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_its_pictures_are_described(path):
    source = path.read_text()
    read = cells.read(source)
    assert 30 <= len(source.splitlines()) <= 80
    assert re.match(r"# \S.*\n[^`*\[]+\. ", read[0].text), "a title, and a first sentence that can stand on a card"
    shows = [cell for cell in read if "plt.show()" in cell.text]
    assert shows
    assert all(len(cell.title.split()) >= 4 for cell in shows)
    assert f"gallery/{path.stem}.md" in NAVIGATION


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path):
    shown = cells.run(cells.read(path.read_text()), str(path))
    assert any(one.pictures for one in shown)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_has_every_argument_of_a_command(name):
    parser = commands.Parser(prog=name, description="")
    import_module(COMMANDS[name][0]).add_arguments(parser)
    text = commands.section(name)
    assert text.startswith(f"## {name}\n")
    for action in parser._actions:
        for string in action.option_strings:
            assert (f"`{string}" in text or f", {string}" in text) is (string not in ("-h", "--help"))
        if action.dest != "help":
            assert commands.escaped(commands.helped(action)) in text


def test_an_argument_is_described_with_its_values_and_its_default():
    parser = commands.Parser(prog="x", description="")
    parser.add_argument("--kind", choices=("a", "b"), default="a", help="which <one> of $5")
    parser.add_argument("--jobs", metavar="N", default=2, help="how many (default: %(default)s)")
    parser.add_argument("names", metavar="NAME", nargs="*", help="what")
    kind, jobs, names = parser._actions[1:]
    assert commands.definition(kind) == "`--kind KIND`\n:   which &lt;one> of \\$5. One of a, b (default: a)"
    assert commands.definition(jobs) == "`--jobs N`\n:   how many (default: 2)"
    assert commands.definition(names) == "`[NAME ...]`\n:   what"
