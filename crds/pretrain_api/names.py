"""The bound on a job's name: its longest child must have a name that is a DNS label.

Children are called `<job>-<first five of the uid>-<stage>-<attempt>`, and the pods of an Indexed
Job have the host name of the Job with their index behind it; both are DNS labels of at most 63
characters (RFC 1123). A Service's name begins with a letter (RFC 1035).
"""

from __future__ import annotations

import re

from pretrain_api.problems import Problem
from pretrain_api.reports import STAGES

LABEL_LENGTH = 63
"""Characters that a DNS label holds at most."""

LONGEST_SUFFIX = f"-xxxxx-{max(STAGES, key=len)}-999-99999"
"""A thousand attempts (preempted ones are not limited) and as many indexes as a Job can have."""

LONGEST_JOB_NAME = LABEL_LENGTH - len(LONGEST_SUFFIX)
JOB_NAME_PATTERN = "^[a-z]([-a-z0-9]*[a-z0-9])?$"

NAME_RULE = (
    f"must have at most {LONGEST_JOB_NAME} characters, small letters, digits and hyphens, begin "
    "with a letter and end with a letter or digit: the job's pods carry it in their names, as "
    f"<name>{LONGEST_SUFFIX}, which is a DNS label of at most {LABEL_LENGTH} characters"
)


def name_problem(name: str) -> list[Problem]:
    """Give the problem with a job's name, if it has one."""
    if len(name) <= LONGEST_JOB_NAME and re.fullmatch(JOB_NAME_PATTERN, name):
        return []
    return [Problem(("metadata", "name"), f'"{name}" ({len(name)} characters) {NAME_RULE}')]
