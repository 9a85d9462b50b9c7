"""How often the errors of a run are measured, so that it takes next to no time.

Measuring a sample takes the products of one pass with the most probable weights and of ω and V; training on it takes
those of the algorithm. The interval follows from these counts, never from a clock, so that a run repeats itself.
"""

from __future__ import annotations

import math

from cavity.analysis.metrics import TRAIN_SAMPLES
from cavity.core.algorithms import ALGORITHMS

#: The share of the training time that measuring may take.
SHARE = 0.025
#: Passes over the weights for each measured sample, in the unit of ``Algorithm.passes``.
MEASURING = 3.0
#: Samples times weights that take a few hundredths of a second: measured after every epoch.
NOTHING_TO_SPEAK_OF = 1e9


def interval(algorithm: str, samples: int, test_samples: int, weights: int) -> int:
    """Epochs of ``samples`` between two measurements on ``test_samples`` and a part of the training set."""
    measured = test_samples + min(samples, TRAIN_SAMPLES)
    if measured * weights <= NOTHING_TO_SPEAK_OF:
        return 1
    return math.ceil(MEASURING * measured / (SHARE * ALGORITHMS[algorithm].passes * samples))
