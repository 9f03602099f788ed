"""A cluster as `pretrainctl describe` and `pretrainctl logs` see it: read only.

`access` and `reading` ask the API server; all else is text and choices made of what they found.
"""
