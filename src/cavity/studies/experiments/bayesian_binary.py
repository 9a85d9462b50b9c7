"""Point-wise and Bayesian errors with binary weights: the paper's Fig. "bayes_main", left panel."""

from __future__ import annotations

from cavity.studies.experiments.bayesian import experiment

EXPERIMENT = experiment("bayesian-binary", "binary", "binarynet-adam", "Bayesian and point-wise error, binary weights")
