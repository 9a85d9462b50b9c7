"""What is wrong with a file of packed weights."""


class PackedError(ValueError):
    """A packed network is of another kind or version, truncated or altered; the message says which."""
