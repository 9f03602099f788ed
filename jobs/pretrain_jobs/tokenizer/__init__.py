"""Tokenizers: trained, loaded and described without torch or transformers."""
