"""Priors ψ: how natural parameters of a weight become its mean, variance and most probable value."""

from cavity.core.priors.atoms import Atoms, Ternary
from cavity.core.priors.base import Prior
from cavity.core.priors.binary import Binary
from cavity.core.priors.gaussian import Gaussian
from cavity.util.registry import Registry

PRIORS: Registry[Prior] = Registry("prior", Binary, Gaussian, Ternary)

__all__ = ["PRIORS", "Atoms", "Binary", "Gaussian", "Prior", "Ternary"]
