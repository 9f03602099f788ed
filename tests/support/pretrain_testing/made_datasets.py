"""A small dataset of made-up tokens under a real tokenizer, as preprocessing leaves one."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.dataset.format.native import Shard, write_shard
from pretrain_jobs.dataset.manifest import KIND, DatasetManifest, ShardEntry, Split
from pretrain_jobs.dataset.statistics import CorpusStatistics
from pretrain_jobs.storage import artifact, open_store
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

FINGERPRINT = "0123456789abcdef"
VOCABULARY = 300
SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


def make_dataset(root: Path, *, documents: int = 60, shards: int = 2) -> None:
    """A committed native dataset of seeded tokens under `root`, with its tokenizer."""
    store = open_store(StorageSpec(uri=f"file://{root}"))
    scratch = root.with_name(f"{root.name}-scratch")
    _write_tokenizer(scratch / "tokenizer")
    random = np.random.default_rng(7)
    splits: dict[Split, tuple[ShardEntry, ...]] = {
        "train": tuple(
            _write_shard(scratch, f"shards/train-00000-{n:03d}.h5", random, documents)
            for n in range(shards)
        ),
        "validation": (_write_shard(scratch, "shards/validation-00000-000.h5", random, 12),),
    }
    manifest = DatasetManifest(
        fingerprint=FINGERPRINT,
        tokenizer_sha256="0" * 64,
        dtype="uint16",
        vocab_size=VOCABULARY,
        splits=splits,
        statistics=CorpusStatistics(),
    )
    files = artifact.upload_directory(store, scratch)
    artifact.commit(store, kind=KIND, fingerprint=FINGERPRINT, files=files, extra=manifest.extra())
    shutil.rmtree(scratch)


def _write_tokenizer(directory: Path) -> None:
    directory.mkdir(parents=True)
    names = [*SPECIAL.values(), *(f"w{n}" for n in range(VOCABULARY - len(SPECIAL)))]
    tokenizer = Tokenizer(WordLevel({name: n for n, name in enumerate(names)}, "[UNK]"))
    tokenizer.add_special_tokens(list(SPECIAL.values()))
    tokenizer.save(str(directory / "tokenizer.json"))
    special = {f"{role}_token": name for role, name in SPECIAL.items()}
    special |= {"eos_token": "[SEP]"}
    (directory / "special_tokens_map.json").write_text(json.dumps(special))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **special}
    (directory / "tokenizer_config.json").write_text(json.dumps(config))


def _write_shard(
    scratch: Path, key: str, random: np.random.Generator, documents: int
) -> ShardEntry:
    sentences = [random.integers(3, 12, random.integers(1, 5)) for _ in range(documents)]
    sentence_offsets = np.concatenate([[0], np.cumsum(np.concatenate(sentences))])
    document_offsets = np.concatenate([[0], np.cumsum([part.sum() for part in sentences])])
    tokens = random.zipf(1.3, sentence_offsets[-1]) % (VOCABULARY - 5) + 5
    starts = random.random(len(tokens)) < 0.6
    starts[sentence_offsets[:-1]] = True
    shard = Shard(
        tokens.astype(np.uint16),
        document_offsets.astype(np.int64),
        sentence_offsets.astype(np.int64),
        starts,
    )
    path = scratch / key
    path.parent.mkdir(parents=True, exist_ok=True)
    write_shard(path, shard)
    entry = artifact.FileEntry(key, path.stat().st_size, _sha256(path))
    return ShardEntry(
        path=key,
        documents=shard.documents,
        sentences=shard.sentences,
        words=shard.words,
        tokens=len(shard.tokens),
        bytes=entry.size,
        sha256=entry.sha256,
    )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
