"""Exact answers that the library is measured against: numpy and scipy only, nothing from the library."""
