"""What the API must know of a model architecture; the model itself is built elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pretrain_api.layers import Layer
from pretrain_api.spec.model import ConfigValue

ObjectiveName = Literal["mlm", "clm", "spanCorruption", "denoising"]


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One transformers model type.

    `objective` is the one its head is made for. `layer` is what it says of a spec, in wire
    names. `config` has transformers' defaults of every override that is accepted. `positions`,
    `hidden` and `heads` name keys of that config; no `positions` means relative ones without a
    limit. `padded_positions` tells that rows up to the padding token's are never a position
    (RoBERTa), `rotary` that a head is turned in pairs of dimensions, `isolates` that packed
    documents can be kept apart in attention, `half_range` that activations stay within fp16's
    65,504, `runs` that this version trains it.
    """

    name: str
    objective: ObjectiveName
    config: Mapping[str, ConfigValue]
    layer: Layer = field(default_factory=dict)
    positions: str | None = "max_position_embeddings"
    hidden: str = "hidden_size"
    heads: str = "num_attention_heads"
    key_value_heads: str | None = None
    padded_positions: bool = False
    rotary: bool = False
    isolates: bool = True
    half_range: bool = True
    runs: bool = True

    def setting(self, overrides: Mapping[str, ConfigValue], key: str) -> int:
        """Give an integer setting: the override if it is an integer, else the default."""
        value = overrides.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        default = self.config.get(key, 0)
        return int(default) if isinstance(default, int) else 0

    def unusable_positions(self, overrides: Mapping[str, ConfigValue]) -> int:
        """Count position rows that no token takes: padding id + 1 in RoBERTa, else none."""
        return self.setting(overrides, "pad_token_id") + 1 if self.padded_positions else 0

    def longest_sequence(self, overrides: Mapping[str, ConfigValue]) -> int | None:
        """Give the most positions that a sample may have; None when there is no limit."""
        if self.positions is None:
            return None
        return self.setting(overrides, self.positions) - self.unusable_positions(overrides)
