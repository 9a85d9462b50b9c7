"""Records of experiments from strangers: a record or ValueError that names the file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cavity.studies.experiments.experiment import Cell, Record, Store
from cavity.studies.experiments.setup import Setup
from fuzzing import altered, as_json, attempt, bounded, damaged

CELL = Cell("bp-mnist", Setup("bp", "mnist", rho=(1.0, 0.9), samples=(100, 50)), "smoke", {"fractions": [0.1, 0.5]})
RECORD = Record(CELL, {"records": [{"epoch": 1, "test_error": 12.5}], "seconds": 3.5}, "a machine").as_dict()
FILE = as_json(RECORD).encode()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    found = Store(tmp_path_factory.mktemp("fuzz"))
    found.records_folder.mkdir()
    return found


def test_the_record_is_read_as_it_is(store):
    store.record_path(CELL).write_bytes(FILE)
    assert [record.as_dict() for record in store.records("smoke")] == [RECORD]


@bounded()
@given(altered(RECORD).map(as_json).map(str.encode) | damaged(FILE) | st.binary(max_size=100))
def test_records(store, content):
    store.record_path(CELL).write_bytes(content)
    records = attempt(store.records, "smoke", errors=(ValueError,))
    assert records is None or len(records) <= 1


def test_the_error_names_the_file(store):
    for content in (b"", b"[]", b"[" * 100_000, b'{"setup": []}', b"\xff"):
        store.record_path(CELL).write_bytes(content)
        with pytest.raises(ValueError, match=f"{CELL.key}.json: is not a record"):
            store.records("smoke")
