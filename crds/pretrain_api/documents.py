"""From a parsed document to a PretrainJob, or to everything that is wrong with it at once.

Messages are for people who write YAML: which key, what was found there, what would do. Places in
the file are the command line's business; it finds them by the problems' paths.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from typing import Any

from pydantic import ValidationError

from pretrain_api.errors import InvalidObjectError
from pretrain_api.job import PretrainJob
from pretrain_api.messages import describe
from pretrain_api.names import name_problem
from pretrain_api.problems import Path, Problem
from pretrain_api.resolve import resolve
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.tree import Node, tree_of
from pretrain_api.validation import check, unsupported


def validate_object(data: Mapping[str, Any]) -> PretrainJob:
    """Read a PretrainJob as written (not resolved), from the values of YAML or JSON.

    Types are those of JSON: "2" is no integer, as for an API server. Raises `InvalidObjectError`
    with every problem. The rules that weigh fields against each other are judged only when each
    field is right in itself; those about fields that this version does not run, always.
    """
    text = _as_json(data)
    try:
        job = PretrainJob.model_validate_json(text, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InvalidObjectError(_field_problems(json.loads(text), error)) from None
    problems = job_problems(job)
    if problems:
        raise InvalidObjectError(problems)
    return job


def job_problems(job: PretrainJob) -> list[Problem]:
    """Give what is wrong with a job whose fields are right in themselves."""
    spec = resolve(job.spec)
    problems = [problem.under("spec") for problem in (*check(spec), *unsupported(spec))]
    return [*name_problem(job.metadata.name), *problems]


@cache
def document_tree() -> Node:
    """Give the tree of everything that a document may hold."""
    return tree_of(PretrainJob)


def _as_json(data: Mapping[str, Any]) -> str:
    if not isinstance(data, Mapping):
        raise InvalidObjectError([Problem((), "is no PretrainJob: expected keys and values")])
    wrong = _odd_keys(data)
    if wrong:
        raise InvalidObjectError(wrong)
    return json.dumps(data, default=_timestamp)


def _timestamp(value: Any) -> str:
    """Write what YAML makes of a timestamp or other tag as text, as JSON would have it."""
    return value.isoformat() if isinstance(value, datetime | date) else str(value)


def _odd_keys(value: Any, path: Path = ()) -> list[Problem]:
    """Find keys that are no text (YAML reads `on:` as a truth value and `1:` as a number)."""
    if isinstance(value, list):
        return [p for i, item in enumerate(value) for p in _odd_keys(item, (*path, i))]
    if not isinstance(value, Mapping):
        return []
    problems = [
        Problem(path, f"has the key {key!r}, which is no text; put it in quotes")
        for key in value
        if not isinstance(key, str)
    ]
    for key, item in value.items():
        problems += _odd_keys(item, (*path, str(key)))
    return problems


def _field_problems(data: dict[str, Any], error: ValidationError) -> list[Problem]:
    tree = document_tree()
    problems: dict[Path, Problem] = {}
    for found in error.errors(include_url=False):
        path = _place(data, found["loc"], missing=found["type"] == "missing")
        problems.setdefault(path, Problem(path, describe(tree, data, path, found["type"])))
    return [*problems.values(), *_problems_of_the_rest(data, list(problems))]


def _place(data: Any, location: Path, *, missing: bool) -> Path:
    """Cut off what pydantic adds to a place: members of a union, and marks of keys."""
    path: list[str | int] = []
    for part in location:
        inside = part in data if isinstance(data, dict) else _is_index(data, part)
        if not inside:
            return (*path, part) if missing else tuple(path)
        data = data[part]
        path.append(part)
    return tuple(path)


def _is_index(data: Any, part: str | int) -> bool:
    return isinstance(data, list) and isinstance(part, int) and part < len(data)


def _problems_of_the_rest(data: dict[str, Any], wrong: list[Path]) -> list[Problem]:
    """Judge what can be judged without the wrong fields: whatever is not supported yet."""
    rest = json.dumps(_without(data, wrong).get("spec"))
    try:
        spec = PretrainJobSpec.model_validate_json(rest, strict=True, by_alias=True, by_name=False)
    except ValidationError:
        return []
    found = [problem.under("spec") for problem in unsupported(resolve(spec))]
    return [problem for problem in found if problem.path not in wrong]


def _without(value: Any, paths: list[Path]) -> Any:
    """Copy a document without the values at some paths."""
    heads = {path[0] for path in paths if len(path) == 1}
    if isinstance(value, dict):
        items = value.items()
        return {k: _without(v, _below(paths, k)) for k, v in items if k not in heads}
    if isinstance(value, list):
        numbered = enumerate(value)
        return [_without(v, _below(paths, i)) for i, v in numbered if i not in heads]
    return value


def _below(paths: list[Path], part: str | int) -> list[Path]:
    return [path[1:] for path in paths if len(path) > 1 and path[0] == part]
