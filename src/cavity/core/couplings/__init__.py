"""Couplings: how weights connect inputs to preactivations, written as three contractions."""

from cavity.core.couplings.base import Coupling
from cavity.core.couplings.constant import Constant
from cavity.core.couplings.conv2d import Conv2d
from cavity.core.couplings.dense import Dense
from cavity.core.couplings.masks import free_columns, random_mask

__all__ = ["Constant", "Conv2d", "Coupling", "Dense", "free_columns", "random_mask"]
