"""Named points of the protocol at which a test can kill a rank, or its writer alone.

`PRETRAIN_FAILPOINT=after_rank_upload:kill` ends the rank with SIGKILL the first time it gets
there, whichever of its two processes does, `after_rank_upload:kill:3` the third time.
`kill-writer` ends only the writer, `stop-writer` leaves it stopped (SIGSTOP), as a store does that
does not answer; each writer counts anew. Without the variable they cost nothing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Literal, get_args

from pretrain_jobs.errors import UserError

FAILPOINT_ENV = "PRETRAIN_FAILPOINT"

_Starting = Literal[
    "after_claim",
    "during_hand_over",
    "after_hand_over",
    "after_completion",
    "after_listing",
    "during_download",
    "after_verification",
    "after_loading",
    "after_mark",
    "during_sweep",
    "after_sweep",
]
_Copying = Literal[
    "before_snapshot",
    "after_snapshot",
    "after_copy",
]
_Writing = Literal[
    "during_local_write",
    "after_local_write",
    "after_local_copy",
    "during_rank_upload",
    "after_rank_upload",
    "after_rank_manifest",
    "while_waiting_for_ranks",
    "before_commit",
    "after_commit",
    "after_latest",
    "during_retention",
    "after_retention",
]
_Settling = Literal[
    "before_settling",
    "after_settling",
    "before_model_manifest",
]
Failpoint = _Starting | _Copying | _Writing | _Settling
FAILPOINTS: tuple[Failpoint, ...] = (
    *get_args(_Starting),
    *get_args(_Copying),
    *get_args(_Writing),
    *get_args(_Settling),
)

IN_TRAINING: frozenset[Failpoint] = frozenset(FAILPOINTS) - frozenset(get_args(_Writing))
"""Those that the training process reaches; the writer reaches the others."""


class Failpoints:
    """Counts how often the armed point was reached, and kills when its turn has come."""

    def __init__(self, setting: str = "", *, rank_process: int | None = None) -> None:
        """Take a setting `name:kill` or `name:kill:N`; an empty one arms nothing.

        In a writer `rank_process` is the process that trains.
        """
        self.setting = setting
        self._rank_process = rank_process
        self._name, self._verb, self._remaining = _parse(setting) if setting else ("", "", 0)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Failpoints:
        """The failpoint that a test set, if any."""
        return cls(environment.get(FAILPOINT_ENV, ""))

    def reach(self, name: Failpoint) -> None:
        """Go on, or die as by SIGKILL, or stop until SIGCONT."""
        if name != self._name:
            return
        self._remaining -= 1
        if self._remaining:
            return
        if self._rank_process is not None and self._verb == "kill":
            os.kill(self._rank_process, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGSTOP if self._verb == "stop-writer" else signal.SIGKILL)


UNARMED = Failpoints()
"""Those of a process that no test wants dead."""


def _parse(setting: str) -> tuple[str, str, int]:
    name, _, action = setting.partition(":")
    verb, _, occurrence = action.partition(":")
    verbs = {"kill"} if name in IN_TRAINING else {"kill", "kill-writer", "stop-writer"}
    if name not in FAILPOINTS or verb not in verbs or not (occurrence or "1").isdecimal():
        raise UserError(
            f"{FAILPOINT_ENV} is {setting!r}; expected NAME:kill or NAME:kill:N with NAME one of "
            f"{', '.join(FAILPOINTS)}, or NAME:kill-writer or NAME:stop-writer for one that a "
            "writer reaches"
        )
    return name, verb, int(occurrence or 1)
