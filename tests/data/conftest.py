"""What the tests of the data room share: an empty world to search in, small data sets, and a web server."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest

from cavity.data import places, registry, store
from cavity.data.registry import Source
from data.helpers import Server, idx, known_file

REAL_DATA = os.environ.get(places.ENVIRONMENT)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real data sets."""
    if not REAL_DATA:
        pytest.skip(f"${places.ENVIRONMENT} is not set, so there are no real data sets to read")
    return Path(REAL_DATA)


@pytest.fixture
def world(tmp_path, monkeypatch) -> Path:
    """An empty cache, no Debian data sets, no $CAVITY_DATA; returns the cache."""
    cache = tmp_path / "cache"
    monkeypatch.delenv(places.ENVIRONMENT, raising=False)
    monkeypatch.setattr(places, "DEBIAN", tmp_path / "debian")
    for module in (places, store):
        monkeypatch.setattr(module, "cache_folder", lambda: cache)
    return cache


@pytest.fixture
def tiny_mnist(monkeypatch) -> dict[str, bytes]:
    """Puts a data set of 40 + 20 images of 28×28 in the place of MNIST; returns its files, unpacked."""
    random = np.random.default_rng(0)
    contents = {}
    for stem, n in (("train", 40), ("t10k", 20)):
        contents[f"{stem}-images-idx3-ubyte"] = idx(random.integers(0, 256, (n, 28, 28), dtype=np.uint8))
        contents[f"{stem}-labels-idx1-ubyte"] = idx(np.arange(n, dtype=np.uint8) % 10)
    files = tuple(known_file(name, content) for name, content in contents.items())
    made = dataclasses.replace(registry.MNIST, files=files, mirrors=())
    monkeypatch.setitem(registry.SOURCES, "mnist", made)
    return contents


@pytest.fixture
def source(monkeypatch):
    """A function that registers a data set called ``tiny`` with the given files, mirrors and archive."""

    def register(contents: dict[str, bytes], mirrors=(), archive=None) -> Source:
        files = tuple(known_file(name, content) for name, content in contents.items())
        made = Source("tiny", "a test", ("tiny",), files, mirrors, ("a", "b"), archive)
        monkeypatch.setitem(registry.SOURCES, "tiny", made)
        return made

    return register


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()
