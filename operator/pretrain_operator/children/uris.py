"""Absolute URIs: what a spec leaves relative is taken under the job's storage."""

from __future__ import annotations

import re
from typing import TypeVar
from urllib.parse import quote

from pretrain_api.base import ApiModel
from pretrain_api.job import PretrainJob
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.spec.corpus import CorpusSpec, SourceSpec
from pretrain_api.spec.evaluation import EvaluationSpec, TaskSpec

UriText = TypeVar("UriText", str, "str | None")
ModelT = TypeVar("ModelT", bound=ApiModel)

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_GLOB_CHARACTERS = "*?[]"


def absolute_uri(uri: UriText, root: str) -> UriText:
    """`uri` itself when it has a scheme or is None, else `uri` under `root`.

    Under a `file:` root the relative part is percent-encoded, as RFC 8089 wants it. A bare
    absolute path is left for the storage to refuse, which says what to write instead.
    """
    if uri is None or _SCHEME.match(uri) or uri.startswith("/"):
        return uri
    tail = quote(uri, safe=f"/{_GLOB_CHARACTERS}") if root.startswith("file:") else uri
    return f"{root.rstrip('/')}/{tail}"


def checkpoint_uri(job: PretrainJob, root: str) -> str:
    """`<checkpoints>/<name>-<uid>`: no two jobs share it, not even one recreated by its name."""
    base = absolute_uri(job.spec.checkpoint.uri, root) or absolute_uri("checkpoints", root)
    return f"{base.rstrip('/')}/{job.metadata.name}-{job.metadata.uid}"


def with_absolute_uris(spec: PretrainJobSpec, root: str) -> PretrainJobSpec:
    """The same spec with every URI absolute; `root` is the storage's absolute URI."""
    sections = {
        "corpus": _corpus(spec.corpus, root),
        "tokenizer": _moved(spec.tokenizer, "uri", root=root),
        "preprocess": _moved(spec.preprocess, "user_dictionary", root=root),
        "model": _moved(spec.model, "init_from", root=root),
        "checkpoint": _moved(spec.checkpoint, "uri", root=root),
        "evaluation": _evaluation(spec.evaluation, root),
        "export": _moved(spec.export, "uri", root=root),
    }
    return spec.model_copy(update=sections)


def _moved(model: ModelT, *fields: str, root: str) -> ModelT:
    return model.model_copy(
        update={name: absolute_uri(getattr(model, name), root) for name in fields}
    )


def _corpus(corpus: CorpusSpec, root: str) -> CorpusSpec:
    validation = corpus.validation
    return corpus.model_copy(
        update={
            "sources": _sources(corpus.sources, root),
            "dataset": corpus.dataset and _moved(corpus.dataset, "uri", root=root),
            "validation": validation.model_copy(
                update={"sources": _sources(validation.sources, root)}
            ),
        }
    )


def _sources(sources: list[SourceSpec], root: str) -> list[SourceSpec]:
    return [_moved(source, "uri", root=root) for source in sources]


def _evaluation(evaluation: EvaluationSpec, root: str) -> EvaluationSpec:
    return evaluation.model_copy(update={"tasks": [_task(task, root) for task in evaluation.tasks]})


def _task(task: TaskSpec, root: str) -> TaskSpec:
    return task.model_copy(update={"data": _moved(task.data, "uri", "test_uri", root=root)})
