"""Which checkpoints go after a newer commit, and in which order their objects do.

Only this run's own checkpoints are judged: another lineage's are neither counted nor deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pretrain_jobs.checkpoint.layout import CheckpointKey, Listed


def superseded(
    commits: Iterable[CheckpointKey],
    *,
    keep_last: int,
    keep_every_steps: int | None,
    kept: Collection[CheckpointKey] = (),
    damaged: Collection[CheckpointKey] = (),
) -> tuple[CheckpointKey, ...]:
    """The commits to delete, the oldest first.

    The newest `keep_last` stay, those at multiples of `keep_every_steps`, and all of `kept`.
    Damaged ones go and do not count.
    """
    ordered = sorted(set(commits))
    sound = [key for key in ordered if key not in damaged]
    staying = {*kept, *sound[-keep_last:]}
    if keep_every_steps:
        staying |= {key for key in sound if key.step % keep_every_steps == 0}
    return tuple(key for key in ordered if key not in staying)


def deletion_order(listed: Listed) -> tuple[str, ...]:
    """A checkpoint's keys as they are to be deleted: COMMIT before anything that it vouches for."""
    return tuple(sorted(listed.keys, key=lambda key: (key != listed.key.commit, key)))
