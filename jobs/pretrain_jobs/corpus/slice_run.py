"""One slice, from its sources to its manifest in the store."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from pretrain_api.stages import PreprocessStageConfig

from pretrain_jobs.corpus.bert_pieces import make_encoder
from pretrain_jobs.corpus.documents import read_documents
from pretrain_jobs.corpus.preparation import CleanDocument, Preparation, Recipe
from pretrain_jobs.corpus.readers.records import Reject, RejectCause
from pretrain_jobs.corpus.slice_figures import SliceFigures
from pretrain_jobs.corpus.slice_manifest import (
    RejectsFile,
    SliceManifest,
    encode_slice,
    slice_key,
)
from pretrain_jobs.corpus.slice_output import RejectLog, SplitOutput, describe
from pretrain_jobs.corpus.slices import Slice, SlicePlan
from pretrain_jobs.corpus.sources import split_uri
from pretrain_jobs.corpus.tokenizer_input import PreparedTokenizer
from pretrain_jobs.corpus.words import SegmenterName, UserWord, make_segmenter, parse_user_words
from pretrain_jobs.dataset.format.native import ShardFile, ShardWriter
from pretrain_jobs.dataset.manifest import SPLITS, ShardEntry, Split
from pretrain_jobs.dataset.statistics import CorpusStatistics
from pretrain_jobs.process import ProgressReporter
from pretrain_jobs.storage import artifact, open_store
from pretrain_jobs.storage.uri import absolute_uri
from pretrain_jobs.telemetry.samples import published

SHOWN_WARNINGS = 20

_TELLING = frozenset({RejectCause.TRUNCATED, RejectCause.DAMAGED, RejectCause.PARQUET})
"""Rejects that stand for more than one record, so they are shown as warnings too."""


def prepare_slice(
    config: PreprocessStageConfig,
    plan: SlicePlan,
    part: Slice,
    *,
    tokenizer: PreparedTokenizer,
    directory: Path,
) -> SliceManifest:
    """Read, clean, encode and upload a slice, its manifest last; `directory` is for local files."""
    run = _SliceRun(config, plan, part, tokenizer, directory)
    with published(run.figures):
        run.read()
        return run.commit()


class _SliceRun:
    """What is open and counted while a slice is prepared."""

    def __init__(
        self,
        config: PreprocessStageConfig,
        plan: SlicePlan,
        part: Slice,
        tokenizer: PreparedTokenizer,
        directory: Path,
    ) -> None:
        self._config = config
        self._plan = plan
        self._slice = part
        self._store = open_store(config.storage, config.dataset_uri)
        self._preparation = Preparation(make_recipe(config, tokenizer))
        self._rejects = RejectLog(directory / "rejects.jsonl", config.corpus.max_rejects)
        self._warnings: list[str] = []
        self._shards: dict[Split, list[ShardEntry]] = defaultdict(list)
        self._outputs = {split: self._output(split, tokenizer, directory) for split in SPLITS}
        self.figures = SliceFigures()

    def read(self) -> None:
        """Send every record of the slice where it belongs."""
        progress = _ByteProgress(self._config, self._slice, self._show)
        for record in read_documents(
            self._slice, self._plan, self._config.storage, progress=progress
        ):
            if isinstance(record, Reject):
                self._refuse(record)
                continue
            cleaned = self._preparation.clean(record)
            if isinstance(cleaned, Reject):
                self._refuse(cleaned)
            elif cleaned is not None:
                self._outputs[self._split_of(cleaned)].add(cleaned)
        for output in self._outputs.values():
            output.finish()
        progress.finish()

    def commit(self) -> SliceManifest:
        """Upload the rejects, then the slice's manifest."""
        rejects = dict(sorted(self._rejects.counts.items()))
        refused = CorpusStatistics(rejects=rejects, documents_read=sum(rejects.values()))
        manifest = SliceManifest(
            fingerprint=self._config.dataset_fingerprint,
            index=self._slice.index,
            shards={split: tuple(shards) for split, shards in self._shards.items()},
            rejects=self._upload_rejects() if rejects else None,
            statistics=self._preparation.statistics + refused,
            warnings=tuple(self._warnings[:SHOWN_WARNINGS]),
        )
        self._store.write(slice_key(self._slice.index), encode_slice(manifest))
        return manifest

    def _output(self, split: Split, tokenizer: PreparedTokenizer, directory: Path) -> SplitOutput:
        writer = ShardWriter(
            directory,
            f"{split}-{self._slice.index:05d}",
            dtype=tokenizer.vocabulary.dtype,
            shard_size=self._config.preprocess.shard_size,
        )
        return SplitOutput(self._preparation, writer, lambda shard: self._publish(split, shard))

    def _publish(self, split: Split, shard: ShardFile) -> None:
        """Upload a finished shard and delete the local file."""
        file = artifact.upload_file(self._store, shard.path, key=f"shards/{shard.path.name}")
        shard.path.unlink()
        self._shards[split].append(
            ShardEntry(
                path=file.path,
                documents=shard.documents,
                sentences=shard.sentences,
                words=shard.words,
                tokens=shard.tokens,
                bytes=file.size,
                sha256=file.sha256,
                source=self._slice.source,
            )
        )

    def _show(self, read: int) -> None:
        self.figures.show(read, self._preparation.statistics, self._rejects.counts)

    def _refuse(self, reject: Reject) -> None:
        if reject.cause in _TELLING:
            self._warnings.append(describe(reject))
        self._rejects.add(reject)

    def _split_of(self, document: CleanDocument) -> Split:
        validation = self._config.corpus.validation
        if self._slice.split == "validation" or validation.sources:
            return self._slice.split
        held_out = is_held_out(document.text, validation.fraction, self._config.seed)
        return "validation" if held_out else "train"

    def _upload_rejects(self) -> RejectsFile:
        key = f"rejects/{self._slice.index:05d}.jsonl"
        file = artifact.upload_file(self._store, self._rejects.path, key=key)
        return RejectsFile(path=file.path, size=file.size, sha256=file.sha256)


def is_held_out(text: str, fraction: float, seed: int) -> bool:
    """Whether a document is validation data, by a keyed hash of its text.

    Equal texts fall on the same side wherever they lie.
    """
    digest = hashlib.blake2b(text.encode(), digest_size=8, key=seed.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little") < fraction * 2**64


def make_recipe(config: PreprocessStageConfig, tokenizer: PreparedTokenizer) -> Recipe:
    """How this job treats its documents."""
    mlm = config.objective.mlm
    segmenter: SegmenterName = mlm.segmenter if mlm and mlm.whole_word else "none"
    return Recipe(
        cleaning=config.corpus.cleaning,
        encoder=make_encoder(tokenizer.load()),
        segmenter=make_segmenter(segmenter, _user_words(config)),
        vocabulary=tokenizer.vocabulary,
    )


def _user_words(config: PreprocessStageConfig) -> list[UserWord]:
    if config.preprocess.user_dictionary is None:
        return []
    uri = absolute_uri(config.preprocess.user_dictionary, base=config.storage.uri)
    root, key = split_uri(uri)
    return parse_user_words(open_store(config.storage, root).read(key), uri)


class _ByteProgress:
    """Tells how many of the slice's stored bytes were read."""

    def __init__(
        self, config: PreprocessStageConfig, part: Slice, show: Callable[[int], None]
    ) -> None:
        self._reporter = ProgressReporter("preprocess", index=part.index, attempt=config.attempt)
        self._total = part.size
        self._done = 0
        self._show = show
        self._reporter.update(done=0, total=part.size, unit="bytes", force=True)

    def __call__(self, count: int) -> None:
        self._done += count
        self._show(self._done)
        self._reporter.update(done=min(self._done, self._total))

    def finish(self) -> None:
        """The whole slice was read."""
        self._show(self._done)
        self._reporter.update(done=self._total, force=True)
