"""Reliability: numbers at the edge of what floats can hold, and runs that must repeat to the last bit."""
