"""The plan: a pure function from a job and its observed children to what should happen next."""

from pretrain_operator.plan.planner import Plan, plan

__all__ = ["Plan", "plan"]
