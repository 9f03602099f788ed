"""Asking a pod of the bed for its metrics, from this machine."""

from __future__ import annotations

from typing import Any

from pretrain_testing.scrapes import Scrape, scrape

PORT_NAME = "metrics"


def scrape_pod(pod: dict[str, Any]) -> Scrape | None:
    """What /metrics of a pod's first container tells now; None while nobody listens."""
    address = pod["status"].get("podIP")
    ports = pod["spec"]["containers"][0]["ports"]
    port = next(port["containerPort"] for port in ports if port["name"] == PORT_NAME)
    return scrape(port, host=address) if address else None
