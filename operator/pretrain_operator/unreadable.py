"""The status of a PretrainJob whose spec cannot be read; pure.

The API server refuses most of such specs. What it lets through is of another version's CRD, or
against a rule that no schema can hold. There is no plan for such a job, only this answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pretrain_api.errors import InvalidObjectError
from pretrain_api.reports import Cause
from pretrain_api.status import (
    TERMINAL_PHASES,
    Condition,
    ConditionType,
    Phase,
    PretrainJobStatus,
)

SENTENCE_LIMIT = 4000


def status_of_unreadable(
    before: PretrainJobStatus, error: InvalidObjectError, *, generation: int, now: datetime
) -> PretrainJobStatus:
    """The status of a job with such a spec.

    A new job has failed. One that was accepted before goes on as it is and waits for another
    edit; one that has ended stays as it ended.
    """
    if before.phase in TERMINAL_PHASES:
        return before
    sentence = "; ".join(str(problem) for problem in error.problems)[:SENTENCE_LIMIT]
    answer = _Answer(before, sentence, generation, now)
    return answer.waiting() if before.conditions else answer.failed()


@dataclass(frozen=True)
class _Answer:
    before: PretrainJobStatus
    sentence: str
    generation: int
    now: datetime

    def failed(self) -> PretrainJobStatus:
        reason = Cause.USER_ERROR.value
        return self.before.model_copy(
            update={
                "phase": Phase.FAILED,
                "observed_generation": self.generation,
                "completion_time": self.now,
                "blocked_by": self.sentence,
                "conditions": [
                    self._condition("Accepted", "False", reason),
                    self._condition("Failed", "True", reason),
                ],
            }
        )

    def waiting(self) -> PretrainJobStatus:
        others = [c for c in self.before.conditions if c.type != "Accepted"]
        return self.before.model_copy(
            update={
                "observed_generation": self.generation,
                "blocked_by": f"The edited spec cannot be run: {self.sentence}",
                "conditions": [self._condition("Accepted", "False", "Invalid"), *others],
            }
        )

    def _condition(
        self, type_: ConditionType, status: Literal["True", "False"], reason: str
    ) -> Condition:
        unchanged = (c for c in self.before.conditions if (c.type, c.status) == (type_, status))
        since = next((c.last_transition_time for c in unchanged), self.now)
        return Condition(
            type=type_,
            status=status,
            reason=reason,
            message=self.sentence,
            observed_generation=self.generation,
            last_transition_time=since,
        )
