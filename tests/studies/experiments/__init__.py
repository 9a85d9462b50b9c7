"""Experiments: the grid, the tables, the plots, and each of them from end to end."""
