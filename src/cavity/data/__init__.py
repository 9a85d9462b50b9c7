"""Data sets by name, generated ones, and a user's own: found or downloaded, verified, standardised.

Importing this package is cheap: NumPy, torch, scikit-learn, pooch and Pillow are imported where they serve.
"""

from cavity.data.dataset import Dataset
from cavity.data.errors import DataError, DataNotFound
from cavity.data.loading import load
from cavity.data.places import Entry, Place, available, where
from cavity.data.registry import names
from cavity.data.store import fetch
from cavity.data.treatment import Treatment

__all__ = [
    "DataError",
    "DataNotFound",
    "Dataset",
    "Entry",
    "Place",
    "Treatment",
    "available",
    "fetch",
    "load",
    "names",
    "where",
]
