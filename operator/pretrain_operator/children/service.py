"""The headless Service that gives the pods of a gang their DNS names."""

from __future__ import annotations

from pretrain_operator.children.attempt import Attempt
from pretrain_operator.children.metadata import child_metadata
from pretrain_operator.children.names import attempt_selector
from pretrain_operator.observed import Manifest

RENDEZVOUS_PORT_NAME = "rendezvous"


def build_service(attempt: Attempt) -> Manifest:
    """Names resolve before pods are ready, for readiness may itself wait for the gang."""
    selector = attempt_selector(attempt.job, stage=attempt.stage, attempt=attempt.number)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": child_metadata(attempt),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector,
            "ports": [
                {
                    "name": RENDEZVOUS_PORT_NAME,
                    "port": attempt.rendezvous_port,
                    "protocol": "TCP",
                }
            ],
        },
    }
