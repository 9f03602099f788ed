"""A pod's one container as a process of this machine: command, environment and files; pure.

Mount paths such as /etc/pretrain, /tmp and /dev/termination-log cannot be mounted without
privileges. They are directories of the pod instead, and every environment value and argument
that is such a path, or lies below it, names that directory. Differences to a cluster: resource
limits, security contexts, init containers and side-cars are left out, /dev/shm is the machine's
own, and a secret's keys come from the caller's environment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrain_api.reports import PROGRESS_FILE_ENV, TERMINATION_LOG_ENV
from pretrain_operator.children.volumes import LOCAL_CHECKPOINTS

from pretrainctl.errors import InvalidError

HOST_ALIASES_ENV = "PRETRAIN_HOST_ALIASES"
"""Environment variable with a JSON object from DNS names to addresses."""

TERMINATION_LOG = "/dev/termination-log"

INHERITED = re.compile(
    "PATH|USER|LOGNAME|LANG|LC_.*|TZ|PYTHONPATH|LD_LIBRARY_PATH|SSL_CERT_(FILE|DIR)"
    "|((https?|no|all)_proxy)|((HTTPS?|NO|ALL)_PROXY)|AWS_.*|CUDA_.*|NVIDIA_.*|PRETRAIN_(FAILPOINT|LEDGER).*"
)
"""What a pod gets of the caller's environment: what finds programs, devices, servers and
credentials. Nothing else, so that a setting of a laptop (OMP_NUM_THREADS) never decides a sum."""

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


@dataclass(frozen=True)
class PodContext:
    """What a pod is given beside its template.

    `local_checkpoints` stands for the volume on which training leaves its newest checkpoints.
    """

    name: str
    index: int
    namespace: str
    directory: Path
    temporary: Path
    hosts: Mapping[str, str]
    config_maps: Mapping[str, Mapping[str, str]]
    caller: Mapping[str, str]
    marks: Mapping[str, str]
    local_checkpoints: Path


@dataclass(frozen=True)
class PodProcess:
    """What to start; directories are made and files written before, scratch is removed after."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    directories: tuple[Path, ...]
    scratch: tuple[Path, ...]
    marks: Mapping[str, str]
    files: Mapping[Path, str]
    termination_log: Path
    progress_file: Path


def build_pod_process(spec: Mapping[str, Any], context: PodContext) -> PodProcess:
    """Translate a pod's spec; InvalidError names what only a cluster can give."""
    container = spec["containers"][0]
    volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
    mounts = {TERMINATION_LOG: context.directory / "termination-log"}
    files: dict[Path, str] = {}
    for mount in container.get("volumeMounts", ()):
        place = _place(volumes[mount["name"]], mount["mountPath"], context)
        mounts[mount["mountPath"].rstrip("/")] = place / mount.get("subPath", "")
        files |= _files(volumes[mount["name"]], place, context)
    own = [place for place in mounts.values() if context.directory in place.parents]
    kept = [place for place in mounts.values() if place == context.local_checkpoints]
    scratch = [place for place in own[1:] if not any(place in path.parents for path in files)]
    env = _environment(container, mounts, context)
    command = [*container.get("command", ()), *container.get("args", ())]
    words = [_expand(part, env) for part in command]
    return PodProcess(
        # the program is this machine's, also where it lies under a path that a pod mounts
        argv=(*words[:1], *(map_path(word, mounts) for word in words[1:])),
        env=env,
        directories=(context.directory, context.temporary, *own[1:], *kept),
        scratch=(context.temporary, *scratch),
        marks=context.marks,
        files=files,
        termination_log=Path(env[TERMINATION_LOG_ENV]),
        progress_file=Path(env[PROGRESS_FILE_ENV]),
    )


def map_path(text: str, mounts: Mapping[str, Path]) -> str:
    """Replace a mount path at the start of a text, or after `=` or `file://`, by its directory."""
    if not mounts:
        return text
    longest_first = sorted(mounts, key=len, reverse=True)
    pattern = "|".join(re.escape(path) for path in longest_first)
    return re.sub(
        rf"(^|=|file://)({pattern})(?=/|$)",
        lambda match: f"{match[1]}{mounts[match[2]]}",
        text,
    )


def _place(volume: Mapping[str, Any], mount_path: str, context: PodContext) -> Path:
    if volume["name"] == LOCAL_CHECKPOINTS:
        return context.local_checkpoints
    if "hostPath" in volume:
        return Path(volume["hostPath"]["path"])
    if mount_path == "/tmp":  # noqa: S108 - the pod's, not this machine's
        return context.temporary
    if "emptyDir" in volume or "configMap" in volume:
        return context.directory / "volumes" / str(volume["name"])
    kind = next((key for key in volume if key != "name"), "unknown")
    raise InvalidError(
        f"volume {volume['name']!r} is a {kind}, which only a cluster has; "
        "leave it out of the pod template to run locally"
    )


def _files(volume: Mapping[str, Any], place: Path, context: PodContext) -> dict[Path, str]:
    if "configMap" not in volume:
        return {}
    name = volume["configMap"]["name"]
    if name not in context.config_maps:
        raise InvalidError(
            f"ConfigMap {name!r} of volume {volume['name']!r} is on a cluster; "
            "locally set AWS_CA_BUNDLE, or leave it out of the pod template"
        )
    return {place / key: text for key, text in context.config_maps[name].items()}


def _environment(
    container: Mapping[str, Any], mounts: Mapping[str, Path], context: PodContext
) -> dict[str, str]:
    env = inherited_environment(context.caller)
    env |= {"HOSTNAME": context.name, "JOB_COMPLETION_INDEX": str(context.index)}
    env |= {"HOME": str(context.temporary), "TMPDIR": str(context.temporary)}
    for entry in container.get("env", ()):
        value = _expand(_value(entry, context), env)
        env[entry["name"]] = map_path(value, mounts)
    env.setdefault(TERMINATION_LOG_ENV, str(mounts[TERMINATION_LOG]))
    env.setdefault(PROGRESS_FILE_ENV, str(context.temporary / "progress.json"))
    return {**env, **context.marks, HOST_ALIASES_ENV: json.dumps(context.hosts)}


def inherited_environment(caller: Mapping[str, str]) -> dict[str, str]:
    """The caller's variables that a pod sees; AWS profiles are found although HOME is another."""
    env = {name: value for name, value in caller.items() if INHERITED.fullmatch(name)}
    if "HOME" in caller:
        profiles = Path(caller["HOME"]) / ".aws"
        env.setdefault("AWS_SHARED_CREDENTIALS_FILE", str(profiles / "credentials"))
        env.setdefault("AWS_CONFIG_FILE", str(profiles / "config"))
    return env


def _value(entry: Mapping[str, Any], context: PodContext) -> str:
    if "valueFrom" not in entry:
        return str(entry.get("value", ""))
    source = entry["valueFrom"]
    fields = {"metadata.name": context.name, "metadata.namespace": context.namespace}
    fields |= {"spec.nodeName": "localhost", "status.podIP": "127.0.0.1"}
    field = source.get("fieldRef", {}).get("fieldPath")
    if field in fields:
        return fields[field]
    secret = source.get("secretKeyRef", {})
    if secret.get("optional"):
        return context.caller.get(entry["name"], "")
    if secret and entry["name"] in context.caller:
        return context.caller[entry["name"]]
    raise InvalidError(
        f"the value of {entry['name']} in the pod template comes from a cluster; "
        f"locally a secret's key is read from the environment: set {entry['name']}"
    )


def _expand(text: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` as Kubernetes expands it: unknown names stay, `$$` is a dollar sign."""
    return _REFERENCE.sub(
        lambda match: "$" if match[0] == "$$" else env.get(match[1], match[0]), text
    )


def host_aliases(job: str, completions: int, subdomain: str, namespace: str) -> dict[str, str]:
    """Every DNS name of the pods of an Indexed Job with a headless Service: all this machine."""
    suffixes = ("", f".{namespace}", f".{namespace}.svc", f".{namespace}.svc.cluster.local")
    hosts = [f"{job}-{index}" for index in range(completions)]
    names = hosts + [f"{host}.{subdomain}{suffix}" for host in hosts for suffix in suffixes]
    return dict.fromkeys(names, "127.0.0.1")
