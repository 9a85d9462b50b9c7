from typing import ClassVar

import pytest

from cavity.util.registry import Registry


class Toy:
    name: ClassVar[str] = "toy"
    summary: ClassVar[str] = "a toy"


class Other:
    name: ClassVar[str] = "other"
    summary: ClassVar[str] = "another one"


def test_classes_are_found_by_name_and_made() -> None:
    registry = Registry("kind", Toy, Other)
    assert list(registry) == ["toy", "other"]
    assert registry.summaries() == {"toy": "a toy", "other": "another one"}
    assert isinstance(registry.make("toy"), Toy)
    toy = Toy()
    assert registry.make(toy) is toy


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"kind must be one of toy, other, got 'tox'; did you mean toy\?"):
        Registry("kind", Toy, Other).make("tox")
    with pytest.raises(TypeError, match="weights must be one of toy, or such an object, got None"):
        Registry("kind", Toy).make(None, "weights")  # type: ignore[type-var]


def test_a_name_is_given_away_once_and_can_be_taken_back() -> None:
    registry = Registry("kind", Toy)
    with pytest.raises(ValueError, match="there is already a kind 'toy'"):
        registry.register(Toy)
    registry.unregister("toy")
    assert not registry
