"""Formats of token datasets, one module each."""
