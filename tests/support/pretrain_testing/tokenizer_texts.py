"""Small Chinese and English texts for training tokenizers, and jobs over them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pretrain_api.resolve import resolve
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.stages import JobRef, TokenizerStageConfig

SENTENCES = (
    "今天的天气很好，我们去公园散步。",
    "老人在海边的灯塔里住了三十年。",
    "她把书放在桌上，然后打开了窗户。",
    "火车从南京开往武汉，要走三个小时。",
    "这家茶馆只卖绿茶和红茶，味道不错。",
    "The ferry leaves in the morning and comes back in the evening.",
    "The old clock on the wall was slower than the new clock.",
    "A walk along the river takes an hour, or two with a dog.",
)


def texts(count: int = 60) -> list[str]:
    """Texts of two sentences each, the same on every call."""
    return [f"{SENTENCES[i % 8]}{SENTENCES[(i * 3 + 1) % 8]} {i}号" for i in range(count)]


def write_jsonl(path: Path, documents: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in documents]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def storage_of(root: Path) -> StorageSpec:
    """The storage of a job whose files lie under `root`."""
    return StorageSpec(uri=root.as_uri())


def job_spec(storage: Path, **sections: Any) -> PretrainJobSpec:
    """A resolved spec over <storage>/corpus/; sections replace those of a small BERT job."""
    spec = {
        "storage": {"uri": storage.as_uri()},
        "corpus": {"sources": [{"uri": "corpus/"}]},
        "tokenizer": {"train": {"vocabSize": 400}},
        "model": {"architecture": "bert"},
        "training": {"maxSteps": 10},
        **sections,
    }
    return resolve(PretrainJobSpec.model_validate(spec))


def tokenizer_config(storage: Path, **sections: Any) -> TokenizerStageConfig:
    spec = job_spec(storage, **sections)
    assert spec.storage is not None
    job = JobRef(namespace="default", name="job", uid="0")
    return TokenizerStageConfig(job=job, storage=spec.storage, spec=spec)


def write_config(path: Path, config: TokenizerStageConfig) -> Path:
    path.write_text(config.model_dump_json(by_alias=True), encoding="utf-8")
    return path
