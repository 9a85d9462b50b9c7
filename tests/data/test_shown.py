"""What ``print`` shows of a data set."""

from __future__ import annotations

from dataclasses import replace

from cavity import data


def test_a_data_set_is_a_few_lines():
    digits = data.load("digits")
    assert str(digits).splitlines() == [
        "Dataset digits",
        "  samples  1,438 for training, 359 for tests",
        "  inputs   64 numbers, images of 1 x 8 x 8",
        "  classes  10: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9",
    ]


def test_long_lists_are_cut_and_names_of_strangers_harmless():
    names = tuple(f"column {n}\x1b" for n in range(64))
    table = replace(data.load("digits"), image_shape=None, features=names, target=(3.0, 2.0))
    lines = str(table).splitlines()
    assert lines[2].startswith(r"  inputs   64 numbers: column 0\x1b, column 1\x1b, ")
    assert lines[2].endswith(", …")
    assert lines[3] == "  labels   numbers, mean 3, standard deviation 2"
    assert max(map(len, lines)) <= 100
