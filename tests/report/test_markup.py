"""Escaping and numbers."""

from __future__ import annotations

import pytest

from cavity.report.markup import element, number, text
from report.helpers import HOSTILE, parse


def test_text_and_attributes_come_back_as_they_were():
    words = HOSTILE.replace("\x07", "")
    node = parse(element("p", {"title": words}, text(words)))
    assert node.text == words
    assert node.get("title") == words


def test_control_characters_are_replaced():
    assert text("a\x00b\x07\n") == "a\ufffdb\ufffd\n"


@pytest.mark.parametrize(
    ("value", "written"), [(1.0, "1"), (0.125, "0.12"), (-0.001, "0"), (-2.5, "-2.5"), (100.0, "100")]
)
def test_numbers_are_short(value, written):
    assert number(value) == written


def test_void_elements_have_no_end():
    assert element("img", {"src": "a"}) == '<img src="a">'
