"""CSV within the page."""

from __future__ import annotations

import base64
import csv
import io

import pytest

from cavity.report.download import cell, csv_uri, epochs_csv, runs_csv
from report.helpers import HOSTILE, record, summary

ATTACK = '=HYPERLINK("http://a.example";"x")'


def parsed(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("words", [ATTACK, "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1+1", "'quoted"])
def test_no_text_is_a_formula(words):
    assert cell(words) == f"'{words}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(-0.5, "-0.5"), (3, "3"), (None, ""), (float("nan"), ""), (float("inf"), ""), ("a-b", "a-b"), ("a\x07", "a�")],
)
def test_numbers_stay_numbers_and_words_words(value, expected):
    assert cell(value) == expected


def test_epochs_have_all_that_was_measured_and_the_time_so_far():
    rows = parsed(epochs_csv([summary(ATTACK, 2), summary("b", records=(record(1, test_error=None),))]))
    assert [row["run"] for row in rows] == [f"'{ATTACK}"] * 2 + ["b"]
    assert [row["elapsed_seconds"] for row in rows] == ["1.5", "3.0", "1.5"]
    assert [row["test_error"] for row in rows] == ["25.0", "12.5", ""]
    assert rows[1]["overlap_layer_1"] == "-0.02"
    assert rows[1]["polarization_layer_2"] == "0.5"


def test_runs_have_their_final_numbers_and_settings():
    first = summary(HOSTILE, 4, config=(("dataset", ATTACK),), facts=(("Machine", "@host"),))
    rows = parsed(runs_csv([first, summary("b", 5)]))
    assert [row["Test error"] for row in rows] == ["6.25", "5.0"]
    assert rows[0]["dataset"] == f"'{ATTACK}"
    assert (rows[0]["Machine"], rows[1]["Machine"]) == ("'@host", "")
    assert rows[0]["run"] == HOSTILE.replace("\x07", "�")
    assert rows[1]["epochs"] == "5"


def test_separators_and_quotes_in_names_add_no_cells():
    text = epochs_csv([summary('a","b\n=1,2', 1)])
    (row,) = parsed(text)
    assert row["run"] == 'a","b\n=1,2'
    assert None not in row


def test_the_address_holds_the_file():
    head, body = csv_uri("a,é\r\n").split(",")
    assert head == "data:text/csv;charset=utf-8;base64"
    assert base64.b64decode(body).decode("utf-8-sig") == "a,é\r\n"
