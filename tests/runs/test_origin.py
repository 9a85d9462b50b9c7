"""Where and with what a run was trained."""

from __future__ import annotations

import dataclasses
import json
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

import cavity
from cavity.runs import open_run, resume, train
from cavity.runs.origin import MOST_SESSIONS, SESSIONS, code_version, present, read_origins, write_origin
from runs.helpers import tiny

BEFORE = Path(__file__).parent / "fixtures/before"


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
    """A run of one epoch, and then of another."""
    path = tmp_path_factory.mktemp("origin") / "run"
    train(tiny(epochs=1), path)
    return resume(path, epochs=2)


def test_every_session_says_where_it_began(resumed):
    first, second = read_origins(resumed.path)
    assert (first.epoch, second.epoch) == (0, 1)
    assert first.began <= second.began
    assert (first.host, first.python) == (platform.node(), platform.python_version())
    assert (first.cavity, first.torch) == (cavity.__version__, metadata.version("torch"))
    assert first.device == "cpu"
    assert first.threads == open_run(resumed.path).config.threads


def test_a_finished_run_has_no_further_session(resumed):
    before = read_origins(resumed.path)
    resume(resumed.path)
    assert read_origins(resumed.path) == before


def test_a_run_of_an_older_version_gets_its_first_session_when_it_goes_on(tmp_path):
    older = Path(shutil.copytree(BEFORE, tmp_path / "older"))
    assert read_origins(older) == []
    resume(older)
    assert [origin.epoch for origin in read_origins(older)] == [2]


def test_another_run_in_the_folder_begins_anew(tmp_path):
    train(tiny(epochs=1), tmp_path / "run")
    train(tiny(epochs=1, seed=1), tmp_path / "run", force=True)
    assert len(read_origins(tmp_path / "run")) == 1


def commit(folder, *words):
    return subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *words],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_is_that_of_the_code_and_of_no_other_repository(tmp_path):
    commit(tmp_path, "init", "--quiet")
    code, installed = tmp_path / "code", tmp_path / "installed"
    for folder in (code, installed):
        folder.mkdir()
        (folder / "a.py").write_text("a = 1\n")
    commit(tmp_path, "add", "code")
    commit(tmp_path, "commit", "--quiet", "-m", "code")
    expected = commit(tmp_path, "rev-parse", "HEAD")
    assert code_version(code) == (expected, False), "files elsewhere do not count"
    assert code_version(installed) == ("", False), "git does not know these files"
    (code / "b.py").write_text("b = 2\n")
    code_version.cache_clear()
    assert code_version(code) == (expected, True)


def test_no_git_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert code_version(tmp_path) == ("", False)


def test_only_so_many_sessions_are_kept(tmp_path):
    for epoch in range(3):
        write_origin(tmp_path, dataclasses.replace(present(epoch, "cpu", 1)))
    line = (tmp_path / SESSIONS).read_text().splitlines()[0]
    (tmp_path / SESSIONS).write_text((line + "\n") * 2 * MOST_SESSIONS)
    write_origin(tmp_path, present(7, "cpu", 1))
    found = read_origins(tmp_path)
    assert (len(found), found[-1].epoch) == (MOST_SESSIONS, 7)


def test_what_a_stranger_put_behind_the_name_is_not_copied(tmp_path):
    secret, run = tmp_path / "secret", tmp_path / "run"
    secret.write_text("a secret\n")
    run.mkdir()
    (run / SESSIONS).symlink_to(secret)
    write_origin(run, present(0, "cpu", 1))
    assert "a secret" not in (run / SESSIONS).read_text()
    assert secret.read_text() == "a secret\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"host": 3}, "host must be of type str, got int"),
        ({"epoch": True}, "epoch must be of type int, got bool"),
        ({"host": "x" * 301}, "host must have at most 300 letters, got 301"),
        (None, "not a table of names and values"),
    ],
)
def test_a_file_of_something_else_is_an_error_that_says_what(change, message, tmp_path):
    write_origin(tmp_path, present(0, "cpu", 1))
    line = (tmp_path / SESSIONS).read_text()
    spoilt = [] if change is None else {**json.loads(line), **change}
    (tmp_path / SESSIONS).write_text(line + json.dumps(spoilt) + "\n")
    with pytest.raises(ValueError, match=f"line 2 is not a session of a run: .*{message}"):
        read_origins(tmp_path)


def test_later_versions_may_say_more_and_a_crash_less(tmp_path):
    origin = present(0, "cpu", 1)
    more = {**dataclasses.asdict(origin), "colour": "blue"}
    (tmp_path / SESSIONS).write_text(json.dumps(more) + '\n{"began": "20')
    assert read_origins(tmp_path) == [origin]
