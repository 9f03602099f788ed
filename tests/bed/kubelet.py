"""The nodes' kubelets, and the kube-proxy that serves both: they share the machine's network."""

from __future__ import annotations

from typing import Any

import yaml

from bed.binaries import program
from bed.cgroups import cgroup_of
from bed.containerd import socket_of
from bed.control_plane import user_kubeconfig
from bed.health import answers
from bed.processes import Part
from bed.profile import BRIDGE_ADDRESS, LOOPBACK, NODES, Profile

_HEALTH_PORTS = {"node-a": 10248, "node-b": 10258}
_PROXY_PORTS = {"health": 10256, "metrics": 10249}


def kubelet(bed: Profile, node: str) -> Part:
    """A node's kubelet."""
    configuration = bed.state / f"kubelet-{node}.yaml"
    return Part(
        f"kubelet-{node}",
        (
            str(program("kubelet")),
            f"--config={configuration}",
            f"--kubeconfig={user_kubeconfig(bed, node)}",
            f"--hostname-override={node}",
            f"--root-dir={bed.state / f'kubelet-{node}'}",
            f"--node-ip={NODES[node]}",
        ),
        healthy=answers(f"http://{LOOPBACK}:{_HEALTH_PORTS[node]}/healthz"),
        files={configuration: yaml.safe_dump(_kubelet_configuration(bed, node))},
    )


def kube_proxy(bed: Profile) -> Part:
    """Services, by nftables. It ends when its configuration is written again."""
    configuration = bed.state / "kube-proxy.yaml"
    return Part(
        "kube-proxy",
        (str(program("kube-proxy")), f"--config={configuration}"),
        healthy=answers(f"http://{LOOPBACK}:{_PROXY_PORTS['health']}/livez"),
        files={configuration: yaml.safe_dump(_proxy_configuration(bed))},
    )


def _kubelet_configuration(bed: Profile, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODES[node],
        "port": 10250,
        "readOnlyPort": 0,
        "healthzPort": _HEALTH_PORTS[node],
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(bed.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(bed.pki / f"{node}.crt"),
        "tlsPrivateKeyFile": str(bed.pki / f"{node}.key"),
        "clusterDNS": [BRIDGE_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": "/dev/null",
        "containerRuntimeEndpoint": f"unix://{socket_of(node)}",
        "podLogsDir": str(bed.state / f"podlogs-{node}"),
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
        **_kubelet_resources(node),
    }


def _kubelet_resources(node: str) -> dict[str, Any]:
    """Both nodes see the whole machine: nothing is reserved, and little is worth an eviction."""
    return {
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup_of(node)}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
    }


def _proxy_configuration(bed: Profile) -> dict[str, Any]:
    """Bridged packets pass no netfilter here, so replies find their way only when masqueraded."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "nftables": {"masqueradeAll": True},
        "clusterCIDR": "10.244.0.0/24",
        "hostnameOverride": "node-a",
        "clientConnection": {"kubeconfig": str(user_kubeconfig(bed, "kube-proxy"))},
        "healthzBindAddress": f"{LOOPBACK}:{_PROXY_PORTS['health']}",
        "metricsBindAddress": f"{LOOPBACK}:{_PROXY_PORTS['metrics']}",
        "conntrack": {
            "maxPerCore": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }
