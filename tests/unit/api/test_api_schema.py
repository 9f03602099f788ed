"""The CRD's schema is structural, bounded, and defaults only what no preset decides."""

from collections.abc import Iterator
from typing import Any

import pytest
from pretrain_api.presets import layered_paths
from pretrain_api.schema import custom_resource_definition, open_api_schema

Node = dict[str, Any]
Place = tuple[str, Node]

FORBIDDEN = {
    *("$ref", "const", "exclusiveMinimum", "exclusiveMaximum", "allOf", "oneOf", "not"),
    *("nullable", "uniqueItems", "title", "examples", "definitions", "$defs"),
}


def walk(node: Node, path: str = "") -> Iterator[Place]:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    if "items" in node:
        yield from walk(node["items"], f"{path}[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from walk(node["additionalProperties"], f"{path}{{}}")


def at(node: Node, path: str) -> Node:
    for name in path.split("."):
        node = node["properties"][name]
    return node


SCHEMA = open_api_schema()
NODES = list(walk(SCHEMA))
SPEC_NODES = [(path, node) for path, node in NODES if path.startswith(".spec")]


def is_open(node: Node) -> bool:
    return "x-kubernetes-preserve-unknown-fields" in node


def test_every_node_has_a_type_or_is_one_of_the_two_exceptions() -> None:
    untyped = [path for path, node in NODES if "type" not in node]
    assert untyped
    for path, node in NODES:
        assert "type" in node or is_open(node) or "x-kubernetes-int-or-string" in node, path


def test_no_node_has_a_keyword_that_structural_schemas_forbid() -> None:
    assert [(path, key) for path, node in NODES for key in FORBIDDEN & node.keys()] == []


def test_no_object_is_closed_and_none_has_properties_beside_a_map() -> None:
    for path, node in NODES:
        assert node.get("additionalProperties") not in (True, False), path
        assert not {"properties", "additionalProperties"} <= node.keys(), path


def test_unions_are_integer_or_string_as_kubernetes_writes_them() -> None:
    unions = [(path, node) for path, node in NODES if "anyOf" in node]
    assert ".spec.workers.resources.limits{}" in dict(unions)
    for path, node in unions:
        assert node["x-kubernetes-int-or-string"] is True, path
        assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}], path


def test_values_of_a_model_configuration_may_be_of_any_type() -> None:
    values = at(SCHEMA, "spec.model.config")["additionalProperties"]
    assert values == {"x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize("section", ["preprocess", "workers"])
def test_pod_templates_keep_fields_that_only_pods_know(section: str) -> None:
    template = at(SCHEMA, f"spec.{section}.podTemplate")
    assert template["x-kubernetes-preserve-unknown-fields"] is True
    assert "properties" not in template


def test_every_text_list_and_map_of_the_spec_has_a_maximum() -> None:
    bound = {"string": "maxLength", "array": "maxItems"}
    for path, node in SPEC_NODES:
        key = bound.get(node.get("type", ""))
        if key and "enum" not in node:
            assert key in node, path
        if "additionalProperties" in node:
            assert "maxProperties" in node, path


def test_required_fields_exist_and_have_no_default() -> None:
    for path, node in NODES:
        for name in node.get("required", []):
            assert "default" not in node["properties"][name], f"{path}.{name}"


def test_every_list_says_how_it_is_merged() -> None:
    for path, node in NODES:
        assert ("x-kubernetes-list-type" in node) == (node.get("type") == "array"), path


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("status.conditions", "type"),
        ("status.stages", "name"),
        ("spec.evaluation.tasks", "name"),
        ("spec.failurePolicy.restarts", "cause"),
    ],
)
def test_named_entries_are_merged_by_their_required_key(path: str, key: str) -> None:
    entries = at(SCHEMA, path)
    assert entries["x-kubernetes-list-type"] == "map"
    assert entries["x-kubernetes-list-map-keys"] == [key]
    assert key in entries["items"]["required"]


def test_no_default_is_written_where_a_preset_or_architecture_decides() -> None:
    for path in layered_paths():
        node = SCHEMA["properties"]["spec"]
        for name in path:
            node = node.get("properties", {}).get(name, {})
        assert "default" not in node, path


def test_sections_are_filled_in_so_that_scale_finds_the_replicas() -> None:
    workers = at(SCHEMA, "spec.workers")
    assert workers["default"] == {}
    assert workers["properties"]["replicas"]["default"] == 1


def test_members_of_unions_are_never_filled_in() -> None:
    for path in ("spec.objective.mlm", "spec.tokenizer.train", "spec.corpus.dataset"):
        assert "default" not in at(SCHEMA, path)


def test_defaults_of_objects_are_empty_and_status_has_none() -> None:
    for path, node in NODES:
        if "default" in node:
            assert not path.startswith(".status"), path
            assert node["type"] != "object" or node["default"] == {}, path


def test_open_bounds_become_closed_ones_with_a_rule() -> None:
    rate = at(SCHEMA, "spec.training.optimizer.learningRate")
    assert rate["minimum"] == 0
    assert rate["x-kubernetes-validations"] == [
        {"rule": "self > 0.0", "message": "must be more than 0"}
    ]


def test_numbers_are_written_as_an_api_server_writes_them_back() -> None:
    for path, node in NODES:
        for key in ("minimum", "maximum", "default"):
            value = node.get(key, 0)
            assert not (isinstance(value, float) and value.is_integer()), f"{path}: {key}"
        assert node.get("properties") != {}, path


def test_the_names_are_those_that_users_type() -> None:
    crd = custom_resource_definition()
    assert crd["metadata"]["name"] == "pretrainjobs.pretrain.dev"
    assert crd["spec"]["scope"] == "Namespaced"
    assert crd["spec"]["names"] == {
        "kind": "PretrainJob",
        "listKind": "PretrainJobList",
        "plural": "pretrainjobs",
        "singular": "pretrainjob",
        "shortNames": ["ptj"],
        "categories": ["all", "pretrain"],
    }


def test_status_and_scale_are_subresources_whose_paths_exist() -> None:
    (version,) = custom_resource_definition()["spec"]["versions"]
    scale = version["subresources"]["scale"]
    assert version["subresources"]["status"] == {}
    assert scale["specReplicasPath"] == ".spec.workers.replicas"
    for path in scale.values():
        assert at(SCHEMA, path.lstrip("."))["type"] in {"integer", "string"}


def test_printed_columns_have_the_type_of_their_field() -> None:
    (version,) = custom_resource_definition()["spec"]["versions"]
    columns = {column["name"]: column for column in version["additionalPrinterColumns"]}
    narrow = [name for name, column in columns.items() if "priority" not in column]
    wide = [name for name, column in columns.items() if column.get("priority") == 1]
    assert narrow == ["Phase", "Stage", "Step", "Loss", "Tok/s", "ETA", "Restarts", "Age"]
    assert wide == ["Workers", "Steps", "Checkpoint", "Queue", "Blocked"]
    for name in {*columns} - {"Age"}:
        field = at(SCHEMA, columns[name]["jsonPath"].lstrip("."))
        assert field["type"] == columns[name]["type"], name
