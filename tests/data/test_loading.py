"""The door to all data: what it says to those who knock in vain."""

from __future__ import annotations

import pickle

import pytest

from cavity import data
from cavity.data import DataError, DataNotFound


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(DataNotFound, match="neither a file or folder nor a known data set"):
        data.load(tmp_path / "nothing.npz")


def test_a_near_miss_of_a_name():
    with pytest.raises(DataNotFound, match="did you mean fashion-mnist"):
        data.load("fashion-minst")


def test_an_unknown_kind_of_file(tmp_path):
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(1))
    with pytest.raises(DataError, match=r"expected a folder of images, or a file in \.npz, \.csv, \.parquet"):
        data.load(tmp_path / "a.pkl")


def test_a_label_where_there_are_no_columns(tmp_path):
    with pytest.raises(TypeError, match="label is 'a'"):
        data.load(tmp_path, label="a")
    with pytest.raises(TypeError, match="label is 'a'"):
        data.load("digits", label="a")
