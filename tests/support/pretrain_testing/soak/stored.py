"""What lies under a job's checkpoints at its end, against what retention allows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pretrain_jobs.checkpoint.layout import (
    LATEST,
    LOGS,
    CheckpointKey,
    Listed,
    group_keys,
    parse_generation,
)

from pretrain_testing.soak.bounds import Bounds

LOGS_EACH = 1
"""Files under logs/ for each attempt, its TensorBoard events, beside the one log."""

_TOLD = 3


@dataclass(frozen=True)
class Stored:
    """Keys below the job's checkpoints; of those with COMMIT in their name, which are marks.

    `latest` is the step that LATEST tells, `uploads` are keys of unfinished multipart uploads.
    """

    keys: Sequence[str]
    marks: Collection[str]
    latest: int | None
    uploads: Sequence[str]

    @property
    def commits(self) -> list[CheckpointKey]:
        """The checkpoints that exist, the newest first."""
        listed = group_keys(self.keys)
        return [one.key for one in listed if one.committed and one.key.commit not in self.marks]

    @property
    def abandoned(self) -> list[Listed]:
        """Those in whose place a mark lies."""
        return [one for one in group_keys(self.keys) if one.key.commit in self.marks]

    @property
    def partial(self) -> list[Listed]:
        """Those without COMMIT."""
        return [one for one in group_keys(self.keys) if not one.committed]

    @property
    def generations(self) -> list[int]:
        """Claimed ones, ascending."""
        found = (parse_generation(key) for key in self.keys)
        return sorted(number for number in found if number is not None)

    @property
    def newest(self) -> int:
        """Step of the newest commit, 0 without one."""
        return self.commits[0].step if self.commits else 0


def judge_stored(
    stored: Stored, *, attempts: int, keep_last: int, storage_outages: int, bounds: Bounds
) -> list[str]:
    """A sentence for each kind of object of which there is more, or less, than should be."""
    return [
        *_judge_commits(stored, keep_last=keep_last, bounds=bounds),
        *_judge_leftovers(stored, bounds=bounds),
        *_judge_marks(stored, attempts=attempts, storage_outages=storage_outages),
        *_judge_others(stored, attempts=attempts),
    ]


def _judge_commits(stored: Stored, *, keep_last: int, bounds: Bounds) -> Iterator[str]:
    count = len(stored.commits)
    if not keep_last <= count <= keep_last + bounds.spare_commits:
        steps = ", ".join(str(key.step) for key in stored.commits)
        yield f"{count} checkpoints are there where keepLast is {keep_last}: steps {steps}."
    if stored.latest != stored.newest:
        yield f"LATEST tells of step {stored.latest}, the newest commit is of {stored.newest}."


def _judge_leftovers(stored: Stored, *, bounds: Bounds) -> Iterator[str]:
    newest = max(stored.generations, default=0)
    old = [one.key.prefix for one in stored.partial if one.key.generation < newest]
    if old:
        yield f"Saves of earlier attempts that nobody swept: {_names(old)}."
    own = [one.key.prefix for one in stored.partial if one.key.generation >= newest]
    if len(own) > bounds.partial_saves:
        yield f"{len(own)} broken saves of the last attempt: {_names(own)}."
    if stored.uploads:
        yield f"{len(stored.uploads)} unfinished multipart uploads: {_names(stored.uploads)}."


def _judge_marks(stored: Stored, *, attempts: int, storage_outages: int) -> Iterator[str]:
    """A mark stays for a day: one for the save that an attempt died in, or storage broke off."""
    allowed = attempts - 1 + storage_outages
    if len(stored.abandoned) > allowed:
        yield f"{len(stored.abandoned)} saves were given up, by {attempts} attempts."
    full = [one.key.prefix for one in stored.abandoned if one.files]
    if full:
        yield f"Saves that were given up still have their files: {_names(full)}."


def _judge_others(stored: Stored, *, attempts: int) -> Iterator[str]:
    if stored.generations != list(range(1, attempts + 1)):
        yield f"{attempts} attempts have claimed the generations {stored.generations}."
    logs = [key for key in stored.keys if key.startswith(LOGS)]
    if len(logs) > 1 + LOGS_EACH * attempts:
        yield f"{len(logs)} files of logs for {attempts} attempts: {_names(logs)}."
    known = {LATEST, *logs, *(key for one in group_keys(stored.keys) for key in one.keys)}
    strange = [key for key in stored.keys if key not in known and parse_generation(key) is None]
    if strange:
        yield f"{len(strange)} objects that belong to nothing: {_names(strange)}."


def _names(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _TOLD} more" if len(keys) > _TOLD else ""
    return ", ".join(keys[:_TOLD]) + more
