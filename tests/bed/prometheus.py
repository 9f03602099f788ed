"""Prometheus as a process: it scrapes the pods that have a port named `metrics`."""

from __future__ import annotations

import yaml

from bed import discovery
from bed.health import answers
from bed.processes import Part
from bed.profile import BRIDGE_ADDRESS, Profile

URL = f"http://{BRIDGE_ADDRESS}:9090"

_CONFIGURATION = {
    "global": {"scrape_interval": "5s", "scrape_timeout": "4s"},
    "scrape_configs": [
        {
            "job_name": "pods",
            # The product's metrics bear the namespace and name of the PretrainJob they are about.
            "honor_labels": True,
            "http_sd_configs": [{"url": discovery.URL, "refresh_interval": "5s"}],
        }
    ],
}


def prometheus(bed: Profile) -> Part:
    """The server."""
    configuration = bed.state / "prometheus.yaml"
    return Part(
        "prometheus",
        (
            "prometheus",
            f"--config.file={configuration}",
            f"--storage.tsdb.path={bed.state / 'prometheus'}",
            f"--web.listen-address={URL.removeprefix('http://')}",
            "--log.level=warn",
        ),
        healthy=answers(f"{URL}/-/ready"),
        files={configuration: yaml.safe_dump(_CONFIGURATION)},
    )
