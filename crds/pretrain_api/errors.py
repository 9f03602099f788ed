"""How the API refuses an object: one exception with every problem found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pretrain_api.problems import Problem
from pretrain_api.reports import EXIT_CODES, Cause


class InvalidObjectError(ValueError):
    """A document is no valid PretrainJob; `problems` has everything to correct."""

    cause: ClassVar[Cause] = Cause.USER_ERROR

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @property
    def exit_code(self) -> int:
        """Exit code of a process that ends with this error."""
        return EXIT_CODES[self.cause]
