"""`python -m pretrain_jobs fill-mask DIR SENTENCE...`: what an exported masked model predicts.

A look at a model, not a measurement: evaluation is the evaluate stage's.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrain_jobs.errors import UserError

if TYPE_CHECKING:
    import torch

MASK = "[MASK]"


@dataclass(frozen=True)
class Prediction:
    """One candidate for a masked position: its text and its probability."""

    text: str
    probability: float


def main(arguments: Sequence[str]) -> None:
    """Print the best candidates for each `[MASK]` of each sentence."""
    options = _parse(arguments)
    if not (options.directory / "config.json").is_file():
        raise UserError(f"{options.directory} holds no exported model: config.json is missing")
    model, tokenizer = _load(options.directory)
    for sentence in options.sentences:
        print(sentence)  # noqa: T201
        for candidates in predict(model, tokenizer, sentence=sentence, count=options.top):
            row = "   ".join(f"{item.text} {item.probability:.0%}" for item in candidates)
            print(f"    {row}")  # noqa: T201


def predict(model: Any, tokenizer: Any, *, sentence: str, count: int) -> list[list[Prediction]]:
    """The `count` best candidates for each `[MASK]` in the sentence, in order of position."""
    import torch

    if MASK not in sentence:
        raise UserError(f"nothing to predict in {sentence!r}: write {MASK} where a token is hidden")
    encoded = tokenizer(sentence.replace(MASK, tokenizer.mask_token), return_tensors="pt")
    positions = (encoded["input_ids"][0] == tokenizer.mask_token_id).nonzero().flatten()
    with torch.no_grad():
        logits_LV = model(**encoded).logits[0, :, : len(tokenizer)]
    return [_best(logits_LV[position], tokenizer, count) for position in positions]


def _best(logits_V: torch.Tensor, tokenizer: Any, count: int) -> list[Prediction]:
    values, ids = logits_V.softmax(-1).topk(count)
    texts = [tokenizer.decode([int(token)]).strip() or "␣" for token in ids]
    return [Prediction(text, float(value)) for text, value in zip(texts, values, strict=True)]


def _load(directory: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    model = AutoModelForMaskedLM.from_pretrained(directory, dtype=torch.float32)
    return model.eval(), AutoTokenizer.from_pretrained(directory)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain_jobs fill-mask",
        description="Show what an exported masked language model predicts for hidden tokens.",
    )
    parser.add_argument("directory", type=Path, help="exported Hugging Face directory")
    parser.add_argument("sentences", nargs="+", help=f"sentences with {MASK} in them")
    parser.add_argument("--top", type=int, default=4, help="candidates to show (4)")
    return parser.parse_args(arguments)
