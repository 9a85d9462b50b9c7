"""Names from strangers in what commands print: shown as codes, never sent to the terminal as commands."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys

import pytest
from rich.console import Console

from cavity import data
from cavity.cli import main
from cavity.cli.output import say_traceback
from cavity.runs import open_run, train
from cavity.studies.experiments.experiment import Store
from cavity.studies.sweep.plan import Plan
from cavity.training.display import say
from cavity.util.text import shown, shown_lines
from runs.helpers import tiny

#: Clear the screen, name the window, a CSI of one character, write from right to left, go back, ring.
CODES = "\x1b[2J\x1b]me\x07\x9b31m\u202e\r\x08"
SHOWN = r"\x1b[2J\x1b]me\x07\x9b31m\u202e\r\x08"


def is_harmless(text: str) -> bool:
    return all(letter.isprintable() or letter == "\n" for letter in text)


@pytest.fixture
def harmless(capsys):
    """A function that runs a command, looks at all it printed, and returns its status and that."""

    def call(*words: object) -> tuple[int, str]:
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        assert is_harmless(said.out), repr(said.out)
        assert is_harmless(said.err), repr(said.err)
        return status, said.out + said.err

    return call


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A run on a table whose classes, columns, file and folder have such names."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = "".join(f'{n % 7},{n % 5},"{"a" if n % 2 else "b"}{CODES}"\n' for n in range(40))
    table = folder / f"t{CODES}.csv"
    table.write_text(f'"x{CODES}",y{CODES[:4]},label\n{rows}')
    config = tiny(dataset=str(table), data_options=None, hidden=(5,), batch_size=8, epochs=1)
    return train(config, folder / f"run{CODES}").path


@pytest.fixture
def copy(hostile, tmp_path):
    return shutil.copytree(hostile, tmp_path / "copy")


def test_codes_are_shown_and_letters_of_all_languages_stay():
    assert shown(CODES) == SHOWN
    assert shown("naïve Größe 数字 ±1 “–” 🙂") == "naïve Größe 数字 ±1 “–” 🙂"
    assert shown("a\nb\ud800") == r"a\nb\ud800"
    assert shown_lines("a\r\nb\n") == "a\\r\nb\n"


def test_every_command_on_such_a_run(hostile, harmless, tmp_path):
    status, said = harmless("evaluate", hostile)
    assert status == 0
    assert f"on t{SHOWN}, test: 8 samples" in said
    assert f"a{SHOWN}" in said
    status, said = harmless("evaluate", hostile, "--json")
    assert json.loads(said)["classes"] == [f"a{CODES}", f"b{CODES}"]
    for words in (
        ("report", hostile),
        ("report", hostile, "--out", tmp_path / f"{CODES}.html", "--plots", tmp_path / CODES),
        ("predict", hostile, "--out", tmp_path / f"{CODES}.csv"),
        ("export", hostile, "--format", "packed", "--out", tmp_path / CODES[:4]),
        ("train", "--resume", hostile, "--epochs", "2"),
        ("train", "--resume", hostile),
    ):
        assert harmless(*words)[0] == 0, words
    assert harmless("export", hostile, "--format", "packed", "--out", tmp_path / CODES[:4])[0] == 2
    assert harmless("train", "--config", hostile / "config.toml", "--out", hostile)[0] == 2
    assert harmless("sweep", "--resume", hostile)[0] == 2


def test_the_folder_of_a_run_that_was_given_none(hostile, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--quiet", "--config", str(hostile / "config.toml")]) == 0
    folder = capsys.readouterr().out
    assert folder == f"runs/t{SHOWN}-mf-1\n"
    assert open_run(folder.rstrip("\n")).finished


def quoted(text: str) -> str:
    return json.dumps(text)


@pytest.mark.parametrize("command", ["evaluate", "train"])
@pytest.mark.parametrize(
    "lines",
    [
        f"dataset = {quoted('/nowhere/' + CODES)}",
        f'dataset = "digits"\n[data_options]\n{quoted(CODES)} = 1',
        f'dataset = "teacher-student"\n[data_options]\n{quoted(CODES)} = 1',
        f'dataset = "teacher-student"\n[data_options]\ninputs = {quoted(CODES)}',
        f'dataset = "digits"\nlabel = {quoted(CODES)}',
        f"{quoted(CODES)} = 1",
        f"activation = {quoted(CODES)}",
        f"device = {quoted(CODES)}",
        f"data_dir = {quoted('/nowhere/' + CODES)}",
        f"[{quoted(CODES)}]\n[{quoted(CODES)}]",
    ],
    ids=["data set", "option", "generator", "value", "label", "key", "activation", "device", "folder", "table"],
)
def test_configurations(copy, harmless, command, lines):
    """Whatever option has such a name or value; that of a folder may be good enough."""
    kept = [line for line in (copy / "config.toml").read_text().splitlines() if line.split()[0] != lines.split()[0]]
    (copy / "config.toml").write_text("\n".join([*kept, lines, ""]))
    status, said = harmless(*({"train": ("train", "--epochs", "2", "--resume")}.get(command, (command,))), copy)
    assert status == 0 or r"\x1b[2J" in said


def test_data_that_are_not_there(copy, harmless, tmp_path):
    """A report is made without them, and says so."""
    text = (copy / "config.toml").read_text()
    rest = "\n".join(line for line in text.splitlines() if not line.startswith("dataset"))
    (copy / "config.toml").write_text(f"dataset = {quoted('/nowhere/' + CODES)}\n{rest}\n")
    status, said = harmless("report", copy)
    assert status == 0
    assert rf"/nowhere/{SHOWN}: neither a file" in said
    assert harmless("predict", copy, "--out", tmp_path / "p.csv")[0] == 2


def test_metrics(copy, harmless):
    (copy / "metrics.jsonl").write_text(json.dumps({CODES: 1}) + "\n")
    assert harmless("report", copy)[0] == 2
    (copy / "metrics.jsonl").write_text(json.dumps({CODES: "x"}) + "\n")
    with pytest.raises(ValueError, match=r"\\x1b\[2J") as caught:
        _ = open_run(copy).records
    assert is_harmless(str(caught.value))


@pytest.mark.parametrize(
    "load", [lambda path: Store(path).records("smoke"), lambda path: Plan.from_toml(path / "p.toml")]
)
def test_other_files(tmp_path, load):
    (tmp_path / "records").mkdir()
    empty = {"label": "", "scale": "smoke", "setup": {CODES: 1}, "options": {}}
    (tmp_path / "records" / "r.json").write_text(json.dumps({**empty, "machine": "", "result": {}}))
    (tmp_path / "p.toml").write_text(f"[config]\n[space]\n[sizes]\n{quoted(CODES)} = 1\n")
    with pytest.raises(ValueError, match="is not") as caught:
        load(tmp_path)
    assert is_harmless(str(caught.value))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("digits", {CODES: 1}),
        ("teacher-student", {CODES: 1}),
        (CODES, {}),
        (CODES, {"label": "x"}),
        (CODES, {CODES: 1}),
    ],
)
def test_errors_in_python(name, options):
    with pytest.raises((TypeError, ValueError, FileNotFoundError)) as caught:
        data.load(name, **options)
    assert is_harmless(str(caught.value))


def test_tables_and_progress():
    text = io.StringIO()
    say(Console(file=text, force_terminal=True, width=80), f"FAILED [bold]{CODES}\nnext")
    assert text.getvalue() == f"FAILED [bold]{SHOWN}\nnext\n"


def test_tracebacks(monkeypatch, capsys):
    """With --debug, and where an error is a bug."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "argv", ["cavity", "--version"])
    assert main() == 0
    assert sys.excepthook is say_traceback
    capsys.readouterr()
    try:
        raise RuntimeError(CODES)
    except RuntimeError:
        sys.excepthook(*sys.exc_info())
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last):\n")
    assert said.endswith(f"RuntimeError: {SHOWN}\n")
    assert is_harmless(said)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are Unicode")
def test_names_that_are_no_text(hostile, tmp_path, harmless):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/run\xff")
    shutil.copytree(hostile, folder)
    status, said = harmless("evaluate", folder)
    assert status == 0
    assert r"run\udcff on" in said
    assert harmless("report", folder)[0] == 0
