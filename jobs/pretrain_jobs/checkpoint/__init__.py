"""Checkpoints that are exact and safe at every instant: one PUT commits, and hashes decide."""
