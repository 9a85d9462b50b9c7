"""Priors ψ: how natural parameters of a weight become its mean, variance and most probable value."""

from cavity.core.priors.atoms import Atoms, Ternary
from cavity.core.priors.base import Prior
from cavity.core.priors.binary import Binary
from cavity.core.priors.gaussian import Gaussian

PRIORS: dict[str, type[Prior]] = {"binary": Binary, "gaussian": Gaussian, "ternary": Ternary}

__all__ = ["PRIORS", "Atoms", "Binary", "Gaussian", "Prior", "Ternary"]
