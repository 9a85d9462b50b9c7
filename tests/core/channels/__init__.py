"""Channels and priors against autodiff, quadrature and high-precision arithmetic."""
