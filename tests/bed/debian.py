"""The parts that Debian packages: the container runtime, network tools, Prometheus.

Services that the packages would start are kept from starting: the bed runs its own.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bed.commands import run
from bed.errors import BedError

PLUGINS = Path("/usr/lib/cni")
"""Where Debian puts the network plugins."""

PACKAGES = {
    "buildah": "buildah",
    "conntrack": "conntrack",
    "containerd": "containerd",
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "nft": "nftables",
    "openssl": "openssl",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "runc": "runc",
    "skopeo": "skopeo",
    str(PLUGINS / "bridge"): "containernetworking-plugins",
}
"""A program of each package that the bed uses, and the package."""

_POLICY = Path("/usr/sbin/policy-rc.d")


def missing_packages() -> list[str]:
    """Packages whose programs are not here."""
    return sorted({package for name, package in PACKAGES.items() if shutil.which(name) is None})


def install_packages() -> None:
    """Install what is missing with apt-get; BedError where that is not possible."""
    missing = missing_packages()
    if not missing:
        return
    if os.geteuid() or shutil.which("apt-get") is None:
        raise BedError(f"as root on Debian, install: {' '.join(missing)}")
    print(f"installing {' '.join(missing)}", file=sys.stderr)
    start = time.monotonic()
    with _no_services():
        _apt("update")
        _apt("install", "--yes", "--no-install-recommends", *missing)
    print(f"installed packages in {time.monotonic() - start:.0f} s", file=sys.stderr)


def _apt(*arguments: str) -> None:
    run("apt-get", "-qq", *arguments, environment={"DEBIAN_FRONTEND": "noninteractive"})


@contextmanager
def _no_services() -> Iterator[None]:
    """Debian asks policy-rc.d before it starts a service; 101 says no."""
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink()
