"""What follows from the size of the data where nobody says otherwise."""

from __future__ import annotations

import pytest

from cavity.training.recipes import NUMBERS, PAPER, STREAMS, TABLES


@pytest.mark.parametrize(
    ("samples", "size"), [(1, 1), (3, 1), (150, 75), (569, 284), (700, 233), (800, 200), (2000, 500), (60000, 1024)]
)
def test_a_table_has_a_few_mini_batches_an_epoch_none_of_them_small(samples: int, size: int) -> None:
    assert TABLES.batch_size(samples) == size


def test_regression_streams_and_the_paper_have_mini_batches_of_their_own() -> None:
    assert [NUMBERS.batch_size(samples) for samples in (3, 100, 60000)] == [1, 25, 1024]
    assert [STREAMS.batch_size(samples) for samples in (1, 10, 160, 600, 60000)] == [1, 1, 10, 32, 128]
    assert [PAPER.batch_size(samples) for samples in (10, 60000)] == [10, 128]


def test_the_larger_a_table_the_less_often_a_sample_counts() -> None:
    assert [TABLES.count(samples) for samples in (0.5, 100, 500, 1000, 5000)] == [30, 30, 10, 5, 5]
    assert NUMBERS.count(100) is None
