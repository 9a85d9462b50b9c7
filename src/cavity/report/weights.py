"""Where the weights are: histograms of magnetisations, and the first layer as pictures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cavity.report.content import Gallery, Histogram, Section, Tile, of_run
from cavity.report.palette import NEGATIVE, POSITIVE
from cavity.report.summary import FirstLayer, Floats, LayerSummary, RunSummary
from cavity.report.wording import fixed, share


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
