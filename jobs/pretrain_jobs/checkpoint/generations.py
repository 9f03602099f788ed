"""Fencing: each attempt claims a generation, and one that meets a newer one stops.

A claim is a conditional write that is read back, for some stores ignore the condition. It orders
attempts; it does not elect ranks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pretrain_jobs.checkpoint.layout import GENERATIONS, generation_key, parse_generation
from pretrain_jobs.errors import InfrastructureError
from pretrain_jobs.storage import AlreadyExistsError, NotFoundError, ObjectStore

_TRIES = 64
"""Attempts that may start at once before a claim gives up."""


@dataclass(frozen=True)
class Generation:
    """A claimed generation: its number and the attempt's own name (32 hexadecimal digits)."""

    number: int
    attempt: str


def claim(store: ObjectStore, *, attempt: str, lineage: str) -> Generation:
    """Claim the generation after the newest; InfrastructureError when others always win."""
    record = json.dumps({"attempt": attempt, "lineage": lineage}, sort_keys=True).encode()
    for _ in range(_TRIES):
        number = newest(store) + 1
        try:
            store.write(generation_key(number), record, if_absent=True)
        except AlreadyExistsError:
            continue
        if owner(store, number) == attempt:
            return Generation(number, attempt)
    raise InfrastructureError(
        f"no generation could be claimed under {store.uri}: {_TRIES} other attempts were quicker; "
        "is this job started again and again by something else?"
    )


def newest(store: ObjectStore) -> int:
    """The largest generation claimed so far; 0 if there is none."""
    numbers = (parse_generation(info.key) for info in store.list(GENERATIONS))
    return max((number for number in numbers if number is not None), default=0)


def require_newest(store: ObjectStore, generation: Generation) -> None:
    """InfrastructureError when a newer attempt has claimed its generation, or taken this one."""
    latest = newest(store)
    if latest > generation.number or owner(store, generation.number) != generation.attempt:
        raise InfrastructureError(
            f"this attempt (generation {generation.number}) was replaced by generation {latest} "
            f"under {store.uri} and stops; the newer attempt goes on"
        )


def owner(store: ObjectStore, number: int) -> str:
    """The name of the attempt that claimed a generation; empty if none did."""
    try:
        return str(json.loads(store.read(generation_key(number)))["attempt"])
    except (NotFoundError, ValueError, KeyError, TypeError):
        return ""
