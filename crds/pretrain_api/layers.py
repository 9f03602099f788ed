"""Layers of a spec as plain wire-name dictionaries: what one leaves out, the one below gives.

It knows the API's unions (of which only one member may come through), not what any field means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Layer = Mapping[str, Any]
"""A part of a spec in wire names; None means "not said"."""

UNIONS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("objective",): ("mlm", "clm", "spanCorruption", "denoising"),
    ("tokenizer",): ("uri", "train"),
    ("training",): ("maxSteps", "epochs", "maxTokens"),
}
"""Members that exclude each other, by the path of the object that holds them."""


def stack(upper: Layer, lower: Layer, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Lay `upper` over `lower`; an object is merged, any other value is replaced.

    Where `upper` says one member of a union, the other members of `lower` do not show.
    """
    said = {key: value for key, value in upper.items() if value is not None}
    below = {key: value for key, value in lower.items() if not _hidden(key, said, path)}
    merged = {**below, **said}
    for key in said.keys() & below.keys():
        if isinstance(said[key], Mapping) and isinstance(below[key], Mapping):
            merged[key] = stack(said[key], below[key], (*path, key))
    return merged


def _hidden(key: str, said: Layer, path: tuple[str, ...]) -> bool:
    union = UNIONS.get(path, ())
    return key in union and key not in said and any(member in said for member in union)


def leaf_paths(layer: Layer, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """Give the path of every value in a layer that is no object."""
    paths: set[tuple[str, ...]] = set()
    for key, value in layer.items():
        if isinstance(value, Mapping) and value:
            paths |= leaf_paths(value, (*path, key))
        else:
            paths.add((*path, key))
    return paths
