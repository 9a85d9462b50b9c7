"""Which settings of a run somebody chose: those that would be others if they had been left to their defaults."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from cavity.runs.config import Config, completed

if TYPE_CHECKING:
    from cavity.data import Dataset

#: Written by every run as it finds the machine, so that nobody can say who chose them.
OF_THE_MACHINE = ("device", "threads")
#: What only goes with the recipe of the paper.
NUMBERS = ("rate", "rho", "damping")


def chosen(config: Config, dataset: Dataset | None) -> frozenset[str]:
    """The names of the settings that are not what ``cavity train`` would take without them.

    A default may depend on the data and on other settings (ρ of the paper on the epochs), so each one is left out by
    itself and completed anew. Without the data, what depends on them counts as chosen if it has no fixed default.
    """
    found = frozenset(
        item.name
        for item in fields(config)
        if item.name not in OF_THE_MACHINE and getattr(config, item.name) != _default(config, item.name, dataset)
    )
    # A recipe puts in its own numbers, and its numbers ask for the recipe: without any of them chosen, it was.
    differs = config.recipe != type(config)().recipe and found.isdisjoint(NUMBERS)
    return found | {"recipe"} if differs else found


def _default(config: Config, name: str, dataset: Dataset | None) -> object:
    fresh = next(item.default for item in fields(config) if item.name == name)
    # Widths are one of two ways to say the same: without either, the default is in the first.
    also = {"hidden": None} if name == "layers" else {}
    try:
        without = config.replace(**{name: fresh}, **also)
        if dataset is not None:
            sizes = len(dataset.x_train), len(dataset.x_test), dataset.n_features, dataset.n_classes
            without = completed(without, *sizes, dataset.image_shape)
    except ValueError:  # the others do not go without it, so somebody chose it
        return fresh
    return getattr(without, name)
