"""The product's chart in the bed, as a user installs it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bed.api_client import ApiClient
from bed.binaries import program
from bed.commands import run
from bed.namespaces import create_namespace
from bed.paths import ROOT
from bed.profile import Profile

CHART = ROOT / "charts" / "pretrain-operator"
VALUES = Path(__file__).with_name("values.yaml")
RELEASE = "pretrain-operator"
NAMESPACE = "pretrain-system"
_WAIT = "3m"


def install_chart(bed: Profile) -> None:
    """Install the chart as it is in the checkout, unless it is installed so already."""
    done = _installed(bed)
    wanted = _digest()
    if done.exists() and done.read_text() == wanted:
        return
    create_namespace(ApiClient(bed), NAMESPACE)
    helm(bed, "upgrade", "--install", RELEASE, str(CHART), f"--values={VALUES}")
    done.write_text(wanted)


def forget_chart(bed: Profile) -> None:
    """Have the next `up` install the chart again: a test has put something else in its place."""
    _installed(bed).unlink(missing_ok=True)


def restart_operator(bed: Profile) -> None:
    """Have the operator's pods take an image that changed under its name."""
    kubectl = (program("kubectl"), f"--kubeconfig={bed.kubeconfig}", f"--namespace={NAMESPACE}")
    operator = ("deployment", f"--selector=app.kubernetes.io/name={RELEASE}")
    run(*kubectl, "rollout", "restart", *operator)
    run(*kubectl, "rollout", "status", *operator, f"--timeout={_WAIT}")


def helm(bed: Profile, *arguments: str) -> str:
    """Run helm against the bed, in the operator's namespace."""
    folders = {f"HELM_{name}_HOME": str(bed.state / "helm") for name in ("CACHE", "CONFIG", "DATA")}
    environment = {"KUBECONFIG": str(bed.kubeconfig), **folders}
    flags = [f"--namespace={NAMESPACE}"]
    if arguments[0] in ("upgrade", "uninstall"):
        flags += ["--wait", f"--timeout={_WAIT}"]
    return run(program("helm"), *arguments, *flags, environment=environment)


def _installed(bed: Profile) -> Path:
    """The file that names what is installed."""
    return bed.state / "chart"


def _digest() -> str:
    """Names what would be installed."""
    digest = hashlib.sha256()
    for path in sorted([*CHART.rglob("*"), VALUES]):
        if path.is_file():
            digest.update(f"{path}\0".encode() + path.read_bytes())
    return digest.hexdigest()
