"""Tables with a label column, as text and as parquet."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from cavity import data
from cavity.data import DataError
from data.helpers import undone


def write_csv(path, rows, header=("a", "b", "label"), delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(header)
        writer.writerows(rows)
    return path


ROWS = [(i, i * i, "odd" if i % 2 else "even, or not") for i in range(20)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("header", [("a", "b", "label"), ("label", "b", "Class"), ("a", "b", "other")])
def test_csv(tmp_path, delimiter, header):
    path = write_csv(tmp_path / "t.csv", ROWS, header, delimiter)
    label = None if header[0] == "a" and header[2] == "label" else header[2]
    dataset = data.load(path, label=label)
    assert dataset.classes == ("even, or not", "odd")
    assert (len(dataset.x_train), len(dataset.x_test), dataset.n_features) == (16, 4, 2)
    assert all(int(x[0].round()) % 2 == y for x, y in zip(undone(dataset), dataset.y_train, strict=True))


def test_csv_with_a_byte_order_mark_blank_lines_and_constant_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfy,a,b\r\n" + b"1,0.1,2\r\n\r\n0,0.1,3\r\n" * 10)
    dataset = data.load(path)
    assert dataset.classes == ("0", "1")
    assert dataset.std[0] == 1
    assert (dataset.x_train[:, 0] == 0).all()


@pytest.mark.parametrize(
    ("text", "label", "reason"),
    [
        ("a,b,c\n1,2,3\n", None, "with --label .*, one of a, b, c"),
        ("a,label,y\n1,2,3\n", None, "has 2 columns called"),
        ("a,b,c\n1,2,3\n", "d", "has 0 columns called 'd'; it has a, b, c"),
        ("1,2,3\n4,5,6\n", None, "a header with column names is needed"),
        ("a,label\n1,x\n2\n", None, "line 3 has 1 fields where the header has 2"),
        ("a,label\n1,x\nhello,y\n", None, "column 'a', line 3: 'hello' is not a number, unlike line 2.*--text a"),
        ("a,label\n" + ",x\n,y\n" * 5, None, "column 'a' has no value in the training rows: leave it out with --drop"),
        ("a,label\n1,x\ninf,y\n", None, "column 'a', line 3: is not a finite number"),
        ("a,label\n2024-05-01,x\n2024-05-02,y\n", None, "column 'a', line 2: '2024-05-01' is a date.*--drop a"),
        ("a,b,label\n" + "".join(f"n{i},1,x\n" for i in range(300)) + "n1,1,y\n" * 9, None, "300 different texts"),
        ("a,label\n" + "".join(f"1,{i / 7}\n" for i in range(300)), None, "300 different numbers.*--task regression"),
        ("a,label\n1,x\n2,\n", None, r"row 2 \(line 3\) has no label"),
        ("a,label\n1,x\nnan,y\n" * 5, None, "line 4"),
        ("a,label\n", None, "holds 0 rows"),
        ("label\nx\n", None, "0 features"),
        ("", None, "has 0 columns"),
        ('a,label\n1,"x\n', None, "unexpected end"),
        ("a,label\n1," + "x" * 200_000 + "\n", None, "field larger than"),
        ("a,label\n1,\0\n2,b\n", None, "at least two|NUL|too few"),
    ],
)
def test_csv_that_cannot_be_used(tmp_path, text, label, reason):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=reason):
        data.load(path, label=label)


def test_csv_that_is_not_text(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,label\n\xff\xfe,1\n")
    with pytest.raises(DataError, match=r"t\.csv: is not a readable table.*utf-8"):
        data.load(tmp_path / "t.csv")


def test_one_long_label_does_not_multiply(tmp_path):
    rows = [(1, "x" * 100_000), *((2, "y"),) * 5000]
    assert data.load(write_csv(tmp_path / "t.csv", rows, ("a", "label"))).classes == ("x" * 100_000, "y")


@pytest.fixture(scope="module")
def arrow():
    return pytest.importorskip("pyarrow", reason="the optional extra for parquet is not installed")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["b", "a"] * 10, ("a", "b")),
        ([10, 9] * 10, ("9", "10")),
        ([True, False] * 10, ("False", "True")),
        ([1.0, -1.0] * 10, ("-1", "1")),
    ],
)
@pytest.mark.parametrize("dictionary", [False, True])
def test_parquet(tmp_path, arrow, labels, classes, dictionary):
    from pyarrow import parquet

    column = arrow.array(labels)
    table = arrow.table({"a": range(20), "target": column.dictionary_encode() if dictionary else column})
    parquet.write_table(table, tmp_path / "t.parquet")
    dataset = data.load(tmp_path / "t.parquet")
    assert dataset.classes == classes
    assert sorted(
        undone(dataset)[:, 0].round().int().tolist() + undone(dataset, "test")[:, 0].round().int().tolist()
    ) == list(range(20))
    assert all(int(x[0].round()) % 2 == 1 - y for x, y in zip(undone(dataset), dataset.y_train, strict=True))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"a": [1, 2], "b": [1, 2]}, "one of a, b"),
        ({"a": [[1], [2]], "y": [1, 2]}, "column 'a'.*--drop a"),
        ({"a": [None, None, 1.0 / 3], "y": [1, 2, 1]}, "too few"),
        ({"a": ["2024-05-01", "2024-05-02"], "y": [1, 2]}, "column 'a', line 1: '2024-05-01' is a date"),
        ({"a": [1, 2], "y": [1, None]}, "1 labels are missing"),
        ({"y": [1, 2]}, "0 features"),
        ({"a": [1] * 5_000_000, "y": [1] * 5_000_000}, "declares 80,000,000 bytes"),
    ],
)
def test_parquet_that_cannot_be_used(tmp_path, arrow, columns, reason):
    from pyarrow import parquet

    arrays = {name: np.array(v, np.int8) if len(v) > 9 else v for name, v in columns.items()}
    parquet.write_table(arrow.table(arrays), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=reason):
        data.load(tmp_path / "t.parquet")


def test_parquet_that_is_none(tmp_path, arrow):
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    with pytest.raises(DataError, match=r"t\.parquet: is not a readable parquet file"):
        data.load(tmp_path / "t.parquet")
