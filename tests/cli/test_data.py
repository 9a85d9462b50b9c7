"""``cavity data list|get|where``."""

from __future__ import annotations

import gzip

import pytest

from cavity.cli import main
from cavity.data import names, registry


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A world without data: no $CAVITY_DATA, an empty cache."""
    from cavity.data import places, store

    monkeypatch.delenv(places.ENVIRONMENT, raising=False)
    monkeypatch.setattr(places, "DEBIAN", tmp_path / "debian")
    for module in (places, store):
        monkeypatch.setattr(module, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path


def test_list(elsewhere, capsys):
    assert main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = {line.split()[0]: line for line in lines[: len(names())]}
    assert tuple(listed) == names()
    assert " here " in listed["digits"]
    assert " to get " in listed["mnist"]


def test_where(elsewhere, capsys):
    folder = elsewhere / "data" / "mnist"
    folder.mkdir(parents=True)
    file = folder / (registry.MNIST.files[1].name + ".gz")
    file.write_bytes(gzip.compress(b""))
    assert main(["data", "where", "mnist", "--data-dir", str(elsewhere / "data")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"found    {file}" in lines
    assert sum(line.startswith("missing") for line in lines) == len(lines) - 1
    assert main(["data", "where", "digits"]) == 0
    assert capsys.readouterr().out == "digits needs no file\n"


def test_get(elsewhere, capsys, monkeypatch):
    assert main(["data", "get", "digits"]) == 0
    assert capsys.readouterr().out == "digits needs no file\n"
    import dataclasses

    unreachable = dataclasses.replace(registry.MNIST, mirrors=("http://127.0.0.1:9/",))
    monkeypatch.setitem(registry.SOURCES, "mnist", unreachable)
    assert main(["data", "get", "mnist"]) == 2
    assert "To put it there by hand" in capsys.readouterr().err


def test_what_is_wrong_is_named(elsewhere, capsys):
    for words, message in (
        (["get"], "get needs the name of a data set"),
        (["where", "emnist"], "no data set is called 'emnist'"),
        (["list", "mnist"], "try: cavity data where mnist"),
        (["lst"], "invalid choice"),
    ):
        assert main(["data", *words]) == 2
        assert message in capsys.readouterr().err
