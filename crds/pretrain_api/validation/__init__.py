"""Rules that weigh fields against each other, and what this version does not run yet.

`check` is for specs that can never work; `unsupported` for those that a later version may run.
Both take a resolved spec, are pure, and refuse with a sentence rather than ignore a field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pretrain_api.problems import Problem
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.validation import data, model, places, training
from pretrain_api.validation.supported import unsupported

__all__ = ["RULES", "Rule", "check", "unsupported"]

Rule = Callable[[PretrainJobSpec], Iterator[Problem]]

RULES: tuple[Rule, ...] = (*places.RULES, *data.RULES, *model.RULES, *training.RULES)
"""Every rule, in the order of the spec's sections."""


def check(spec: PretrainJobSpec) -> list[Problem]:
    """Give all that is wrong with a resolved spec; paths begin below `spec`."""
    return [problem for rule in RULES for problem in rule(spec)]
