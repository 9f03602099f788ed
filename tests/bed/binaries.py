"""The programs that are built from source, each once for the content of its Go module.

Built programs lie in the cache's `bin` folder as `NAME-KEY`; a changed go.mod, go.sum or main.go
gives another key.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bed.errors import BedError
from bed.locks import exclusive
from bed.paths import GO_MODULES, cache_folder
from bed.toolchain import go_command

KUBERNETES_PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)

SPENDING_MEMORY_FOR_TIME = {"GOGC": "400"}
"""A compiler's heap may grow to five times what lives in it before it is swept."""


@dataclass(frozen=True)
class GoModule:
    """A folder under `go/` and the programs built from it."""

    name: str
    packages: Mapping[str, str]
    """Program to the package that it is the main package of."""
    version: str | None = None
    """Package path whose required version the program reports as its own."""
    variables: tuple[str, ...] = field(default=())
    """String variables that the linker sets to that version."""

    @property
    def folder(self) -> Path:
        """Where its go.mod is."""
        return GO_MODULES / self.name

    def key(self) -> str:
        """Names the build: a hash of the files that decide it."""
        digest = hashlib.sha256()
        for file in sorted(filter(Path.is_file, self.folder.rglob("*"))):
            digest.update(file.read_bytes())
        return digest.hexdigest()[:12]

    def path(self, program: str) -> Path:
        """Where a program lies once it is built."""
        return cache_folder() / "bin" / f"{program}-{self.key()}"


MODULES = (
    GoModule(
        "kubernetes",
        {name: f"k8s.io/kubernetes/cmd/{name}" for name in KUBERNETES_PROGRAMS},
        version="k8s.io/kubernetes",
        variables=(
            "k8s.io/component-base/version.gitVersion",
            "k8s.io/client-go/pkg/version.gitVersion",
        ),
    ),
    GoModule("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
    GoModule("pause", {"pause": "."}),
    GoModule(
        "tools",
        {
            "helm": "helm.sh/helm/v4/cmd/helm",
            "coredns": "./coredns",
            "kwok": "sigs.k8s.io/kwok/cmd/kwok",
        },
        version="helm.sh/helm/v4",
        variables=("helm.sh/helm/v4/internal/version.version",),
    ),
    GoModule("weed", {"weed": "github.com/seaweedfs/seaweedfs/weed"}),
)
"""Helm, CoreDNS and KWOK are one module: with one version of client-go, it is compiled once."""


def program(name: str) -> Path:
    """A built program's path; BedError says how to build it when it is missing."""
    for module in MODULES:
        if name in module.packages:
            path = module.path(name)
            if not path.exists():
                raise BedError(f"{path} is missing: PYTHONPATH=tests python -m bed build {name}")
            return path
    raise BedError(f"{name} is none of the bed's programs")


def build(names: Iterable[str] = ()) -> None:
    """Build what is missing, of the named programs or of all; says what it does on stderr."""
    wanted = set(names)
    unknown = wanted - {name for module in MODULES for name in module.packages}
    if unknown:
        raise BedError(f"none of the bed's programs: {', '.join(sorted(unknown))}")
    for module in MODULES:
        names = [name for name in module.packages if not wanted or name in wanted]
        if not all(module.path(name).exists() for name in names):
            _build_missing(module, names)


def _build_missing(module: GoModule, names: Iterable[str]) -> None:
    with exclusive(cache_folder() / "bin" / f".{module.name}.lock"):
        for name in names:
            if not module.path(name).exists():
                _compile(module, module.packages[name], module.path(name))


def _compile(module: GoModule, package: str, path: Path) -> None:
    """Go's own cache holds what a module's programs share, so the first one takes longest."""
    print(f"building {path.name} (minutes, once)", file=sys.stderr, flush=True)
    start = time.monotonic()
    linker = f"-s -w {_version_flags(module)}".strip()
    flags = ["-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags", linker]
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    command = [*go_command(module.folder), "build", *flags, "-o", str(temporary), package]
    environment = {**os.environ, "CGO_ENABLED": "0", **SPENDING_MEMORY_FOR_TIME}
    ended = subprocess.run(command, cwd=module.folder, env=environment, check=False)
    if ended.returncode:
        raise BedError(f"go build of {package} in {module.folder} ended {ended.returncode}")
    temporary.rename(path)
    print(f"built {path.name} in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def _version_flags(module: GoModule) -> str:
    """Linker flags without which a program would report v0.0.0 and be taken for an old one."""
    if module.version is None:
        return ""
    required = rf"^\s*(?:require )?{re.escape(module.version)} (v(\d+)\.(\d+)\S*)"
    found = re.search(required, (module.folder / "go.mod").read_text(), flags=re.MULTILINE)
    if not found:
        raise BedError(f"no version of {module.version} in {module.folder / 'go.mod'}")
    values = dict.fromkeys(module.variables, found[1])
    for variable in module.variables:
        if variable.endswith(".gitVersion"):
            stem = variable.removesuffix("gitVersion")
            values |= {f"{stem}gitMajor": found[2], f"{stem}gitMinor": found[3]}
    return " ".join(f"-X {variable}={value}" for variable, value in values.items())
