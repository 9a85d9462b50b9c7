"""The inner loop: message passing on one mini-batch. One skeleton, four small algorithms."""

from cavity.inner.algorithm import Algorithm
from cavity.inner.amp import AMP
from cavity.inner.bp import BP
from cavity.inner.bpi import BPI
from cavity.inner.mf import MF

ALGORITHMS: dict[str, type[Algorithm]] = {"bp": BP, "bpi": BPI, "mf": MF, "amp": AMP}

__all__ = ["ALGORITHMS", "AMP", "BP", "BPI", "MF", "Algorithm"]
