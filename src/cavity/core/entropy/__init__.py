"""The logarithm of the evidence from the messages of a fixed point; docs/theory.md derives it.

    log Z = Σ_kn φ_kn + Σ_ki (ψ_ki − ψ⁰_ki) − what the edges between them count twice

``bethe`` (BP and BPI) has the edges one by one, ``tap`` (AMP, and BP and BPI in large layers) to second order in what
they carry, and ``bound`` is the variational bound of mean field. ``forms`` adds up the layers.
"""

from cavity.core.entropy.fixed_point import FixedPoint, fixed_point, prior_states, steady_point
from cavity.core.entropy.forms import free_entropy
from cavity.core.entropy.terms import Terms

__all__ = ["FixedPoint", "Terms", "fixed_point", "free_entropy", "prior_states", "steady_point"]
