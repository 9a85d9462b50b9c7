"""One sample at a time, in NumPy: the mini-batch of one that a stream brings.

A step of a small network on one sample is about two hundred operations on a few numbers each. PyTorch takes some
microseconds to begin any of them, and NumPy one. The equations are those of ``core/``, written out for mean field,
dense layers of ±1 weights, sign and gate units, and the outputs of the estimators; ``tests/engine/test_single.py``
compares every step with ``Trainer.step``. Where something else is asked for, ``SingleSweep.of`` gives None, and the
trainer does it.
"""

from cavity.engine.single.sweep import SingleSweep

__all__ = ["SingleSweep"]
