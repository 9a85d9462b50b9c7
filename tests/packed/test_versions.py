"""Files of older versions of the format are read, and give the answers that they gave.

``written/`` holds random networks of ``tests/export/helpers.py`` as ``to_packed`` wrote them at the commits that
brought versions 1 (66ef48f), 2 (4d9044a) and 3 (ff8f1b2), VERSION-KIND.cavity, and beside each what ``packed.load`` of
that commit said: samples x, scores, classes, and for version 3 confidences, fitted on the network's own classes with a
third of them random, and which samples to refuse.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cavity import packed
from cavity.packed.file import PREAMBLE, VERSIONS

WRITTEN = Path(__file__).parent / "written"
FILES = sorted(path.stem for path in WRITTEN.glob("*.cavity"))


def version(name: str) -> int:
    return int(PREAMBLE.unpack_from((WRITTEN / f"{name}.cavity").read_bytes())[1])


def test_there_is_a_file_of_every_older_version() -> None:
    assert {version(name) for name in FILES} == set(VERSIONS[:-1])
    assert all(name.startswith(f"{version(name)}-") for name in FILES)


@pytest.mark.parametrize("name", FILES)
def test_it_answers_as_it_did(name: str) -> None:
    net, answers = packed.load(WRITTEN / f"{name}.cavity"), np.load(WRITTEN / f"{name}.npz")
    x = answers["x"]
    assert (net.scores(x) == answers["scores"]).all()
    assert (net.predict(x) == answers["classes"]).all()
    assert len(np.unique(answers["scores"])) > 5
    assert len(np.unique(answers["classes"])) > 1
    if version(name) >= 3:
        assert (net.confidence(x) == answers["confidence"]).all()
        assert (net.reject(x) == answers["rejected"]).all()
        assert len(np.unique(answers["confidence"])) > 1
