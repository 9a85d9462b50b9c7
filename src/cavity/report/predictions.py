"""What the network says about the test set, and how far it can be believed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cavity.report.content import Content, Figure, Gallery, Matrix, Reliability, Section, Table, Tile
from cavity.report.summary import Example, RunSummary, TestSummary
from cavity.report.wording import of_run, percent, share


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
                Matrix("truth", "prediction", names, run.test.confusion),
            ),
        ]
    text = "Both figures are about the Bayesian predictions on the test set: the class with the largest probability."
    return Section("predictions", "Predictions", text, tuple(figures)) if figures else None


def _reliability_caption(test: TestSummary) -> str:
    gap = np.nansum(test.bins.share * (test.bins.accuracy - test.bins.confidence))
    tendency = "less sure than it could be" if gap > 0 else "surer than it should be"
    return (
        f"On the diagonal it is honest: what it says with 80\u00a0% confidence is right 80\u00a0% of the time. "
        f"Below it the network is overconfident, above it too modest. The strip shows where the predictions are. "
        f"On average it is {tendency}, by {share(abs(float(gap)))}; ECE {percent(test.ece)}."
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
        f"{told} The strongest colour off it is the commonest confusion: “{test.classes[row]}” taken for "
        f"“{test.classes[column]}”, {wrong[row, column]} times."
    )


#: Key, title and caption of each gallery, and which samples it shows.
GALLERIES: tuple[tuple[str, str, str, Callable[[TestSummary], tuple[Example, ...]]], ...] = (
    (
        "most-certain",
        "Most certain",
        "Typical of their class, as the network sees it.",
        lambda test: test.most_certain,
    ),
    (
        "least-certain",
        "Least certain",
        "Would you be sure? Doubt should be where people doubt.",
        lambda test: test.least_certain,
    ),
    (
        "certain-mistakes",
        "Most certain mistakes",
        "Wrong labels in the data, or something the network has not understood.",
        lambda test: test.certain_mistakes,
    ),
)


def examples(runs: Sequence[RunSummary]) -> Section | None:
    """The test samples the network is most and least sure of, and the mistakes it is most sure of."""
    figures = tuple(
        Figure(f"{key}-{place}", of_run(title, run.name, len(runs)), caption, samples(choose(run.test)))
        for key, title, caption, choose in GALLERIES
        for place, run in enumerate(runs, start=1)
        if run.test is not None and choose(run.test)
    )
    text = "Under each test sample: the prediction and its probability. Where the truth is another class, it is named."
    return Section("examples", "Certainty", text, figures, min(2, len(runs))) if figures else None


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
        return Tile(example.pixels, f"{described}, which is right", example.predicted, probability)
    truth = f"is {example.truth}"
    return Tile(example.pixels, f"{described}, {truth}", example.predicted, probability, truth)
