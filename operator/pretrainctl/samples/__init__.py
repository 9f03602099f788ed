"""Samples that come with the package, and the data that the quickstart needs."""
