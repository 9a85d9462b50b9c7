"""Every table and figure of the paper, one small module each, on one grid.

Importing this package is cheap: an experiment's module is imported when it is run.
"""

from __future__ import annotations

#: Name → what it shows in a line.
EXPERIMENTS: dict[str, str] = {
    "table-datasets": (
        "test and training errors of BinaryNet, BP, AMP and MF on three data sets, two-class and multi-class"
    ),
    "curves-architectures": (
        "learning curves on Fashion-MNIST for several architectures and batch sizes, epochs to a given error"
    ),
    "sparsity": "test error against the fraction of masked weights, MNIST",
    "bayesian-binary": "point-wise and Bayesian error with binary weights, two-class MNIST: BP, EBP, gradient descent",
    "bayesian-continuous": (
        "point-wise and Bayesian error with continuous weights, two-class MNIST: BP, EBP, gradient descent"
    ),
    "bayesian-multiclass": (
        "point-wise and Bayesian error with ten classes: what rho and damping make the Bayesian one reliably better"
    ),
    "continual": "six permuted MNIST tasks in sequence: BP and BinaryNet",
    "argmax-versions": "the paper's two argmax outputs and the exact one",
    "local-energy": "training error against the fraction of flipped weights",
    "polarization": "polarisation and overlaps of each layer beside the errors",
    "initialization": "distribution of the initial magnetisations",
    "fixed-hyperparameters": "what rho = 1 and damping 0.8 everywhere lose against the tuned values",
    "timing": "time per epoch against batch size",
}
