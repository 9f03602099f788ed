"""Where faulty jobs run: their namespaces and storage, what breaks there, and what mends it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bed.cluster import Bed
from bed.namespaces import create_namespace, delete_namespace
from bed.s3 import ADMIN, s3_client
from pretrain_api.layers import stack

from pretrain_testing.cluster_jobs import ClusterJobs
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.small_jobs import training_job

PREPROCESS_IMAGE = "localhost/pretrain-operator/preprocess:bed"
PLACE = "pretrain.dev/test-place"
"""Label of a node that is made to fit."""

SITE = """
import os, sys
fault = os.environ.get("FAULT", "")
if fault == "exit":
    print("the licence of the tokenizer plug-in has expired", file=sys.stderr)
    print("giving up", file=sys.stderr, flush=True)
    os._exit(1)
if fault == "memory" and "RANK" in os.environ:
    held = [b"x" * (16 << 20) for _ in range(1024)]
"""
"""Runs at the start of every Python of a container that has it on its path, and breaks some."""

_PREPARE = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
_TRAIN = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "2", "memory": "4Gi"}}
SMALL: dict[str, Any] = {
    "preprocess": {"resources": _PREPARE},
    "workers": {"resources": _TRAIN},
}
"""Requests that leave room for all faulty jobs at once."""


@dataclass(frozen=True)
class World:
    """Namespaces with the same storage; `limited` has a quota that holds no pod."""

    bed: Bed
    namespace: str
    prefix: Prefix

    @property
    def limited(self) -> str:
        return f"{self.namespace}-quota"

    @property
    def bucket(self) -> str:
        """A bucket that is not there yet."""
        return f"{self.namespace}-bucket"

    @property
    def namespaces(self) -> tuple[str, str]:
        return self.namespace, self.limited

    def jobs(self, *, limited: bool) -> ClusterJobs:
        """PretrainJobs of one of the namespaces."""
        return ClusterJobs(self.bed.kubectl, self.limited if limited else self.namespace)

    def job(self, name: str, spec: Mapping[str, Any], *, limited: bool) -> dict[str, Any]:
        """A small job with a spec laid over its own; `$` words in it name the world's."""
        job = training_job(name=name)
        sources = [{"uri": f"{self.prefix.storage['uri']}/corpus/reviews.jsonl"}]
        own = {"corpus": {"sources": sources}, "storage": self.prefix.storage, **SMALL}
        text = json.dumps(stack(spec, stack(own, job["spec"])))
        for word, value in (("$bucket", self.bucket), ("$place", self.namespace)):
            text = text.replace(word, value)
        metadata = {"name": name, "namespace": self.limited if limited else self.namespace}
        return {**job, "metadata": metadata, "spec": json.loads(text)}

    def apply(self, *manifests: dict[str, Any]) -> None:
        """Apply objects that name their namespaces, all at once."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.bed.kubectl("apply", "-f", "-", stdin=json.dumps(items))

    def make_secret(self, name: str, **data: str) -> None:
        """Create a Secret, or give it more keys."""
        self.apply({**self._object("Secret", name), "stringData": data})

    def raise_quota(self, memory: str) -> None:
        """Let pods of this much memory into the limited namespace."""
        quota = self._object("ResourceQuota", "small", namespace=self.limited)
        self.apply({**quota, "spec": {"hard": {"requests.memory": memory}}})

    def make_place(self) -> None:
        """Label a node, so that pods may go there."""
        self.bed.kubectl("label", "node", "node-a", f"{PLACE}={self.namespace}", "--overwrite")

    def make_bucket(self) -> None:
        """Create the bucket that is missed."""
        s3_client().create_bucket(Bucket=self.bucket)

    def stop_rank(self, pod: str) -> None:
        """SIGSTOP the rank of a worker pod, as its own user."""
        code = (
            "import os, pathlib, signal\n"
            "for path in pathlib.Path('/tmp').glob('pretrain-*/*/ranks/*.pid'):\n"
            "    os.kill(int(path.read_text()), signal.SIGSTOP)\n"
        )
        inside = ("exec", pod, "--container=main", "--", "python", "-c", code)
        self.bed.kubectl("-n", self.namespace, *inside)

    def prepare(self) -> None:
        """Make what faulty jobs find: data, keys that are wrong or too few, and the quota."""
        for namespace in self.namespaces:
            create_namespace(self.bed.api, namespace)
        self.prefix.upload_data()
        self.raise_quota("1Mi")
        wrong = {**ADMIN.environment, "AWS_SECRET_ACCESS_KEY": "not-the-key-of-this-user"}
        self.make_secret("wrong-keys", **wrong)
        self.make_secret("hub", user="nobody")
        self.apply({**self._object("ConfigMap", "site"), "data": {"sitecustomize.py": SITE}})

    def _object(self, kind: str, name: str, *, namespace: str = "") -> dict[str, Any]:
        metadata = {"name": name, "namespace": namespace or self.namespace}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


@contextmanager
def faulty_world(bed: Bed) -> Iterator[World]:
    """A world of its own; its namespaces go at the end."""
    namespace = f"faults-{secrets.token_hex(3)}"
    world = World(bed, namespace, Prefix(namespace))
    world.prepare()
    try:
        yield world
    finally:
        for name in world.namespaces:
            delete_namespace(bed.api, name)
        delete_bucket(world.bucket)
        bed.kubectl("label", "nodes", "--all", f"{PLACE}-")


def delete_bucket(bucket: str) -> None:
    """Delete a bucket and what is in it, if it was made: each holds volumes of the server."""
    client = s3_client()
    if bucket not in [found["Name"] for found in client.list_buckets()["Buckets"]]:
        return
    for found in client.list_objects_v2(Bucket=bucket).get("Contents", []):
        client.delete_object(Bucket=bucket, Key=found["Key"])
    client.delete_bucket(Bucket=bucket)


def broken_python(fault: str) -> dict[str, Any]:
    """A pod template of a container whose Pythons break in some way."""
    return python_with_site({"name": "FAULT", "value": fault})


def python_with_site(*variables: dict[str, str]) -> dict[str, Any]:
    """A pod template of a container whose Pythons begin with what the ConfigMap `site` holds."""
    environment = [{"name": "PYTHONPATH", "value": "/site"}, *variables]
    mounts = [{"name": "site", "mountPath": "/site", "readOnly": True}]
    container = {"name": "main", "env": environment, "volumeMounts": mounts}
    volumes = [{"name": "site", "configMap": {"name": "site"}}]
    return {"spec": {"containers": [container], "volumes": volumes}}
