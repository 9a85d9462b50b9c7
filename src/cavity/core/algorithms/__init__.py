"""The inner loop: message passing on one mini-batch. One skeleton, four small algorithms."""

from cavity.core.algorithms.amp import AMP
from cavity.core.algorithms.base import Algorithm
from cavity.core.algorithms.bp import BP
from cavity.core.algorithms.bpi import BPI
from cavity.core.algorithms.mf import MF
from cavity.util.registry import Registry

ALGORITHMS: Registry[Algorithm] = Registry("algorithm", BP, BPI, MF, AMP)

__all__ = ["ALGORITHMS", "AMP", "BP", "BPI", "MF", "Algorithm"]
