"""The version of the package; the build and the distributions read it from here."""

__version__ = "0.1.0"
