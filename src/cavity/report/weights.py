"""Where the weights are: histograms of magnetisations, and the first layer as pictures."""

from __future__ import annotations

from collections.abc import Sequence

from cavity.report.content import Figure, Gallery, Histogram, Section, Tile
from cavity.report.pictures import weights_picture
from cavity.report.summary import FirstLayer, LayerSummary, RunSummary
from cavity.report.wording import fixed, of_run, share


def magnetisations(runs: Sequence[RunSummary]) -> Section:
    """One histogram per layer and run."""
    text = (
        "The magnetisation m of a weight is its posterior mean. A heap around 0 is weights still undecided; "
        "heaps at both ends are weights that have chosen."
    )
    figures = tuple(
        Figure(
            f"magnetisation-{place + 1}-{number + 1}",
            of_run(layer.name, run.name, len(runs)),
            _told(layer),
            Histogram("magnetisation m", "weights (%)", layer.edges, layer.shares, place),
        )
        for place, run in enumerate(runs)
        for number, layer in enumerate(run.layers)
    )
    return Section("magnetisations", "Magnetisations", text, figures, 3)


def _told(layer: LayerSummary) -> str:
    weights = f"{layer.free_weights:,} {layer.kind} weights".replace(",", "\u202f")
    if layer.bound is None:
        return f"{weights}, ⟨m²⟩ = {fixed(layer.polarization, 3)}."
    return f"{weights}, {share(layer.committed)} of them beyond ±{fixed(0.9 * layer.bound, 1)}."


def first_layer(runs: Sequence[RunSummary]) -> Section | None:
    """The weights that look at the input, as pictures; None if no input is an image."""
    figures = tuple(
        Figure(
            f"first-layer-{place + 1}",
            of_run("Posterior means", run.name, len(runs)),
            _about(run.first_layer),
            _gallery(run.first_layer),
        )
        for place, run in enumerate(runs)
        if run.first_layer is not None
    )
    if not figures:
        return None
    text = (
        "Each picture is what one unit looks for in its input: its posterior means, pixel by pixel. "
        "Structure at the size of the object was learned; salt and pepper was left as it started."
    )
    return Section("first-layer", "First layer", text, figures, min(2, len(runs)))


def _about(layer: FirstLayer) -> str:
    shown = len(layer.means)
    which = f"All {shown} units" if shown == layer.total else f"The first {shown} of {layer.total} units"
    bound = fixed(layer.bound, 2).removesuffix(".00")
    if layer.means.shape[1] == 3:
        return f"{which}; grey is 0, and a bright or dark colour is a weight near ±{bound} on that channel."
    channels = "" if layer.means.shape[1] == 1 else f" The {layer.means.shape[1]} channels are averaged."
    return (
        f"{which}; orange is positive, blue negative, the fainter the nearer to 0; full colour is ±{bound}.{channels}"
    )


def _gallery(layer: FirstLayer) -> Gallery:
    return Gallery(
        tuple(
            Tile(weights_picture(means, layer.bound), f"weights of unit {number}")
            for number, means in enumerate(layer.means, start=1)
        )
    )
