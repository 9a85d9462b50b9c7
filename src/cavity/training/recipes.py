"""The one place that says what training takes where nobody says otherwise. Importing it is cheap.

``ANNEALED`` is for ``cavity train``, ``TABLES`` for the estimators: both leave the numbers of the update to the
messages (``plans.py``). ``PAPER`` has the paper's constants: it gives one for ρ, and a run whose number of steps is
known gets what polarises the weights within it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

#: ρ − 1 of all layers but the last, summed over a run's steps: it brings the polarisation to 0.9 at the end of a run,
#: be it 3 epochs of Fashion-MNIST or 30 of digits. The paper's 1e-4 adds up to 2 after 43 epochs.
POLARIZATION = 2.0
#: In a run of fewer mini-batches than c/0.05 it is left to the data to polarise the weights.
LARGEST_RHO = 1.05
#: The paper's ρ of all layers but the last, for a run of unknown length.
PAPER_RHO = 1.0001
#: ρ of the last layer, which would polarise within the first epoch.
LAST_RHO = 0.9


@dataclass(frozen=True)
class Recipe:
    """What a run takes by default; ``batch_size`` and ``rho`` follow from the data and the length of the run."""

    name: str
    algorithm: str
    weights: str
    hidden: tuple[int, ...]
    epochs: int
    #: The usual mini-batch, which becomes smaller until an epoch has ``fewest_steps`` of them; for data so large that
    #: an epoch has ``many_steps`` it grows up to ``largest_batch``.
    usual_batch: int
    largest_batch: int = 0
    fewest_steps: int = 1
    many_steps: int = 1
    activation: str = "sign"
    damping: float = 0.8
    init: float = 1.0
    inner_iterations: int = 1

    def batch_size(self, samples: int) -> int:
        """Samples of a mini-batch."""
        few, many = samples // self.fewest_steps, samples // self.many_steps
        return max(1, min(few, self.usual_batch), min(many, self.largest_batch))

    def rho(self, layers: int, steps: int | None = None) -> tuple[float, ...]:
        """ρ of each layer: 1 + c/steps, or the paper's constant where the steps of the run are unknown, and 0.9 for the
        last. A network of one layer has no last layer to hold back."""
        if steps is None:
            return (1.0,) if layers == 1 else (PAPER_RHO,) * (layers - 1) + (LAST_RHO,)
        below = min(1 + POLARIZATION / steps, LARGEST_RHO)
        return (below,) * (layers - 1) + (LAST_RHO,) if layers > 1 else (below,)


PAPER = Recipe("paper", "bp", "binary", hidden=(501, 501), epochs=30, usual_batch=128)
ANNEALED = replace(PAPER, name="annealed", algorithm="mf")
#: Where the numbers of an update come from.
RECIPES = {"annealed": "the messages choose the rate, which is annealed", "paper": "the constants of the paper"}
#: Two to four mini-batches an epoch are enough: steps of natural-gradient ascent are few and large.
TABLES = Recipe(
    "tables",
    "mf",
    "gaussian",
    hidden=(201,),
    activation="relu",
    epochs=20,
    usual_batch=256,
    largest_batch=1024,
    fewest_steps=2,
    many_steps=4,
)
#: Regression needs more steps: a mean is never right enough.
NUMBERS = replace(TABLES, name="numbers", usual_batch=1024, fewest_steps=4)
#: Streams, of which every sample is seen once, need smaller ones, and so do weights that become certain.
STREAMS = replace(TABLES, name="streams", usual_batch=32, largest_batch=128, fewest_steps=16, many_steps=400)
#: Data sets for which the paper's network is too large.
SMALLER = {"digits": replace(ANNEALED, hidden=(201, 201), usual_batch=64)}


class Changes(NamedTuple):
    """What is done to the images of a mini-batch (``augmentation.py``)."""

    flip: bool = False
    shift: int = 0

    @classmethod
    def parse(cls, text: str) -> Changes:
        """``flip``, ``shift:PIXELS``, or both with a comma between them."""
        found = cls()
        for word in text.split(","):
            kind, colon, number = word.strip().partition(":")
            if kind == "flip" and not colon:
                found = found._replace(flip=True)
            elif kind == "shift" and number.isascii() and number.isdigit() and len(number) < 4:
                found = found._replace(shift=int(number))
            else:
                raise ValueError(f"augment must be flip, shift:PIXELS, or both as flip,shift:2, got {text!r}")
        return found


def recipe_for(dataset: str) -> Recipe:
    """What ``cavity train`` takes for a data set."""
    return SMALLER.get(dataset, ANNEALED)
