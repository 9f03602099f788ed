"""A file of Kubernetes manifests, and the PretrainJobs in it, valid or with every problem.

Every problem is `FILE:LINE:COLUMN: path: message`. Objects of other kinds may stand in the same
file and are left alone. What a valid PretrainJob is, `pretrain_api.documents` decides.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrain_api.base import GROUP, KIND
from pretrain_api.documents import validate_object
from pretrain_api.errors import InvalidObjectError
from pretrain_api.job import PretrainJob
from pretrain_api.problems import Problem as FoundProblem
from pretrain_api.problems import render_path
from pretrain_operator.children.template_rules import added_containers, template_problems

from pretrainctl.errors import InvalidError, InvalidManifestError, NotFoundError
from pretrainctl.yaml_positions import (
    NotYamlError,
    Position,
    YamlDocument,
    decode_text,
    read_documents,
)

STANDARD_INPUT = "-"
NAME_PATH = ("metadata", "name")
LIST_ADVICE = f"{KIND}s in a List are not read: put each into a document of its own, after ---"
MAX_BYTES = 4 * 2**20
"""Larger files are no manifests: an API server takes objects of 1.5 MB at most."""


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong in a file."""

    file: str
    position: Position
    path: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.position.line}:{self.position.column}"
        return f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


@dataclass(frozen=True)
class ManifestFile:
    """What a file holds: its PretrainJobs, how many other objects, and every problem.

    `doubts` are about what is right, but seldom meant so.
    """

    file: str
    jobs: tuple[PretrainJob, ...]
    others: int
    problems: tuple[Problem, ...]
    doubts: tuple[Problem, ...] = ()


def read_manifest_file(path: str) -> ManifestFile:
    """Read and check a file (`-` is standard input).

    Raises NotFoundError or InvalidError when the file cannot be read at all.
    """
    file = "standard input" if path == STANDARD_INPUT else path
    data = _read_bytes(path)
    named: list[tuple[PretrainJob, Position]] = []
    problems: list[Problem] = []
    doubts: list[Problem] = []
    others = 0
    try:
        for document in read_documents(decode_text(data)):
            if _is_ours(document.data):
                job, found = _check(document, file)
                if job is not None:
                    named.append((job, document.position(NAME_PATH)))
                    doubts += _placed(added_containers(job.spec), document, file)
                problems += found
            elif _holds_ours(document.data):
                problems.append(Problem(file, document.position(("items",)), "items", LIST_ADVICE))
            else:
                others += 1
    except NotYamlError as error:
        problems.append(Problem(file, error.position, "", str(error)))
    problems += _duplicate_names(file, named)
    jobs = [job for job, _ in named]
    if not jobs and not problems:
        problems.append(Problem(file, Position(1, 1), "", f"there is no {KIND} in this file"))
    return ManifestFile(file, tuple(jobs), others, tuple(sorted(problems)), tuple(doubts))


def read_jobs(path: str) -> tuple[PretrainJob, ...]:
    """All PretrainJobs of a file; raises InvalidManifestError if anything in it is wrong."""
    manifest = read_manifest_file(path)
    if manifest.problems:
        raise InvalidManifestError([str(problem) for problem in manifest.problems])
    return manifest.jobs


def read_one_job(path: str) -> PretrainJob:
    """The one PretrainJob of a file."""
    jobs = read_jobs(path)
    if len(jobs) > 1:
        names = ", ".join(job.metadata.name for job in jobs)
        raise InvalidError(
            f"{path} holds {len(jobs)} {KIND}s ({names}); put the one to run into a file of its own"
        )
    return jobs[0]


def _check(document: YamlDocument, file: str) -> tuple[PretrainJob | None, list[Problem]]:
    problems = [
        Problem(file, problem.position, render_path(problem.path), problem.message)
        for problem in document.problems
    ]
    job: PretrainJob | None = None
    try:
        job = validate_object(document.data)
        found = tuple(template_problems(job.spec))
    except InvalidObjectError as error:
        found = error.problems
    problems += _placed(found, document, file)
    return (None if problems else job), problems


def _placed(found: Iterable[FoundProblem], document: YamlDocument, file: str) -> list[Problem]:
    return [
        Problem(file, document.position(item.path), render_path(item.path), item.message)
        for item in found
    ]


def _is_ours(data: Any) -> bool:
    if not isinstance(data, dict) or not ({"apiVersion", "kind"} & data.keys()):
        return True
    group = str(data.get("apiVersion", "")).partition("/")[0]
    return group == GROUP or data.get("kind") == KIND or "kind" not in data


def _holds_ours(data: Any) -> bool:
    """Whether it is a List, as kubectl prints several objects, with one of ours in it."""
    if not isinstance(data, dict) or not str(data.get("kind")).endswith("List"):
        return False
    items = data.get("items")
    return isinstance(items, list) and any(
        isinstance(item, dict) and item.get("kind") == KIND for item in items
    )


def _duplicate_names(file: str, named: Sequence[tuple[PretrainJob, Position]]) -> Iterator[Problem]:
    first: dict[tuple[str, str], Position] = {}
    for job, position in named:
        key = (job.metadata.namespace, job.metadata.name)
        if key in first:
            message = f"another {KIND}, in line {first[key].line}, has the name {key[1]!r} too"
            yield Problem(file, position, "metadata.name", message)
        first.setdefault(key, position)


def _read_bytes(path: str) -> bytes:
    data = _read_some(path)
    if len(data) > MAX_BYTES:
        what = "standard input" if path == STANDARD_INPUT else path
        raise InvalidError(f"{what} is larger than {MAX_BYTES // 2**20} MiB: that is no manifest")
    return data


def _read_some(path: str) -> bytes:
    """A byte more than a manifest may have, of a file that has more."""
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with Path(path).open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise NotFoundError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise InvalidError(f"{path} is a directory; name a file in it") from None
    except OSError as error:
        raise InvalidError(f"{path} cannot be read: {error.strerror}") from None
