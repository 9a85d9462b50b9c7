"""Tests of packed networks."""
