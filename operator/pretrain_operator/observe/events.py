"""Events of the Job controller that say why a pod could not be created.

Nothing else tells: the Job's status and conditions are silent on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from pretrain_operator.observe.raw import Raw, moment, part

REASON = "FailedCreate"

_PREFIX = re.compile(
    r"^(?:\(combined from similar events\): )?(?:Error creating: )?(?:pods \"[^\"]*\" is )?"
)
_POD_NAME = re.compile(r"\b([Pp]ods?) \"[^\"]*\"")


@dataclass(frozen=True, slots=True)
class FailedCreate:
    """What the API server said when a Job's pod was to be created.

    The name that the pod would have had is left out, for it is another one each time.
    """

    namespace: str
    child: str
    child_uid: str
    message: str
    at: datetime

    @classmethod
    def of(cls, raw: Raw) -> FailedCreate | None:
        """Read a core/v1 Event; None when it is about something else."""
        about = part(raw, "involvedObject")
        at = _time(raw)
        if raw.get("reason") != REASON or about.get("kind") != "Job" or at is None:
            return None
        return cls(
            namespace=str(about.get("namespace", "")),
            child=str(about.get("name", "")),
            child_uid=str(about.get("uid", "")),
            message=_plain(str(raw.get("message") or "")),
            at=at,
        )


def _plain(message: str) -> str:
    return _POD_NAME.sub(r"\1", _PREFIX.sub("", message)).strip()


def _time(raw: Raw) -> datetime | None:
    """When it last happened; old and new writers of events fill in different fields."""
    texts = (
        part(raw, "series").get("lastObservedTime"),
        raw.get("lastTimestamp"),
        raw.get("eventTime"),
        part(raw, "metadata").get("creationTimestamp"),
    )
    return next((moment(text) for text in texts if text), None)
