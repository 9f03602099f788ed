"""etcd, the API server, the controllers and the scheduler of a bed."""

from __future__ import annotations

from pathlib import Path

import yaml

from bed.binaries import program
from bed.health import answers
from bed.processes import Part
from bed.profile import LOOPBACK, SERVICE_RANGE, Profile

_FAST = ("--kube-api-qps=1000", "--kube-api-burst=2000")
"""At the default of 20 requests a second the controllers are the limit of every larger test."""

_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}
"""What service accounts outside kube-system ask for: enough to hold RBAC rules against."""


def etcd(bed: Profile) -> Part:
    """The store. Without fsync: its data ends with the bed."""
    clients, peers = (f"http://{LOOPBACK}:{bed.etcd_port + offset}" for offset in (0, 1))
    return Part(
        "etcd",
        (
            str(program("etcd")),
            f"--data-dir={bed.state / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ),
        healthy=answers(f"{clients}/health"),
    )


def api_server(bed: Profile) -> Part:
    """The API server; pods reach it only in the full profile."""
    policy = bed.state / "audit-policy.yaml"
    return Part(
        "kube-apiserver",
        (
            str(program("kube-apiserver")),
            f"--etcd-servers=http://{LOOPBACK}:{bed.etcd_port}",
            f"--bind-address={bed.address}",
            f"--advertise-address={bed.address}",
            f"--secure-port={bed.api_port}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            f"--client-ca-file={bed.pki / 'ca.crt'}",
            f"--tls-cert-file={bed.pki / 'apiserver.crt'}",
            f"--tls-private-key-file={bed.pki / 'apiserver.key'}",
            f"--service-account-key-file={bed.pki / 'sa.pub'}",
            f"--service-account-signing-key-file={bed.pki / 'sa.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--kubelet-client-certificate={bed.pki / 'admin.crt'}",
            f"--kubelet-client-key={bed.pki / 'admin.key'}",
            "--kubelet-preferred-address-types=InternalIP",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={bed.audit_log}",
            *_endpoints(bed),
        ),
        healthy=answers(f"{bed.api_url}/readyz"),
        files={policy: yaml.safe_dump(_AUDIT_POLICY)},
    )


def controller_manager(bed: Profile) -> Part:
    """The controllers: Jobs, garbage collection, namespaces, service accounts, ..."""
    return Part(
        "kube-controller-manager",
        (
            str(program("kube-controller-manager")),
            *_client_flags(bed, "kube-controller-manager"),
            f"--bind-address={LOOPBACK}",
            f"--secure-port={bed.controller_manager_port}",
            f"--root-ca-file={bed.pki / 'ca.crt'}",
            f"--service-account-private-key-file={bed.pki / 'sa.key'}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            f"--node-monitor-grace-period={_lost_after(bed)}",
            *_FAST,
        ),
        healthy=answers(f"https://{LOOPBACK}:{bed.controller_manager_port}/healthz"),
    )


def scheduler(bed: Profile) -> Part:
    """The scheduler."""
    return Part(
        "kube-scheduler",
        (
            str(program("kube-scheduler")),
            *_client_flags(bed, "kube-scheduler"),
            f"--bind-address={LOOPBACK}",
            f"--secure-port={bed.scheduler_port}",
            "--leader-elect=false",
            *_FAST,
        ),
        healthy=answers(f"https://{LOOPBACK}:{bed.scheduler_port}/healthz"),
    )


def user_kubeconfig(bed: Profile, name: str) -> Path:
    """The kubeconfig of a part."""
    return bed.state / "kubeconfigs" / name


def _client_flags(bed: Profile, name: str) -> list[str]:
    path = user_kubeconfig(bed, name)
    flags = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    return [f"--{flag}={path}" for flag in flags]


def _endpoints(bed: Profile) -> list[str]:
    """A loopback address cannot be a Service's endpoint, and no pod would reach it."""
    return ["--endpoint-reconciler-type=none"] if bed.address == LOOPBACK else []


def _lost_after(bed: Profile) -> str:
    """A dead node is noticed soon; the simulated nodes of the api profile renew no lease."""
    return "10s" if bed.has_nodes else "2h"
