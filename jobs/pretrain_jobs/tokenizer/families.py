"""Families of tokenizers: the special tokens that an architecture needs, and where they go.

Ids are positions in `specials`: a family's special tokens come first in every trained vocabulary.
Sources: BERT (Devlin et al. 2018), RoBERTa (Liu et al. 2019), GPT-2 (Radford et al. 2019) and
Qwen2 (Yang et al. 2024) as their published tokenizers have them, but for the ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pretrain_jobs.errors import UserError

TrainingAlgorithm = Literal["wordpiece", "byteLevelBpe", "unigram"]


@dataclass(frozen=True)
class Family:
    """Special tokens by id and by role, and the template around one text and around two.

    A template is written as tokenizers' TemplateProcessing reads it; none adds no token.
    """

    specials: tuple[str, ...]
    roles: dict[str, str]
    algorithm: TrainingAlgorithm
    template: tuple[str, str] | None = None

    @property
    def unknown(self) -> str | None:
        """The token for what the vocabulary cannot spell."""
        return self.roles.get("unk")


BERT = Family(
    specials=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    roles={"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    algorithm="wordpiece",
    template=("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"),
)
ROBERTA = Family(
    specials=("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
    roles={
        "bos": "<s>",
        "pad": "<pad>",
        "eos": "</s>",
        "unk": "<unk>",
        "mask": "<mask>",
        "cls": "<s>",
        "sep": "</s>",
    },
    algorithm="byteLevelBpe",
    template=("<s>:0 $A:0 </s>:0", "<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0"),
)
GPT2 = Family(
    specials=("<|endoftext|>",),
    roles={"bos": "<|endoftext|>", "eos": "<|endoftext|>", "pad": "<|endoftext|>"},
    algorithm="byteLevelBpe",
)
QWEN2 = Family(
    specials=("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    roles={"eos": "<|endoftext|>", "pad": "<|endoftext|>"},
    algorithm="byteLevelBpe",
)

_BY_ARCHITECTURE: dict[str, Family] = {
    "bert": BERT,
    "modernbert": BERT,
    "roberta": ROBERTA,
    "gpt2": GPT2,
    "qwen2": QWEN2,
}

INPUTS_WITH_SEGMENTS = ("input_ids", "token_type_ids", "attention_mask")
INPUTS = ("input_ids", "attention_mask")


def family_of(architecture: str | None) -> Family:
    """The family of an architecture; UserError for one whose special tokens are not known."""
    family = _BY_ARCHITECTURE.get(architecture or "")
    if family is None:
        raise UserError(
            f"no tokenizer can be trained for model.architecture {architecture!r}: expected one of "
            f"{', '.join(_BY_ARCHITECTURE)}; or load one with tokenizer.uri"
        )
    return family


def model_inputs(architecture: str | None) -> tuple[str, ...]:
    """What a model of the architecture is called with, for `model_input_names`."""
    return INPUTS_WITH_SEGMENTS if architecture == "bert" else INPUTS
