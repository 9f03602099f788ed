"""Specs that a test varies, and what validation says of them."""

from __future__ import annotations

from typing import Any

from pretrain_api.problems import Problem
from pretrain_api.resolve import resolve
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.validation import check

GPUS = {"resources": {"limits": {"nvidia.com/gpu": 8}}, "processesPerWorker": 8}
"""Workers of eight ranks with a device each."""


def problems(model: dict[str, Any] | None = None, **sections: Any) -> list[Problem]:
    """All that is wrong with a small BERT job with these sections."""
    spec = {
        "corpus": {"sources": [{"uri": "corpus/a.jsonl"}]},
        "model": {"architecture": "bert"} if model is None else model,
        **sections,
    }
    return check(resolve(PretrainJobSpec.model_validate(spec)))


def found(*path: str | int, **sections: Any) -> str:
    """The message at a path, which must be the one problem."""
    (problem,) = problems(**sections)
    assert problem.path == path
    return problem.message


def task(name: str = "a", **fields: Any) -> dict[str, Any]:
    """An evaluation task."""
    return {"name": name, "data": {"uri": "a.jsonl"}, **fields}
