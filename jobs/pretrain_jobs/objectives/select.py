"""From the specification to an objective: what samples there are and how one is formed.

An objective joins a packing (`packing`, `best_fit`) with what is predicted (`mlm`, `clm`). It
knows nothing of files, ranks or the order of samples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from pretrain_api.spec.objective import MlmSpec, ObjectiveSpec
from pretrain_api.spec.preprocess import PackingSpec, PackingStrategy

from pretrain_jobs.dataset.counter_random import fold
from pretrain_jobs.errors import UserError
from pretrain_jobs.objectives.batch import Batch
from pretrain_jobs.objectives.best_fit import DocumentSpace, document_table
from pretrain_jobs.objectives.clm import block_labels, document_labels
from pretrain_jobs.objectives.mlm import MaskingRule, MaskVocabulary, mask_tokens
from pretrain_jobs.objectives.packing import (
    SampleTable,
    ShardLayout,
    block_table,
    sentence_table,
)
from pretrain_jobs.objectives.pieces import Int64, ShardSource, assemble
from pretrain_jobs.tokenizer.special import SpecialTokens


class Objective(Protocol):
    """How the samples of a split are cut, formed and labelled."""

    @property
    def sequence_length(self) -> int:
        """Positions of a sample."""

    @property
    def isolated(self) -> bool:
        """Whether documents in one sample must not attend to each other."""

    def table(self, layouts: Iterable[ShardLayout]) -> SampleTable:
        """The samples of a split, from the offsets of its shards in the manifest's order."""

    def form(
        self,
        table: SampleTable,
        source: ShardSource,
        sample_ids: Int64,
        *,
        epochs: Int64,
        seed: int,
    ) -> Batch:
        """The samples int64 [B] as a batch; `epochs` int64 [B] and `seed` key their randomness."""


@dataclass(frozen=True)
class MaskedObjective:
    """Masked language modelling over full sentences or whole documents."""

    sequence_length: int
    strategy: Literal["fullSentences", "documents"]
    isolated: bool
    rule: MaskingRule
    vocabulary: MaskVocabulary
    cls: int
    sep: int
    pad: int
    static_copies: int | None = None

    def table(self, layouts: Iterable[ShardLayout]) -> SampleTable:
        """The samples of a split."""
        if self.strategy == "documents":
            return document_table(layouts, DocumentSpace(self.sequence_length, both_ends=True))
        return sentence_table(layouts, self.sequence_length - 2)

    def form(
        self,
        table: SampleTable,
        source: ShardSource,
        sample_ids: Int64,
        *,
        epochs: Int64,
        seed: int,
    ) -> Batch:
        """Samples with their masks; static masks are keyed by the copy in place of the epoch."""
        rows = assemble(
            table.pieces(sample_ids, source),
            source,
            shape=(len(sample_ids), self.sequence_length),
            prefix_id=self.cls,
            suffix_id=self.sep,
            pad_id=self.pad,
        )
        copies = epochs if self.static_copies is None else epochs % self.static_copies
        masked = mask_tokens(
            rows.input_ids,
            content=rows.content,
            word_starts=rows.word_starts,
            real=np.count_nonzero(rows.real, axis=1),
            keys=fold(seed, copies, sample_ids),
            rule=self.rule,
            vocabulary=self.vocabulary,
        )
        return Batch(
            input_ids=masked.input_ids,
            labels=masked.labels,
            position_ids=rows.position_ids(isolated=self.isolated),
            document_ids=rows.document_ids,
            sample_ids=sample_ids,
            unfilled=masked.unfilled,
            isolated=self.isolated,
        )


@dataclass(frozen=True)
class CausalObjective:
    """Causal language modelling over blocks of the stream or whole documents."""

    sequence_length: int
    strategy: Literal["blocks", "documents"]
    isolated: bool
    end_of_document: int

    def table(self, layouts: Iterable[ShardLayout]) -> SampleTable:
        """The samples of a split."""
        if self.strategy == "documents":
            return document_table(layouts, DocumentSpace(self.sequence_length, both_ends=False))
        return block_table(layouts, self.sequence_length)

    def form(
        self,
        table: SampleTable,
        source: ShardSource,
        sample_ids: Int64,
        *,
        epochs: Int64,  # noqa: ARG002
        seed: int,  # noqa: ARG002
    ) -> Batch:
        """Samples with a label at every real position; nothing in them is random."""
        blocks = self.strategy == "blocks"
        pieces = table.pieces(sample_ids, source)
        rows = assemble(
            pieces,
            source,
            shape=(len(sample_ids), self.sequence_length + blocks),
            prefix_id=self.end_of_document,
            suffix_id=self.end_of_document,
            pad_id=self.end_of_document,
        )
        if blocks:
            rows, labels = block_labels(rows, isolated=self.isolated)
        else:
            labels = document_labels(rows, pieces, source, end_of_document=self.end_of_document)
        return Batch(
            input_ids=rows.input_ids,
            labels=labels,
            position_ids=rows.position_ids(isolated=self.isolated),
            document_ids=rows.document_ids,
            sample_ids=sample_ids,
            unfilled=np.zeros(len(sample_ids), np.int64),
            isolated=self.isolated,
        )


def build_objective(
    objective: ObjectiveSpec,
    packing: PackingSpec,
    *,
    tokens: SpecialTokens,
    sequence_length: int,
) -> Objective:
    """The objective of a specification; UserError when it cannot be had with these tokens."""
    if objective.mlm is not None:
        return _masked(objective.mlm, packing, tokens, sequence_length)
    if objective.clm is not None:
        return _causal(packing, tokens, sequence_length)
    named = [name for name, value in objective if value is not None] or ["none"]
    raise UserError(
        f"spec.objective names {named[0]}; training forms samples for mlm and clm. Set one of them."
    )


def _masked(
    spec: MlmSpec, packing: PackingSpec, tokens: SpecialTokens, sequence_length: int
) -> MaskedObjective:
    strategy = packing.strategy or "fullSentences"
    if spec.next_sentence:
        raise UserError("spec.objective.mlm.nextSentence is true; set it to false.")
    if strategy not in ("fullSentences", "documents"):
        raise _unfit_packing(strategy, "mlm", "fullSentences or documents")
    cls, sep = _needed(tokens, "cls"), _needed(tokens, "sep")
    return MaskedObjective(
        sequence_length=sequence_length,
        strategy=strategy,
        isolated=packing.isolate_documents or strategy == "documents",
        rule=_masking_rule(spec),
        vocabulary=mask_vocabulary(tokens),
        cls=cls,
        sep=sep,
        pad=_needed(tokens, "pad"),
        static_copies=spec.duplicates if spec.masking == "static" else None,
    )


def _masking_rule(spec: MlmSpec) -> MaskingRule:
    if spec.mask_ratio + spec.random_ratio > 1.0:
        raise UserError(
            f"spec.objective.mlm.maskRatio {spec.mask_ratio} and randomRatio {spec.random_ratio}"
            " make more than 1; lower one of them."
        )
    return MaskingRule(
        probability=spec.probability,
        whole_word=spec.whole_word,
        mask_ratio=spec.mask_ratio,
        random_ratio=spec.random_ratio,
        max_predictions=spec.max_predictions,
    )


def mask_vocabulary(tokens: SpecialTokens) -> MaskVocabulary:
    """The mask token, the ids that random tokens come from, and the ids never predicted.

    The unknown token may be predicted, as it stands for text; it never is a replacement.
    """
    special = np.zeros(tokens.length, np.bool_)
    special[sorted(tokens.special)] = True
    protected = special.copy()
    if tokens.unk is not None:
        protected[tokens.unk] = False
    return MaskVocabulary(_needed(tokens, "mask"), np.flatnonzero(~special), protected)


def _causal(packing: PackingSpec, tokens: SpecialTokens, sequence_length: int) -> CausalObjective:
    strategy = packing.strategy or "blocks"
    if strategy not in ("blocks", "documents"):
        raise _unfit_packing(strategy, "clm", "blocks or documents")
    if tokens.end_of_document is None:
        raise UserError(
            "The tokenizer has no end-of-sequence token to put after each document; name one of"
            " its tokens in spec.tokenizer.endOfDocument."
        )
    return CausalObjective(
        sequence_length=sequence_length,
        strategy=strategy,
        isolated=packing.isolate_documents or strategy == "documents",
        end_of_document=tokens.end_of_document,
    )


def _needed(tokens: SpecialTokens, name: Literal["cls", "sep", "mask", "pad"]) -> int:
    """The id of a special token that masked language modelling cannot do without."""
    found: int | None = getattr(tokens, name)
    if found is None:
        raise UserError(
            f"The tokenizer has no {name} token, which masked language modelling needs; add it to"
            " the tokenizer's special tokens, or choose the clm objective."
        )
    return found


def _unfit_packing(strategy: PackingStrategy, objective: str, fit: str) -> UserError:
    return UserError(
        f"spec.preprocess.packing.strategy is {strategy}, which {objective} cannot use;"
        f" expected {fit}."
    )
