"""What a rank asks of its writer, and what the writer answers; values that go through a pipe.

Tensors do not: they lie in memory that both map. Nor do credentials: the writer has them from its
environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pretrain_api.reports import CheckpointStatus

from pretrain_jobs.checkpoint.archive import Archive
from pretrain_jobs.checkpoint.finite import FloatExtent
from pretrain_jobs.checkpoint.generations import Generation
from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.checkpoint.manifest import Origin
from pretrain_jobs.errors import StageError


@dataclass(frozen=True)
class Lineage:
    """What a commit says of the run that it belongs to."""

    fingerprint: str
    zero_stage: int
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Companion:
    """A file that is copied beside the checkpoints after a commit, up to the size it had then."""

    path: Path
    key: str
    size: int


@dataclass(frozen=True)
class Commission:
    """What rank 0's writer needs to commit: of whom, for how long to wait, and what then goes.

    `superseded` are the commits to delete after this one.
    """

    generation: Generation
    lineage: Lineage
    world_size: int
    patience_seconds: float
    superseded: tuple[CheckpointKey, ...] = ()
    companions: tuple[Companion, ...] = ()

    @property
    def origin(self) -> Origin:
        """What the commit will say of the run."""
        return Origin(
            lineage=self.lineage.fingerprint,
            world_size=self.world_size,
            zero_stage=self.lineage.zero_stage,
            versions=dict(self.lineage.versions),
        )


@dataclass(frozen=True)
class SaveOrder:
    """Write, upload and vouch for one rank's files; `commission` is rank 0's alone.

    `contents` are archives and JSON documents by file name, `floats` what must be finite in the
    `size` bytes of the snapshot. Training waits for an `urgent` save; any other yields to it.
    The files are written under `local`, where they stay (see `local_copy`), or else, for as long as
    the upload takes, in `directory`. `failpoint` is a test's setting.
    """

    key: CheckpointKey
    rank: int
    contents: Mapping[str, Archive | bytes]
    floats: tuple[FloatExtent, ...]
    size: int
    directory: Path
    failpoint: str
    local: Path | None = None
    urgent: bool = False
    commission: Commission | None = None


@dataclass(frozen=True)
class LookUpOrder:
    """Tell whether a writer that died had committed."""

    key: CheckpointKey


@dataclass(frozen=True)
class DiscardOrder:
    """Delete what a failed save left; it is not answered."""

    key: CheckpointKey
    failpoint: str


@dataclass(frozen=True)
class GiveUp:
    """Wait for no rank any more: the save of this step has failed on one."""

    key: CheckpointKey


Order = SaveOrder | LookUpOrder | DiscardOrder
"""What is carried out in the order of asking; a GiveUp is heard meanwhile."""


@dataclass(frozen=True)
class Outcome:
    """How a save ended for one rank: `status` is the commit, told by rank 0; `error` what failed.

    Rank 0 has neither when it gave up for another rank's sake. `size` is in bytes of its files,
    `seconds` the time that the writer took, `gone` are the older commits that were deleted.
    `fenced` tells that a newer attempt has begun, `kept` that its files lie whole on the node's own
    volume.
    """

    size: int = 0
    seconds: float = 0.0
    status: CheckpointStatus | None = None
    error: StageError | None = None
    gone: tuple[CheckpointKey, ...] = ()
    fenced: bool = False
    kept: bool = False
