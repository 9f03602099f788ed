"""Security contexts that the Pod Security Standard *restricted* admits."""

from __future__ import annotations

from typing import Any

USER = 65532
"""The images' user, which owns nothing in them."""


def pod_security() -> dict[str, Any]:
    """`securityContext` of the pod."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> dict[str, Any]:
    """`securityContext` of every container."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
