"""Texts, gaps and numbers to predict in tables: what is fitted to the training rows, and done again later."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.impute import SimpleImputer

from cavity import data
from cavity.data import DataError, Treatment
from cavity.data.encoding import Encoding, Table
from cavity.data.tables import scan

TEXT = "age,city,zip,bought\n" + "".join(
    f"{'' if i % 10 == 3 else i},{('Rome', 'Oslo', '?')[i % 3]},{1000 + i % 2},{'yes' if i % 2 else 'no'}\n"
    for i in range(40)
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TEXT, encoding="utf-8")
    return path


def raw(x):
    return np.vstack([x.x_train * x.std + x.mean, x.x_test * x.std + x.mean])


def test_texts_become_columns_and_gaps_are_filled_from_training_rows(table):
    found = data.load(table, label="bought", table=Treatment(text="zip"))
    assert found.encoding.features == ["age", "city=Oslo", "city=Rome", "zip=1000", "zip=1001"]
    assert found.classes == ("no", "yes")
    x = raw(found)
    assert np.isfinite(x).all()
    # A city that is not known is the most frequent of the training rows.
    assert np.allclose(x[:, 1] + x[:, 2], 1, atol=1e-5)
    ages = [value for value in x[:, 0].round(4) if abs(value - found.encoding.columns[0].fill) > 1e-3]
    assert set(np.round(ages)) <= {i for i in range(40) if i % 10 != 3}


def test_ordinal_mean_and_left_out_columns(table):
    found = data.load(table, label="bought", table=Treatment(encode="ordinal", impute="mean", drop="zip"))
    assert found.encoding.features == ["age", "city"]
    assert set(raw(found)[:, 1].round(4)) == {0.0, 1.0}
    with pytest.raises(DataError, match=r"column 'age', line 5: has no value.*--impute median"):
        data.load(table, label="bought", table=Treatment(impute="none"))
    with pytest.raises(DataError, match="has no column 'name', which --drop names; it has age, city, zip, bought"):
        data.load(table, label="bought", table=Treatment(drop="name"))


def test_what_was_fitted_survives_json_and_is_done_again(table, tmp_path):
    found = data.load(table, label="bought", table=Treatment(text="zip"))
    again = Encoding.from_values(json.loads(json.dumps(found.encoding.as_values())))
    assert again == found.encoding
    other = tmp_path / "other.csv"
    # Another order, columns nobody asked for, a city nobody knows, and gaps.
    other.write_text("when,zip,city,age\n2024-01-01,1001,Paris,3\n2024-01-02,,,\n", encoding="utf-8")
    x = again.apply(scan(other, lambda columns: None, None, Treatment(fitted=again)).table)
    assert x[0].tolist() == [3, 0, 0, 0, 1]
    assert x[1, 0] == again.columns[0].fill
    assert x[1, 1:].sum() == 2
    other.write_text("zip,age\n1001,3\n", encoding="utf-8")
    with pytest.raises(DataError, match="has 0 columns called 'city', which the network takes"):
        again.apply(scan(other, lambda columns: None, None, Treatment()).table)
    other.write_text("zip,age,city\n1001,old,Rome\n", encoding="utf-8")
    with pytest.raises(DataError, match="column 'age', line 2: 'old' is not a number"):
        again.apply(scan(other, lambda columns: None, None, Treatment(fitted=again)).table)


@pytest.mark.parametrize(
    "values", [None, {}, {"columns": [["a", "number", "x", []]], "label": None}, {"columns": [1], "label": None}]
)
def test_what_a_stranger_wrote_is_refused(values):
    with pytest.raises(ValueError, match="column"):
        Encoding.from_values(values)


def test_numbers_to_predict(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,price\n" + "".join(f"{i},{100 + 3.5 * i}\n" for i in range(50)), encoding="utf-8")
    found = data.load(path, label="price", table=Treatment(task="regression"))
    assert found.classes == ()
    mean, std = found.target
    assert np.allclose(found.y_train * std + mean, 100 + 3.5 * raw(found)[:40, 0], atol=1e-2)
    path.write_text("a,price\n1,2\n2,dear\n" * 9, encoding="utf-8")
    with pytest.raises(DataError, match="line 3: the label 'dear' is not a number, which --task regression needs"):
        data.load(path, label="price", table=Treatment(task="regression"))


def test_parquet_too(tmp_path, table):
    arrow = pytest.importorskip("pyarrow", reason="the optional extra for parquet is not installed")
    from pyarrow import csv, parquet

    read = csv.read_csv(table, convert_options=csv.ConvertOptions(null_values=["", "?"], strings_can_be_null=True))
    parquet.write_table(read, tmp_path / "t.parquet")
    options = Treatment(text="zip")
    ours, theirs = (data.load(path, label="bought", table=options) for path in (table, tmp_path / "t.parquet"))
    assert ours.encoding == theirs.encoding
    assert np.allclose(ours.x_train, theirs.x_train)
    day = arrow.array([1, 2], arrow.date32())
    parquet.write_table(arrow.table({"when": day, "y": ["a", "b"]}), tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"column 'when' \(date32\[day\]\) holds dates.*--drop when"):
        data.load(tmp_path / "d.parquet")


def by_hand(names, x, words=None):
    return Table(Path("t.csv"), names, np.array(x, float), words or {}, np.arange(2, len(x) + 2))


@pytest.mark.parametrize("impute", ["median", "mean"])
def test_fills_are_those_of_scikit_learn(impute):
    random = np.random.default_rng(0)
    x = random.normal(size=(31, 40))
    x[random.random(x.shape) < 0.3] = np.nan
    rows = random.permutation(31)[:24]
    fitted = Encoding.fit(by_hand([""] * 40, x), rows, Treatment(impute=impute), None)
    expected = SimpleImputer(strategy=impute).fit(x[rows]).statistics_
    np.testing.assert_allclose([column.fill for column in fitted.columns], expected, rtol=1e-12)


def test_columns_are_found_by_name_and_numbers_alone_by_place():
    fitted = Encoding.fit(by_hand(["a", "b"], [[1, 2], [3, 6]]), np.arange(2), Treatment(), None)
    gap = [[np.nan, 5.0]]
    assert fitted.apply(by_hand(["a", "b"], gap)).tolist() == [[2, 5]]
    assert fitted.apply(by_hand(["b", "a"], gap)).tolist() == [[5, 4]]
    assert fitted.apply(by_hand(["c", "d"], gap)).tolist() == [[2, 5]]
    with pytest.raises(DataError, match="has 2 columns called 'a'"):
        fitted.apply(by_hand(["a", "a", "b"], [[1, 2, 3]]))


def test_a_column_of_texts_that_are_all_missing():
    table = by_hand(["a"], [[0], [1], [1]], {0: ["x", "y"]})
    fitted = Encoding.fit(table, np.arange(3), Treatment(), None)
    assert fitted.apply(by_hand(["a"], [[np.nan]])).tolist() == [[0, 1]]
    assert fitted.apply(by_hand(["a"], [[0], [1]], {0: ["z", "x"]})).tolist() == [[0, 0], [1, 0]]
