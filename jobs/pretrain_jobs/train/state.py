"""Where training stands: what a checkpoint stores beside weights and optimizer.

`Progress` is common to all ranks and lies in rank 0's file. Nothing in it depends on the clock
but the time sheet and the log's wall figures, which no computation reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from pretrain_api.timesheet import TimeSheet
from pydantic import ValidationError

from pretrain_jobs.dataset.order import Cursor
from pretrain_jobs.errors import CheckpointUnusableError
from pretrain_jobs.train.anomalies import AnomalyState

LogLine = dict[str, Any]
"""One line of the log: a JSON object."""


@dataclass(frozen=True)
class TokenCounts:
    """Tokens by what they are: computed positions, real tokens, tokens with a loss."""

    positions: int = 0
    real: int = 0
    loss: int = 0

    def __add__(self, other: TokenCounts) -> TokenCounts:
        return TokenCounts(
            self.positions + other.positions, self.real + other.real, self.loss + other.loss
        )


@dataclass(frozen=True)
class LossSum:
    """Mean losses of the applied steps since the last line of the log, added up and counted."""

    total: float = 0.0
    steps: int = 0

    def with_step(self, loss: float) -> LossSum:
        """The same with one more step."""
        return LossSum(self.total + loss, self.steps + 1)

    @property
    def mean(self) -> float | None:
        """The mean, None if no step was applied."""
        return self.total / self.steps if self.steps else None


@dataclass(frozen=True)
class Progress:
    """After step `step`: the data cursor, counters, anomalies, the losses not yet logged, the log.

    `evaluation_due` tells that the evaluation after this step was not finished, `time_sheet` the
    time that it took to come here; checkpoints of earlier versions have none.
    """

    step: int
    cursor: Cursor
    samples: int = 0
    tokens: TokenCounts = field(default_factory=TokenCounts)
    anomalies: AnomalyState = field(default_factory=AnomalyState)
    losses: LossSum = field(default_factory=LossSum)
    evaluation_due: bool = False
    log: tuple[LogLine, ...] = ()
    time_sheet: TimeSheet | None = None

    def with_line(self, line: LogLine) -> Progress:
        """The same with a line added to the log."""
        return replace(self, log=(*self.log, line))

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads."""
        sheet = self.time_sheet.model_dump(mode="json") if self.time_sheet else None
        return {
            **asdict(replace(self, time_sheet=None)),
            "cursor": self.cursor.to_json(),
            "log": list(self.log),
            "time_sheet": sheet,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Progress:
        """Read a stored state; CheckpointUnusableError when it is of another format.

        Fields that a newer version added are left out, as in every message between versions.
        """
        try:
            sheet = value.get("time_sheet")
            anomalies = _read(AnomalyState, value["anomalies"])
            return cls(
                step=value["step"],
                cursor=Cursor.from_json(value["cursor"]),
                samples=value["samples"],
                tokens=_read(TokenCounts, value["tokens"]),
                anomalies=replace(anomalies, losses=tuple(anomalies.losses)),
                losses=_read(LossSum, value["losses"]),
                evaluation_due=value["evaluation_due"],
                log=tuple(value["log"]),
                time_sheet=TimeSheet.model_validate(sheet) if sheet else None,
            )
        except (KeyError, TypeError, ValidationError) as error:
            raise CheckpointUnusableError(
                f"the training state in the checkpoint is of another version ({error!r}); resume "
                "with the version that wrote it, or start a new job"
            ) from error


StateT = TypeVar("StateT", TokenCounts, LossSum, AnomalyState)


def _read(kind: type[StateT], value: Mapping[str, Any]) -> StateT:
    """Make one of the dataclasses from the fields that it has; TypeError when one is missing."""
    known = {each.name for each in fields(kind)}
    return kind(**{name: item for name, item in value.items() if name in known})
