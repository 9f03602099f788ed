"""What a preset is: published hyperparameters as a layer below what the user says."""

from __future__ import annotations

from dataclasses import dataclass

from pretrain_api.layers import Layer


@dataclass(frozen=True, kw_only=True)
class Preset:
    """`layer` is a part of a spec in wire names; `source` says where its numbers are from.

    `expectation` is what the source reports at the end of its run, on its own corpus.
    """

    name: str
    architecture: str
    source: str
    layer: Layer
    expectation: str = ""
