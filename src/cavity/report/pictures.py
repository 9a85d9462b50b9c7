"""What the network has learnt and what it says: histograms, reliability diagrams, confusion matrices and galleries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cavity.report.content import (
    Content,
    Figure,
    Gallery,
    Histogram,
    Matrix,
    Reliability,
    Scatter,
    Section,
    Table,
    Tile,
    of_run,
)
from cavity.report.palette import NEGATIVE, POSITIVE
from cavity.report.summary import (
    Example,
    FeatureMaps,
    FirstLayer,
    Floats,
    LayerSummary,
    NumbersSummary,
    RunSummary,
    TestSummary,
)
from cavity.report.wording import counted, fixed, percent, share

#: Points of a scatter plot, and half a 90 % interval in standard deviations.
MOST_POINTS, NINETY = 200, 1.6449


def magnetisations(runs: Sequence[RunSummary]) -> Section:
    """One histogram per layer and run."""
    text = (
        "The magnetisation m of a weight is its posterior mean. Weights near 0 are still undecided; weights near "
        "either end have settled."
    )
    figures = []
    for place, run in enumerate(runs):
        for number, layer in enumerate(run.layers, start=1):
            bars = Histogram("magnetisation m", layer.edges, layer.shares, place)
            key = f"magnetisation-{place + 1}-{number}"
            figures.append(of_run(runs, place, key, layer.name, _told(layer), bars))
    return Section("magnetisations", "Magnetisations", text, tuple(figures), 3)


def _told(layer: LayerSummary) -> str:
    weights = f"{layer.free_weights:,} {layer.kind} weights".replace(",", "\u202f")
    if layer.bound is None:
        return f"{weights}, ⟨m²⟩ = {fixed(layer.polarization, 3)}."
    return f"{weights}, {share(layer.committed)} of them beyond ±{fixed(0.9 * layer.bound, 1)}."


def first_layer(runs: Sequence[RunSummary]) -> Section:
    """The weights that look at the input, as pictures, where it is an image."""
    text = (
        "Each picture shows what one unit responds to: the posterior means of its weights, pixel by pixel. "
        "Shapes were learned; salt-and-pepper noise is left over from the random initial state."
    )
    figures = tuple(
        of_run(runs, place, f"first-layer-{place + 1}", "Posterior means", _about(layer), _gallery(layer))
        for place, run in enumerate(runs)
        if (layer := run.first_layer) is not None
    )
    return Section("first-layer", "First layer", text, figures, min(2, len(runs)))


def _about(layer: FirstLayer) -> str:
    shown = len(layer.means)
    which = f"All {shown} units" if shown == layer.total else f"The first {shown} of {layer.total} units"
    which += ", seen through the whitening" if layer.whitened else ""
    bound = fixed(layer.bound, 2).removesuffix(".00")
    if layer.means.shape[1] == 3:
        return f"{which}. Grey is 0; a bright or dark colour is a weight near ±{bound} on that channel."
    channels = "" if layer.means.shape[1] == 1 else f" The {layer.means.shape[1]} channels are averaged."
    return f"{which}. Orange is positive, blue is negative; faint is near 0, full colour is ±{bound}.{channels}"


def _gallery(layer: FirstLayer) -> Gallery:
    pictures = (weights_picture(means, layer.bound) for means in layer.means)
    return Gallery(tuple(Tile(one, f"weights of unit {number}") for number, one in enumerate(pictures, start=1)))


def weights_picture(means: Floats, bound: float) -> NDArray[np.uint8]:
    """Weights of one unit (channels, height, width) within ±bound as bytes.

    Three channels become a colour picture (grey is 0); otherwise the mean over the channels becomes (height, width, 4):
    blue below 0, orange above, the more opaque the larger.
    """
    scaled = np.clip(means / bound, -1.0, 1.0)
    if len(scaled) == 3:
        return np.round(127.5 * (1 + np.moveaxis(scaled, 0, -1))).astype(np.uint8)
    flat = scaled.mean(axis=0)
    colours = np.where((flat > 0)[..., None], np.array(POSITIVE), np.array(NEGATIVE)).astype(np.uint8)
    opacity = np.round(255 * np.abs(flat)).astype(np.uint8)
    return np.concatenate([colours, opacity[..., None]], axis=-1)


def feature_maps(runs: Sequence[RunSummary]) -> Section:
    """What the channels of each convolution answer to a few test images."""
    text = (
        "Each row begins with a test image; the pictures behind it are what the first channels of a convolution make "
        "of it, position by position: the posterior means of their units."
    )
    figures = tuple(
        of_run(runs, place, f"maps-{place + 1}-{number}", layer.name, _about_maps(layer), _maps(layer, run))
        for place, run in enumerate(runs)
        for number, layer in enumerate(run.maps, start=1)
    )
    return Section("feature-maps", "Feature maps", text, figures)


def _about_maps(layer: FeatureMaps) -> str:
    shown = layer.maps.shape[1]
    which = f"All {shown} channels" if shown == layer.total else f"The first {shown} of {layer.total} channels"
    return f"{which}: {layer.units}. Orange is positive, blue is negative; a faint unit is undecided."


def _maps(layer: FeatureMaps, run: RunSummary) -> Gallery:
    bound = float(np.abs(layer.maps).max()) or 1.0
    tiles = []
    for row, (index, channels) in enumerate(zip(layer.indices, layer.maps, strict=True)):
        if run.map_images:
            tiles.append(Tile(run.map_images[row], f"test image {index}"))
        for number, one in enumerate(channels, start=1):
            tiles.append(Tile(weights_picture(one[None], bound), f"channel {number} on test image {index}"))
    return Gallery(tuple(tiles), layer.maps.shape[1] + bool(run.map_images))


def calibration(runs: Sequence[RunSummary]) -> Section:
    """Reliability diagram and confusion matrix of every run with classes, predictions against the truth of others."""
    text = "The Bayesian predictions on the test set"
    text += ": the class with the highest probability." if any(run.test for run in runs) else "."
    figures: list[Figure] = []
    for place, run in enumerate(runs):
        if (test := run.test) is not None:
            diagram, matrix = Reliability(test.bins, place), Matrix(test.classes, test.confusion)
            about, mistakes = _reliability_caption(test), _confusion_caption(test)
            figures += [
                of_run(runs, place, f"reliability-{place + 1}", "Reliability", about, diagram),
                of_run(runs, place, f"confusion-{place + 1}", "Confusion matrix", mistakes, matrix),
            ]
        if (numbers := run.numbers) is not None:
            figures.append(of_run(runs, place, f"numbers-{place + 1}", "Predictions", *_scatter(numbers, place)))
    return Section("predictions", "Predictions", text, tuple(figures))


def _scatter(numbers: NumbersSummary, place: int) -> tuple[str, Scatter]:
    """Caption and content; of many samples some, evenly over the range of the labels."""
    order = np.argsort(numbers.truth, kind="stable")
    some = order[np.unique(np.linspace(0, len(order) - 1, min(len(order), MOST_POINTS)).astype(int))]
    which = f"{len(some)} of {len(order)} test samples" if len(some) < len(order) else f"{len(order)} test samples"
    caption = (
        f"{which} with the intervals in which 90\u00a0% of the labels should lie; {percent(numbers.coverage)} of all "
        f"do. Root mean square error {numbers.rmse_bayes:.4g} in units of the label, {numbers.rmse:.4g} with the most "
        "probable weights. On the dotted line, prediction and truth agree."
    )
    return caption, Scatter(numbers.truth[some], numbers.predicted[some], NINETY * numbers.spread[some], place)


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
