"""Couplings: how weights connect inputs to preactivations, written as three contractions."""

from cavity.couplings.base import Coupling
from cavity.couplings.conv2d import Conv2d
from cavity.couplings.dense import Dense
from cavity.couplings.masks import free_columns, random_mask

__all__ = ["Conv2d", "Coupling", "Dense", "free_columns", "random_mask"]
