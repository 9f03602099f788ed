"""The images as they were built for the bed, and a pod of each with our pods' own restrictions.

Takes about a minute: three pods, and the names of all files in the train image.
"""

from __future__ import annotations

import inspect
import json
import re
import tarfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from bed.cluster import Bed
from bed.images import ARGUMENTS, BuiltImage, built_image, image_name, stored_blobs
from pretrain_operator.children.security import USER, container_security, pod_security
from pretrain_operator.children.volumes import TEMPORARY_PATH
from pretrain_testing import image_check

LIMIT_BYTES = {"operator": 250e6, "preprocess": 400e6, "train": 2.3e9}
"""Over the base. That of train is for the variant without CUDA, which the bed has."""

LABELS = {"title", "description", "licenses", "version", "revision", "source"}
HOST_OR_SECRET = re.compile(r"://|password|netrc|UV_\w+=", re.IGNORECASE)
CACHES = re.compile(r"(^|/)(\.cache/.|pip/|var/cache/apt/.*\.deb$|var/lib/apt/lists/.)")


@pytest.fixture(params=ARGUMENTS)
def image(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def code(bed: Bed) -> str:
    """Names the code that the bed's images were brought up with."""
    return image_check.code_digest()


@pytest.fixture
def built(bed: Bed, image: str) -> BuiltImage:
    return built_image(image)


def entries(built: BuiltImage) -> Iterator[tarfile.TarInfo]:
    """All that the image has over its base."""
    for layer in built.own_layers:
        with tarfile.open(stored_blobs() / layer.digest.removeprefix("sha256:")) as tar:
            yield from tar


def checking_pod(image: str) -> dict[str, Any]:
    source = inspect.getsource(image_check)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": image},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": pod_security(),
            "containers": [
                {
                    "name": "check",
                    "image": image_name(image),
                    "imagePullPolicy": "Never",
                    "command": ["python", "-c", source, image],
                    "securityContext": container_security(),
                    "volumeMounts": [{"name": "tmp", "mountPath": TEMPORARY_PATH}],
                }
            ],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        },
    }


def test_an_image_adds_no_more_to_its_base_than_its_bound(built: BuiltImage):
    print(f"{built.image}: {built.own_bytes / 1e6:,.0f} MB over the base")
    assert built.own_bytes < LIMIT_BYTES[built.image]


def test_code_is_a_small_layer_above_its_dependencies(built: BuiltImage):
    *below, code = built.own_layers
    assert code.size < 10e6 < max(layer.size for layer in below)


def test_an_image_says_what_it_is_and_whom_it_runs_as(built: BuiltImage):
    config = built.layout.config["config"]
    assert config["User"] == f"{USER}:{USER}"
    assert {f"org.opencontainers.image.{label}" for label in LABELS} <= set(config["Labels"])
    assert ("Entrypoint" in config) == (built.image == "operator")


def test_history_and_environment_name_no_index_and_no_secret(built: BuiltImage):
    config = built.layout.config
    said = [step.get("created_by", "") for step in config["history"]]
    said += config["config"]["Env"]
    assert [line for line in said if HOST_OR_SECRET.search(line)] == []


def test_an_image_holds_no_caches_no_secrets_and_nothing_that_all_may_write(built: BuiltImage):
    files = [entry for entry in entries(built) if not entry.isdir()]
    names = [entry.name for entry in files]
    assert [name for name in names if CACHES.search(name)] == []
    assert [name for name in names if "run/secrets" in name or "netrc" in name] == []
    assert [entry.name for entry in files if entry.isreg() and entry.mode & 0o022] == []


def test_a_restricted_pod_of_an_image_finds_its_code_and_nothing_foreign(
    image: str, code: str, namespace: str, kubectl: Callable[..., str]
):
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(checking_pod(image)))
    ended = "--for=jsonpath={.status.containerStatuses[0].state.terminated}"
    kubectl("wait", "-n", namespace, f"pod/{image}", ended, "--timeout=180s")
    said = kubectl("logs", "-n", namespace, image).splitlines()
    assert said[-1] == f"as it should be: {code}", said
