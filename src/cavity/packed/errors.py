"""Errors in packed files."""


class PackedError(ValueError):
    """A packed network is of another kind or version, truncated or altered; the message says which."""
