"""Downloads onto a full disk and onto one that can only be read."""

from __future__ import annotations

import numpy as np
import pytest

from cavity import data
from cavity.data import places, store
from cavity.data.store import contents
from data.helpers import packed, whole
from disks import small_disk

CONTENT = np.random.default_rng(1).bytes(300_000)
PACKED = packed(CONTENT)


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk") as made:
        yield made


@pytest.fixture
def cached(world, disk, monkeypatch):
    """The cache on the small disk, and a data set of one file in two places on the web."""
    for module in (places, store):
        monkeypatch.setattr(module, "cache_folder", lambda: disk.path / "cache")
    return disk.path / "cache" / "tiny" / "file.bin"


@pytest.fixture
def tiny(source, server):
    source({"file.bin": CONTENT}, (server.url("one/"), server.url("two/")))
    for folder in ("one", "two"):
        server.answers[f"/{folder}/file.bin.gz"] = [whole(PACKED)]


@pytest.mark.parametrize("free", [0, 1, 20, 70])
def test_a_full_disk(disk, cached, tiny, server, free):
    disk.fill(free)
    with pytest.raises(OSError, match=r"file\.bin could not be written \(No space left on device\)"):
        data.fetch("tiny")
    # No second server helps against a full disk, and what has come so far is not left in the way.
    assert {path for path, _ in server.seen} <= {"/one/file.bin.gz"}
    assert [path for path in disk.path.rglob("*") if path.suffix == ".part"] == []
    assert not cached.exists()
    disk.empty()
    assert data.fetch("tiny") == [cached]
    assert cached.read_bytes() == CONTENT


def test_a_cache_that_can_only_be_read(disk, cached, tiny):
    with (
        disk.read_only(),
        pytest.raises(OSError, match=r"file\.bin could not be written \(Read-only file system\)"),
    ):
        data.fetch("tiny")


def test_a_given_folder_that_can_only_be_read_falls_back_to_the_cache(disk, world, tiny):
    (disk.path / "mine" / "tiny").mkdir(parents=True)
    with disk.read_only():
        assert data.fetch("tiny", disk.path / "mine") == [world / "tiny" / "file.bin"]


def test_a_data_set_is_read_from_where_nothing_can_be_written(disk, cached, tiny):
    data.fetch("tiny")
    with disk.read_only():
        assert contents("tiny") == {"file.bin": CONTENT}
