"""Tests of the weight priors."""
