"""Readers: one file format each, from bytes of a store to documents and rejects."""
