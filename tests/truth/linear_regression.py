"""Exact Bayesian linear regression, y = W x + √ν·noise, with an independent Gaussian prior for each weight.

The prior of a weight is ∝ exp(h w − ½ λ w²): mean h/λ, variance 1/λ. The outputs k share the inputs and
nothing else, so each is an N×N problem of its own:

    Λ_k = diag(λ_k) + XᵀX/ν,    mean_k = Λ_k⁻¹ (h_k + Xᵀy_k/ν),    covariance_k = Λ_k⁻¹
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def posterior(x: Array, y: Array, field: Array, precision: Array, noise: float) -> tuple[Array, Array]:
    """Mean (K×N) and covariance (K×N×N) of the weights for x (M×N), y (M×K), h and λ (K×N)."""
    if x.shape[0] != y.shape[0] or field.shape != (y.shape[1], x.shape[1]) or precision.shape != field.shape:
        raise ValueError(
            f"shapes must be x (M, N), y (M, K), field and precision (K, N); "
            f"were {x.shape}, {y.shape}, {field.shape}, {precision.shape}"
        )
    if noise <= 0 or (precision <= 0).any():
        least = precision.min()
        raise ValueError(f"noise and precision must be positive; were {noise} and at least {least}")
    diagonal = precision[:, :, None] * np.eye(x.shape[1])
    covariance = np.linalg.inv(diagonal + x.T @ x / noise)
    mean = np.einsum("kij,kj->ki", covariance, field + y.T @ x / noise)
    return mean, covariance


def log_evidence(x: Array, y: Array, field: Array, precision: Array, noise: float) -> float:
    """log P(y | x): y_k is normal with mean Xh_k/λ_k and covariance X diag(1/λ_k) Xᵀ + ν."""
    total = 0.0
    for h, scale, target in zip(field, precision, y.T, strict=True):
        covariance = (x / scale) @ x.T + noise * np.eye(len(x))
        residual = target - x @ (h / scale)
        _, log_det = np.linalg.slogdet(2 * np.pi * covariance)
        total -= 0.5 * (log_det + residual @ np.linalg.solve(covariance, residual))
    return total
