"""Models: built from the specification, their padded vocabulary, parameter groups and cost."""
