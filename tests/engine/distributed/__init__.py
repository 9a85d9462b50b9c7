"""Training in several real processes."""
