"""A fast encoder for BERT's tokenizer: the same tokens, looked up instead of computed.

BERT's normaliser and pre-tokenizer look at one character at a time: some separate, some (Han,
punctuation) always stand alone, the others join into runs. So a text's tokens are those of its
pieces, and pieces recur. The library still tells what each new character and run becomes; the
rest is array work. Tokenizers of any other build go through `tokens.BatchEncoder`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from pretrain_jobs.corpus.characters import CODE_POINTS, CharacterTable, code_points
from pretrain_jobs.corpus.tokens import JOINT, BatchEncoder, Encoder, Tokens, concatenate

WINDOW_CHARACTERS = 1 << 19
MAX_PIECES = 1 << 18
"""Pieces that are remembered; then all are forgotten, which costs time and changes nothing."""
MAX_PIECE_CHARACTERS = 1 << 23

_SEPARATOR, _ALONE, _JOINED = 1, 2, 3


def make_encoder(tokenizer: Tokenizer) -> Encoder:
    """The fast encoder where it applies, else the general one."""
    return BertPieceEncoder(tokenizer) if is_bert(tokenizer) else BatchEncoder(tokenizer)


def is_bert(tokenizer: Tokenizer) -> bool:
    """Whether a tokenizer is of BERT's build and takes no added token out of the text first."""
    parts: dict[str, Any] = json.loads(tokenizer.to_str())
    kinds = [(parts[name] or {}).get("type") for name in ("normalizer", "pre_tokenizer", "model")]
    read_from_text = [token for token in parts["added_tokens"] if not token["special"]]
    return (
        kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"]
        and tokenizer.encode_special_tokens
        and not read_from_text
    )


class _Pieces:
    """Tokens of pieces, one after another in growing arrays; a piece is known by its number."""

    def __init__(self) -> None:
        self._tokens = np.empty((3, 1 << 16), np.int32)
        self._first = np.empty(1 << 14, np.int64)
        self._count = np.empty(1 << 14, np.int64)
        self._piece_total = 0
        self._token_total = 0

    def add(self, tokens: Tokens) -> int:
        """Remember a piece's tokens (positions from the piece's start); returns its number."""
        count = len(tokens.ids)
        number, first = self._piece_total, self._token_total
        self._tokens = _with_room(self._tokens, first + count)
        self._first = _with_room(self._first, number + 1)
        self._count = _with_room(self._count, number + 1)
        place = slice(first, first + count)
        self._tokens[0, place] = tokens.ids.astype(np.int32)
        self._tokens[1, place] = tokens.starts
        self._tokens[2, place] = tokens.ends
        self._first[number] = first
        self._count[number] = count
        self._token_total += count
        self._piece_total += 1
        return number

    def gather(self, pieces: NDArray[np.int64], positions: NDArray[np.int64]) -> Tokens:
        """The tokens of pieces that lie at these character positions, in order."""
        counts = self._count[pieces]
        total = int(counts.sum())
        of_piece = np.repeat(np.arange(len(pieces)), counts)
        first = np.cumsum(counts) - counts
        source = self._first[pieces][of_piece] + np.arange(total) - first[of_piece]
        base = positions.astype(np.int32)[of_piece]
        ids, starts, ends = self._tokens[:, source]
        return Tokens(ids.astype(np.uint32), starts + base, ends + base)


class BertPieceEncoder:
    """Encodes with BERT's tokenizer (see `is_bert`) by pieces."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._general = BatchEncoder(tokenizer)
        self._kinds = CharacterTable(self._classify)
        self._forget()

    def encode(self, texts: Sequence[str]) -> Tokens:
        """See Encoder."""
        return concatenate(self._windows(JOINT.join(texts)))

    def _windows(self, text: str) -> Iterator[Tokens]:
        start = 0
        while start < len(text):
            end = self._safe_end(text, start + WINDOW_CHARACTERS)
            yield self._encode_window(text[start:end]).shifted(start)
            start = end

    def _forget(self) -> None:
        self._pieces = _Pieces()
        self._runs: dict[str, int] = {}
        self._run_characters = 0
        self._alone = np.full(CODE_POINTS, -1, np.int32)

    def _safe_end(self, text: str, end: int) -> int:
        """The next position from `end` on at which no run is cut."""
        while end < len(text):
            kinds = self._kinds.of(code_points(text[end - 1 : end + 4096]))
            borders = np.flatnonzero((kinds[:-1] != _JOINED) | (kinds[1:] != _JOINED))
            if len(borders):
                return end + int(borders[0])
            end += 4096
        return len(text)

    def _encode_window(self, text: str) -> Tokens:
        if len(self._runs) > MAX_PIECES or self._run_characters > MAX_PIECE_CHARACTERS:
            self._forget()
        codes = code_points(text)
        kinds = self._kinds.of(codes)
        alone = np.flatnonzero(kinds == _ALONE)
        joined = np.concatenate(([0], (kinds == _JOINED).view(np.int8), [0]))
        edges = np.flatnonzero(np.diff(joined))
        starts, ends = edges[0::2], edges[1::2]
        piece_at = np.full(len(text), -1, np.int32)
        piece_at[alone] = self._pieces_alone(codes[alone])
        runs = [text[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        piece_at[starts] = self._pieces_of_runs(runs)
        positions = np.flatnonzero(piece_at >= 0)
        return self._pieces.gather(piece_at[positions].astype(np.int64), positions)

    def _pieces_alone(self, codes: NDArray[np.uint32]) -> NDArray[np.int32]:
        pieces = self._alone[codes]
        new = np.unique(codes[pieces < 0]).tolist()
        if new:
            self._alone[new] = self._add([chr(code) for code in new])
            pieces = self._alone[codes]
        return pieces

    def _pieces_of_runs(self, runs: Sequence[str]) -> NDArray[np.int32]:
        known = self._runs
        new = [run for run in dict.fromkeys(runs) if run not in known]
        if new:
            known.update(zip(new, self._add(new), strict=True))
            self._run_characters += sum(map(len, new))
        return np.fromiter((known[run] for run in runs), np.int32, len(runs))

    def _add(self, pieces: Sequence[str]) -> list[int]:
        return [self._pieces.add(tokens) for tokens in self._general.encode_each(pieces)]

    def _classify(self, code: int) -> int:
        """How a character acts between two letters, as the tokenizer's own parts tell."""
        text = f"a{chr(code)}a"
        normal = self._tokenizer.normalizer.normalize_str(text)
        words = [word for word, _ in self._tokenizer.pre_tokenizer.pre_tokenize_str(normal)]
        if words == ["a", "a"]:
            return _SEPARATOR
        stands_alone = len(words) == 3 and words[0] == words[2] == "a"
        return _ALONE if stands_alone else _JOINED


def _with_room(array: NDArray[Any], length: int) -> NDArray[Any]:
    """The array itself, or a copy at least twice as long in its last axis."""
    room = array.shape[-1]
    if length <= room:
        return array
    grown = np.empty((*array.shape[:-1], max(length, 2 * room)), array.dtype)
    grown[..., :room] = array
    return grown
