"""What the network says about the test set, and how far it can be believed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cavity.report.content import Content, Figure, Gallery, Matrix, Reliability, Section, Table, Tile, of_run
from cavity.report.summary import Example, RunSummary, TestSummary
from cavity.report.wording import counted, percent, share


def calibration(runs: Sequence[RunSummary]) -> Section:
    """Reliability diagram and confusion matrix of every run with classes."""
    text = "Both figures show the Bayesian predictions on the test set: the class with the highest probability."
    figures: list[Figure] = []
    for place, run in enumerate(runs):
        if (test := run.test) is not None:
            diagram, matrix = Reliability(test.bins, place), Matrix(test.classes, test.confusion)
            about, mistakes = _reliability_caption(test), _confusion_caption(test)
            figures += [
                of_run(runs, place, f"reliability-{place + 1}", "Reliability", about, diagram),
                of_run(runs, place, f"confusion-{place + 1}", "Confusion matrix", mistakes, matrix),
            ]
    return Section("predictions", "Predictions", text, tuple(figures))


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


def examples(runs: Sequence[RunSummary]) -> Section:
    """The test samples the network is most and least sure of, and the mistakes it is most sure of."""
    figures = tuple(
        of_run(runs, place, f"{field.replace('_', '-')}-{place + 1}", title, caption, samples(chosen))
        for field, title, caption in GALLERIES
        for place, run in enumerate(runs)
        if run.test is not None and (chosen := getattr(run.test, field))
    )
    text = "Each test sample with its prediction and the probability of it, and with the true class if that is another."
    return Section("examples", "Examples", text, figures, min(2, len(runs)))


def samples(chosen: Sequence[Example]) -> Content:
    """Pictures where there are any, else a table of the same."""
    if any(one.pixels is None for one in chosen):
        rows = tuple((str(one.index), one.predicted, share(one.probability), one.truth) for one in chosen)
        marked = frozenset((row, 3) for row, one in enumerate(chosen) if not one.is_right)
        return Table(("Test sample", "Prediction", "Probability", "Truth"), rows, marked)
    return Gallery(tuple(map(_tile, chosen)))


def _tile(example: Example) -> Tile:
    assert example.pixels is not None
    probability, truth = share(example.probability), "" if example.is_right else f"truth: {example.truth}"
    described = f"test image {example.index}: predicted {example.predicted} with probability {probability}"
    return Tile(example.pixels, f"{described}, {truth or 'correct'}", example.predicted, probability, truth)
