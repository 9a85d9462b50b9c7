"""What the network says about the test set, and how far it can be believed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cavity.report.content import Content, Figure, Gallery, Matrix, Reliability, Section, Table, Tile
from cavity.report.summary import Example, RunSummary, TestSummary
from cavity.report.wording import counted, of_run, percent, share


def calibration(runs: Sequence[RunSummary]) -> Section | None:
    """Reliability diagram and confusion matrix of every run with classes; None if there is none."""
    figures: list[Figure] = []
    for place, run in enumerate(runs):
        if run.test is None:
            continue
        names = run.test.classes
        figures += [
            Figure(
                f"reliability-{place + 1}",
                of_run("Reliability", run.name, len(runs)),
                _reliability_caption(run.test),
                Reliability(run.test.bins, place),
            ),
            Figure(
                f"confusion-{place + 1}",
                of_run("Confusion matrix", run.name, len(runs)),
                _confusion_caption(run.test),
                Matrix(names, run.test.confusion),
            ),
        ]
    text = "Both figures show the Bayesian predictions on the test set: the class with the highest probability."
    return Section("predictions", "Predictions", text, tuple(figures)) if figures else None


def _reliability_caption(test: TestSummary) -> str:
    gap = np.nansum(test.bins.share * (test.bins.accuracy - test.bins.confidence))
    tendency = "underconfident" if gap > 0 else "overconfident"
    return (
        "On the diagonal the network is well calibrated: predictions made with 80\u00a0% confidence are right "
        "80\u00a0% of the time. Below it the network is overconfident, above it underconfident. The lower bars show "
        f"how many predictions there are. On average it is {tendency} by {share(abs(float(gap)))}; "
        f"ECE {percent(test.ece)}."
    )


def _confusion_caption(test: TestSummary) -> str:
    wrong = test.confusion.copy()
    np.fill_diagonal(wrong, 0)
    right = test.samples - int(wrong.sum())
    told = f"{right} of {test.samples} are on the diagonal, where truth and prediction agree."
    if not wrong.any():
        return told
    row, column = np.unravel_index(int(wrong.argmax()), wrong.shape)
    return (
        f"{told} The most common mistake: “{test.classes[row]}” taken for “{test.classes[column]}”, "
        f"{counted(wrong[row, column], 'time')}."
    )


#: Field of ``TestSummary``, title and caption of each gallery.
GALLERIES = (
    ("most_certain", "Most certain", "The samples that the network finds most typical of a class."),
    ("least_certain", "Least certain", "The samples that the network finds hardest to classify."),
    (
        "certain_mistakes",
        "Most certain mistakes",
        "Either the label in the data is wrong, or the network has missed something.",
    ),
)


def examples(runs: Sequence[RunSummary]) -> Section | None:
    """The test samples the network is most and least sure of, and the mistakes it is most sure of."""
    figures = tuple(
        Figure(f"{field.replace('_', '-')}-{place}", of_run(title, run.name, len(runs)), caption, samples(chosen))
        for field, title, caption in GALLERIES
        for place, run in enumerate(runs, start=1)
        if run.test is not None and (chosen := getattr(run.test, field))
    )
    text = "Each test sample with its prediction and the probability of it, and with the true class if that is another."
    return Section("examples", "Examples", text, figures, min(2, len(runs))) if figures else None


def samples(chosen: Sequence[Example]) -> Content:
    """Pictures where there are any, else a table of the same."""
    tiles = tuple(_tile(example) for example in chosen)
    if any(tile is None for tile in tiles):
        rows = tuple((str(one.index), one.predicted, share(one.probability), one.truth) for one in chosen)
        marked = frozenset((row, 3) for row, one in enumerate(chosen) if not one.is_right)
        return Table(("Test sample", "Prediction", "Probability", "Truth"), rows, marked)
    return Gallery(tuple(tile for tile in tiles if tile is not None))


def _tile(example: Example) -> Tile | None:
    if example.pixels is None:
        return None
    probability = share(example.probability)
    described = f"test image {example.index}: predicted {example.predicted} with probability {probability}"
    if example.is_right:
        return Tile(example.pixels, f"{described}, correct", example.predicted, probability)
    truth = f"truth: {example.truth}"
    return Tile(example.pixels, f"{described}, {truth}", example.predicted, probability, truth)
