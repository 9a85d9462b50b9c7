"""How probable a network finds labelled samples, and how many networks like it there are: both from the messages.

    evidence = cavity.entropy.log_evidence(net, x, y)          # log P(y | x), summed over the prior that net holds
    evidence.value, evidence.samples, evidence.converged

    around = cavity.entropy.local_entropy(net, x, y, [0.02, 0.05, 0.1])     # for ±1 weights
    around.per_weight

docs/theory.md derives both; ``core/entropy`` has one function for each term.
"""

from cavity.analysis.entropy.evidence import Evidence, Unreliable, log_evidence
from cavity.analysis.entropy.local import LocalEntropy, local_entropy

__all__ = ["Evidence", "LocalEntropy", "Unreliable", "local_entropy", "log_evidence"]
