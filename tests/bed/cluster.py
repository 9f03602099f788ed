"""A bed that is up, as tests use it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bed import processes
from bed.api_client import ApiClient
from bed.binaries import build, program
from bed.certificates import write_kubeconfig
from bed.commands import run
from bed.control_plane import scheduler
from bed.kwok import STAGES, create_simulated_nodes, kwok, stages_of
from bed.parts import part_makers
from bed.profile import Profile


@dataclass(frozen=True)
class Bed:
    """What a test needs of the bed: its API, kubectl, and the means to break parts of it."""

    profile: Profile

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.profile.kubeconfig

    @property
    def audit_log(self) -> Path:
        """One JSON event a line for each request of a service account outside kube-system."""
        return self.profile.audit_log

    @cached_property
    def api(self) -> ApiClient:
        """Plain requests as the administrator."""
        return ApiClient(self.profile)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints; BedError with what it says when it fails."""
        flags = (
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self.profile.state / 'kubectl'}",
        )
        return run(program("kubectl"), *flags, *arguments, given=stdin)

    def kubectl_json(self, *arguments: str) -> Any:
        """The same, with `-o json`, decoded."""
        return json.loads(self.kubectl(*arguments, "--output=json"))

    def account_kubeconfig(self, path: Path, *, namespace: str, account: str) -> Path:
        """Write a kubeconfig with a service account's token, good for an hour."""
        place = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        token = self.api.request("POST", place, {"spec": {"expirationSeconds": 3600}})
        write_kubeconfig(self.profile, path, user={"token": token["status"]["token"]})
        return path

    def stop(self, part: str) -> None:
        """Kill a part, such as kubelet-node-b; containers go on without it."""
        processes.stop(self.profile, part)

    def start(self, part: str) -> None:
        """Start a part again."""
        processes.start(self.profile, part_makers(self.profile)[part](self.profile))

    def simulate_nodes(self, count: int, *, stages: Path = STAGES) -> None:
        """Have a scheduler, and KWOK play this many nodes and the pods on them, by its stages.

        Pods land on them with a toleration of the taint that is `bed.kwok.NODE_LABEL`.
        """
        build(["kube-scheduler", "kwok"])
        told = stages_of(self.profile)
        if told.exists() and told.read_text() != stages.read_text():
            self.stop("kwok")
        for part in (scheduler(self.profile), kwok(self.profile, stages)):
            if processes.running(self.profile, part.name) is None:
                processes.start(self.profile, part)
        create_simulated_nodes(self.api, count)
