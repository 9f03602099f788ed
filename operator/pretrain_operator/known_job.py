"""A PretrainJob as the API server stores it, and how it is read; nothing is decided here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pretrain_api.base import CONTROLLER
from pretrain_api.documents import validate_object
from pretrain_api.job import PretrainJob
from pretrain_api.skew import Place, dotted, unknown_fields, without
from pretrain_api.status import PretrainJobStatus
from pydantic import ValidationError

from pretrain_operator.observe import JobKey
from pretrain_operator.observed import Manifest


@dataclass(frozen=True)
class KnownJob:
    """One version of a PretrainJob; `stored` is its status as it was written."""

    raw: Manifest

    @classmethod
    def of(cls, raw: Manifest) -> KnownJob:
        """From a raw object; what nobody reads of it is dropped."""
        metadata = {k: v for k, v in raw["metadata"].items() if k != "managedFields"}
        return cls({**raw, "metadata": metadata})

    @property
    def key(self) -> JobKey:
        """Namespace and name."""
        return self.raw["metadata"]["namespace"], self.raw["metadata"]["name"]

    @property
    def uid(self) -> str:
        """The object's uid."""
        return str(self.raw["metadata"]["uid"])

    @property
    def version(self) -> str:
        """Its resourceVersion."""
        return str(self.raw["metadata"]["resourceVersion"])

    @property
    def generation(self) -> int:
        """The generation of its spec."""
        return int(self.raw["metadata"].get("generation", 1))

    @property
    def stored(self) -> dict[str, Any]:
        """Its status as it is stored; empty before the first one."""
        return self.raw.get("status") or {}

    @property
    def is_deleting(self) -> bool:
        """Whether it waits for its end."""
        return "deletionTimestamp" in self.raw["metadata"]

    @property
    def is_foreign(self) -> bool:
        """Whether another controller runs it, and we keep our hands off."""
        manager = (self.raw.get("spec") or {}).get("managedBy")
        return manager not in (None, CONTROLLER)

    @cached_property
    def job(self) -> PretrainJob:
        """The object as a model; raises InvalidObjectError with what is wrong with its spec."""
        return self._reading[0]

    @property
    def unknown_fields(self) -> tuple[str, ...]:
        """Where a newer version's fields were left out of `job`; none before that was read."""
        return self._reading[1] if "_reading" in vars(self) else ()

    @cached_property
    def _reading(self) -> tuple[PretrainJob, tuple[str, ...]]:
        return _read(self.raw)

    @cached_property
    def readable_status(self) -> PretrainJobStatus:
        """Its status alone, as far as this version can read it."""
        return PretrainJobStatus.model_validate(readable_status(self.stored))

    def adopt(self, before: KnownJob, status: PretrainJobStatus) -> None:
        """Have the model of an earlier version, which costs more to read than all the rest."""
        if self.generation == before.generation and not self.is_deleting and "job" in vars(before):
            vars(self)["job"] = before.job.model_copy(update={"status": status})


def read_job(raw: Mapping[str, Any]) -> PretrainJob:
    """Read a stored object; raises InvalidObjectError with everything that is wrong with its spec.

    The API server has checked it against a CRD, which may be another version's and fills in its
    defaults. So fields that this version does not know are left out, and of a status that another
    version wrote, or a person, whatever cannot be read.
    """
    return _read(raw)[0]


def readable_status(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A status without the fields and entries that this version cannot read."""
    readable = dict(stored)
    for _ in range(2):
        try:
            PretrainJobStatus.model_validate(readable, by_alias=True, by_name=False)
        except ValidationError as error:
            readable = without(readable, [_unreadable(found["loc"]) for found in error.errors()])
        else:
            return readable
    return {}


def _read(raw: Mapping[str, Any]) -> tuple[PretrainJob, tuple[str, ...]]:
    """A job, and the fields that were left out of its spec."""
    try:
        return _validated(raw), ()
    except ValidationError as error:
        unknown = unknown_fields(error)
    readable = without({**raw, "status": readable_status(raw.get("status") or {})}, unknown)
    try:
        return _validated(readable), tuple(map(dotted, unknown))
    except ValidationError:
        return validate_object(readable), ()


def _validated(raw: Mapping[str, Any]) -> PretrainJob:
    return PretrainJob.model_validate(raw, by_alias=True, by_name=False)


def _unreadable(place: Place) -> Place:
    """The entry of a list, or else the field, that a mistake in a status makes unreadable."""
    is_entry = len(place) > 1 and isinstance(place[1], int)
    return place[:2] if is_entry else place[:1]
