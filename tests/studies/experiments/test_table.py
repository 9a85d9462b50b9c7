"""Tables: means, deviations, verdicts, Markdown."""

from __future__ import annotations

import pytest

from cavity.studies.experiments import curves_architectures, fixed_hyperparameters, table_datasets
from cavity.studies.experiments.table import (
    Measured,
    Published,
    final,
    markdown,
    measured,
    number,
    page,
    settings,
    verdict,
    where,
)
from studies.experiments.helpers import record


def test_mean_and_deviation():
    assert measured([1.0, 3.0]) == Measured(2.0, pytest.approx(2**0.5), 2)
    assert measured([1.5]) == Measured(1.5, None, 1)
    assert measured([None, 2.0]) == Measured(2.0, None, 1)
    assert measured([None]) is None
    assert (number(measured([1.0, 3.0])), number(measured([1.5]), 1), number(None)) == ("2.00 ± 1.41", "1.5", "–")


@pytest.mark.parametrize(
    ("ours", "judgement"),
    [(11.8, "agrees"), (12.4, "agrees"), (12.41, "worse by 0.61"), (11.2, "agrees"), (11.1, "better")],
)
def test_two_standard_deviations_decide(ours, judgement):
    assert verdict(measured([ours]), Published(11.8, 0.3)) == judgement


def test_a_published_deviation_below_the_rounding_does_not_decide():
    assert verdict(measured([0.08]), Published(0.0, 0.0)) == "agrees"
    assert verdict(measured([0.2]), Published(0.0, 0.0)) == "worse by 0.20"
    assert verdict(measured([0.11]), Published(0.12, 0.01)) == "agrees"
    assert verdict(measured([0.09]), Published(0.12, 0.01)) == "better"
    assert verdict(None, Published(1.0, 0.1)) == "–"
    assert verdict(measured([1.0]), None) == "–"


def test_markdown():
    assert markdown(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"
    with pytest.raises(ValueError, match="a row must have 2 columns like the head, got 1"):
        markdown(["a", "b"], [["x"]])


def test_settings_say_what_was_run():
    records = [record(1.0, epochs=30), record(1.0, epochs=100, seed=1)]
    assert settings(records) == "smoke scale: 30 to 100 epochs, 2 seeds, 100 training samples"
    assert settings([record(1.0, epochs=1, samples=None)]) == "smoke scale: 1 epoch, 1 seed"
    assert page("Title", records, "text").startswith("# Title\n\nsmoke scale")


def test_records_are_selected_by_their_setup():
    records = [record(1.0), record(3.0, seed=1), record(9.0, method="bp")]
    assert where(records, method="mf") == records[:2]
    assert final(where(records, method="mf"), "test_error").mean == 2.0


def test_the_table_of_data_sets_has_the_papers_numbers_beside_ours():
    records = [record(11.9, "fashion-mnist-bp", method="bp", dataset="fashion-mnist")]
    text = table_datasets.table(records)
    assert "| fashion-mnist | BP | 2 | 1 | 11.90 | 11.8 ± 0.3 | agrees | 11.90 |" in text
    assert "| fashion-mnist | BP | 2 | 1 | 11.90 | 3.4 ± 0.1 | worse by 8.50 | 11.90 |" in text


def test_the_papers_tables_are_complete():
    for numbers in (table_datasets.TEST, table_datasets.TRAIN):
        assert set(numbers) == set(table_datasets.DATASETS)
        assert all(set(row) == set(table_datasets.METHODS) for row in numbers.values())
    # The ends of the two tables, as printed.
    assert table_datasets.TEST["mnist-two-class"]["binarynet"] == (1.3, 0.1)
    assert table_datasets.TEST["cifar-10"]["mf"] == (60.4, 1.1)
    assert table_datasets.TRAIN["cifar-10"]["amp"] == (4.7, 0.2)


def test_the_relative_loss_is_of_the_tuned_error():
    tuned, fixed = record(10.0, method="bp"), record(12.5, method="bp", rho=(1.0,) * 3)
    assert fixed_hyperparameters.loss([tuned], [fixed]) == pytest.approx(25)
    text = fixed_hyperparameters.table([tuned, fixed])
    assert "| digits | 11 | 10.00 | 12.50 | 25.0 | does not hold |" in text


def test_epochs_to_an_error_count_from_one():
    assert curves_architectures.epochs_to([20.0, 15.9, 17.0, 12.0], 16.0) == 2
    assert curves_architectures.epochs_to([20.0, 15.9], 12.0) is None
