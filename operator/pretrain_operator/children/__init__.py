"""Pure builders of a job's children: a ConfigMap, a Service and an Indexed Job per attempt."""

from pretrain_operator.children.attempt import Attempt, StageArtifact
from pretrain_operator.children.bundle import build_attempt
from pretrain_operator.children.render import render

__all__ = ["Attempt", "StageArtifact", "build_attempt", "render"]
