"""Exported networks on emulated boards."""
