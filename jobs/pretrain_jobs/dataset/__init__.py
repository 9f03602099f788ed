"""The prepared dataset: its formats, its manifest and the order in which it is read."""
