"""``cavity report`` on a run that ``cavity train`` wrote."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cavity import report
from cavity.cli import main
from cavity.report.overview import sections
from cavity.runs import open_run


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    options = ["--dataset", "digits", "--hidden", "11", "--epochs", "2", "--quiet", "--out", str(folder)]
    assert main(["train", *options]) == 0
    return folder


def test_one_run_gets_its_page_beside_it(run_folder, capsys):
    assert main(["report", str(run_folder)]) == 0
    assert capsys.readouterr().out.strip() == str(run_folder / "report.html")
    html = (run_folder / "report.html").read_text(encoding="utf-8")
    assert "<h1>tiny</h1>" in html
    assert "algorithm" in html


def test_several_runs_get_a_page_here(run_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(run_folder), str(run_folder)]) == 0
    assert "2 runs side by side" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_out_and_plots_go_where_they_are_told(run_folder, tmp_path):
    out, plots = tmp_path / "page.html", tmp_path / "plots"
    assert main(["report", str(run_folder), "--out", str(out), "--plots", str(plots)]) == 0
    assert out.is_file()
    assert (plots / "error.png").is_file()
    assert (plots / "error.svg").is_file()


def test_python_equivalent(run_folder, tmp_path, monkeypatch):
    # One section: the command has drawn them all.
    monkeypatch.setattr("cavity.report.plots.sections", lambda runs: sections(runs)[:1])
    runs = [open_run(run_folder)]
    assert report.write(runs, tmp_path / "page.html").is_file()
    assert (tmp_path / "plots" / "error.svg") in report.write_plots(runs, tmp_path / "plots")


def test_no_run_there_is_an_error(tmp_path, capsys):
    assert main(["report", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_importing_the_command_is_cheap():
    code = "import sys, cavity.cli.report; print(*sorted({'torch', 'numpy', 'matplotlib', 'PIL'} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == []


def test_what_is_named_is_not_overwritten(run_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.html"
    page.write_text("mine")
    (tmp_path / "report.html").write_text("mine")
    for words in (["--out", str(page)], ["--plots", str(tmp_path)], [str(run_folder)]):
        assert main(["report", str(run_folder), *words]) == 2
        assert "--force" in capsys.readouterr().err
    assert page.read_text() == (tmp_path / "report.html").read_text() == "mine"
    assert main(["report", str(run_folder), "--out", str(page), "--force"]) == 0
    assert page.read_text() != "mine"
    assert main(["report", str(run_folder)]) == main(["report", str(run_folder)]) == 0, "a run's own page is renewed"
