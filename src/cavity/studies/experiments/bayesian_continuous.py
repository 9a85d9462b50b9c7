"""Point-wise and Bayesian errors with continuous weights: the paper's Fig. "bayes_main", right panel."""

from __future__ import annotations

from cavity.studies.experiments.bayesian import experiment

EXPERIMENT = experiment("bayesian-continuous", "gaussian", "adam", "Bayesian and point-wise error, continuous weights")
