"""Edits of the number of workers: none is taken once training has begun.

Checkpoints are of the number of ranks that saved them; another number would find none it can use.
"""

from __future__ import annotations

from pretrain_api.problems import Problem

from pretrain_operator.plan.decision import Turn


def resize_problems(turn: Turn) -> list[Problem]:
    """The problem of an edited number of workers, if training has begun with another."""
    replicas = turn.job.spec.workers.replicas
    stages = turn.job.status.stages
    begun = next((s for s in stages if s.name == "train" and s.start_time is not None), None)
    if begun is None or begun.state == "Complete" or begun.total == replicas:
        return []
    message = (
        f"{replicas} is not supported: training has begun with {begun.total} workers, and its "
        f"checkpoints cannot be used by another number yet; set it back to {begun.total}"
    )
    return [Problem(("spec", "workers", "replicas"), message)]
