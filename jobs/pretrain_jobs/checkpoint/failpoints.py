"""Named points of the protocol at which a test can kill the process.

`PRETRAIN_FAILPOINT=after_rank_upload:kill` ends the process with SIGKILL the first time it gets
there, `after_rank_upload:kill:3` the third time. Without the variable they cost nothing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Literal, get_args

from pretrain_jobs.errors import UserError

FAILPOINT_ENV = "PRETRAIN_FAILPOINT"

Failpoint = Literal[
    "before_snapshot",
    "after_snapshot",
    "during_local_write",
    "after_local_write",
    "during_rank_upload",
    "after_rank_upload",
    "after_rank_manifest",
    "before_commit",
    "after_commit",
    "after_latest",
    "during_retention",
    "after_retention",
    "before_model_manifest",
]
FAILPOINTS: tuple[Failpoint, ...] = get_args(Failpoint)


class Failpoints:
    """Counts how often the armed point was reached, and kills when its turn has come."""

    def __init__(self, setting: str = "") -> None:
        """Take a setting `name:kill` or `name:kill:N`; an empty one arms nothing."""
        self._name, self._remaining = _parse(setting) if setting else ("", 0)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Failpoints:
        """The failpoint that a test set, if any."""
        return cls(environment.get(FAILPOINT_ENV, ""))

    def reach(self, name: Failpoint) -> None:
        """Go on, or die as by SIGKILL."""
        if name != self._name:
            return
        self._remaining -= 1
        if not self._remaining:
            os.kill(os.getpid(), signal.SIGKILL)


def _parse(setting: str) -> tuple[str, int]:
    name, _, action = setting.partition(":")
    verb, _, occurrence = action.partition(":")
    if name not in FAILPOINTS or verb != "kill" or not (occurrence or "1").isdecimal():
        raise UserError(
            f"{FAILPOINT_ENV} is {setting!r}; expected NAME:kill or NAME:kill:N with NAME one of "
            f"{', '.join(FAILPOINTS)}"
        )
    return name, int(occurrence or 1)
