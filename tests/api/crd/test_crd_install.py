"""The CRD is taken by a real API server, both ways of applying it, and explains itself."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from bed.cluster import Bed
from pretrain_api.schema import open_api_schema
from pretrain_testing.processes import wait_for
from pretrain_testing.stored_jobs import (
    CRD_FILE,
    PLURAL,
    StoredJobs,
    crd_document,
    wait_until_served,
)

CRD_LIMIT = 200_000
ANNOTATION_LIMIT = 262_144
"""Bytes of all annotations of an object together (apimachinery, TotalAnnotationSizeLimitB)."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def write(path: Path, document: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return f"--filename={path}"


def test_the_file_is_small_enough_for_client_side_apply() -> None:
    assert CRD_FILE.stat().st_size < CRD_LIMIT


def test_client_side_apply_takes_it_twice(
    bed: Bed, kubernetes_client: Any, own_group: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "crd.yaml", crd_document(group=own_group))

    first = bed.kubectl("apply", file)
    second = bed.kubectl("apply", file)

    assert first.strip().endswith("created")
    assert second.strip().endswith("unchanged")
    wait_until_served(kubernetes_client, group=own_group)
    stored = bed.kubectl_json("get", "crd", f"{PLURAL}.{own_group}")
    assert len(stored["metadata"]["annotations"][LAST_APPLIED]) < ANNOTATION_LIMIT


def test_server_side_apply_takes_it_twice_without_a_conflict(
    bed: Bed, kubernetes_client: Any, own_group: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "crd.yaml", crd_document(group=own_group))

    for _ in range(2):
        bed.kubectl("apply", "--server-side", file)

    wait_until_served(kubernetes_client, group=own_group)
    stored = bed.kubectl_json("get", "crd", f"{PLURAL}.{own_group}")
    conditions = {c["type"]: c["status"] for c in stored["status"]["conditions"]}
    assert conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions
    assert stored["metadata"]["generation"] == 1


def test_what_the_server_stores_is_what_the_file_says(bed: Bed, crd: None) -> None:
    stored = bed.kubectl_json("get", "crd", f"{PLURAL}.pretrain.dev")

    (version,) = stored["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"] == json.loads(json.dumps(open_api_schema()))
    assert stored["spec"]["names"]["shortNames"] == ["ptj"]


@pytest.mark.parametrize("section", ["spec", "spec.training", "status"])
def test_kubectl_explains_every_field(section: str, bed: Bed, crd: None) -> None:
    node = open_api_schema()
    for name in section.split("."):
        node = node["properties"][name]
    expected = set(fields_of(node))

    def explained() -> set[str] | None:
        text = bed.kubectl("explain", f"pretrainjob.{section}", "--recursive")
        found = set(fields_in(text))
        return found if found >= expected else None

    assert wait_for("the server's own description of the CRD", explained) == expected


def test_every_field_that_kubectl_explains_has_a_description(crd: None) -> None:
    missing = [path for path, node in nodes_of(open_api_schema()["properties"]["spec"])
               if "description" not in node]  # fmt: skip

    assert missing == []


def fields_of(node: dict[str, Any], path: str = "") -> Iterator[str]:
    """Dotted paths of all fields below a node."""
    for child, _ in nodes_of(node, path):
        yield child


def nodes_of(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    inner = node.get("items") or node
    values = inner.get("additionalProperties")
    inner = values if isinstance(values, dict) else inner
    for name, child in inner.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        yield place, child
        yield from nodes_of(child, place)


def fields_in(text: str) -> Iterator[str]:
    """Dotted paths of the fields that `kubectl explain --recursive` lists by indentation."""
    _, _, listing = text.partition("FIELDS:")
    place: list[tuple[int, str]] = []
    for line in listing.splitlines():
        found = re.match(r"( +)(\w+)\t<", line)
        if found:
            depth = len(found[1])
            place = [*(step for step in place if step[0] < depth), (depth, found[2])]
            yield ".".join(name for _, name in place)


def test_an_older_servers_objects_get_the_defaults_of_newer_fields(
    bed: Bed, kubernetes_client: Any, own_group: str, shared_namespace: str, tmp_path: Path
) -> None:
    def without_the_field(document: dict[str, Any]) -> None:
        (version,) = document["spec"]["versions"]
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        checkpoint = spec["properties"]["checkpoint"]["properties"]
        assert checkpoint.pop("keepLast")["default"] == 2

    old = crd_document(group=own_group, change=without_the_field)
    bed.kubectl("apply", "--server-side", write(tmp_path / "old.yaml", old))
    wait_until_served(kubernetes_client, group=own_group)
    jobs = StoredJobs(kubernetes_client, shared_namespace, group=own_group)
    document = {
        "kind": "PretrainJob",
        "metadata": {"name": "older"},
        "spec": {
            "corpus": {"sources": [{"uri": "corpus/a.jsonl"}]},
            "model": {"architecture": "bert"},
        },
    }
    wait_for("the CRD's objects", lambda: created(jobs, document))
    assert "keepLast" not in jobs.read("older")["spec"]["checkpoint"]

    new = crd_document(group=own_group)
    bed.kubectl("apply", "--server-side", write(tmp_path / "new.yaml", new))

    def read() -> Any:
        return jobs.read("older")["spec"]["checkpoint"].get("keepLast")

    assert wait_for("the newer schema", read) == 2


def created(jobs: StoredJobs, document: dict[str, Any]) -> bool:
    return jobs.create(document)["metadata"]["name"] == document["metadata"]["name"]
