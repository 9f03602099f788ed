"""The CustomResourceDefinition: a structural schema made from the pydantic models.

Rules of structural schemas (Kubernetes documentation, "Extend the Kubernetes API with
CustomResourceDefinitions"): no references, a type at every node, no closed objects, no open
bounds, unions only as int-or-string. What cannot be said so becomes a CEL rule.
"""

from __future__ import annotations

from typing import Any

from pretrain_api.base import GROUP, KIND, PLURAL, VERSION
from pretrain_api.bounds import bound_rules
from pretrain_api.presets import layered_paths
from pretrain_api.rules import RULES, CelRule
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.status import PretrainJobStatus
from pretrain_api.tree import Node, tree_of

SHORT_NAME = "ptj"
CATEGORIES = ("all", "pretrain")

LIST_TYPES: dict[str, tuple[str, ...]] = {
    "status.conditions": ("type",),
    "status.stages": ("name",),
    "spec.evaluation.tasks": ("name",),
    "spec.failurePolicy.restarts": ("cause",),
}
"""Lists that are maps by these keys: unique, and merged entry by entry when applied."""

SET_LISTS = frozenset(
    {
        "spec.corpus.cleaning.languages",
        "spec.evaluation.tasks[].metrics",
        "spec.evaluation.tasks[].seeds",
        "spec.export.modelCard.language",
    }
)
"""Lists whose entries are unique; every other list is replaced as a whole."""

_KEPT = (
    *("description", "type", "format", "enum", "pattern", "required"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties"),
)

PRINTER_COLUMNS: tuple[tuple[str, str, str, int], ...] = (
    ("Phase", "string", ".status.phase", 0),
    ("Stage", "string", ".status.stage", 0),
    ("Step", "integer", ".status.training.step", 0),
    ("Loss", "number", ".status.training.loss", 0),
    ("Tok/s", "number", ".status.training.tokensPerSecond", 0),
    ("ETA", "string", ".status.eta", 0),
    ("Restarts", "integer", ".status.restartCount", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Workers", "integer", ".status.workers.ready", 1),
    ("Steps", "integer", ".status.training.maxSteps", 1),
    ("Checkpoint", "integer", ".status.checkpoint.step", 1),
    ("Queue", "string", ".spec.scheduling.queueName", 1),
    ("Blocked", "string", ".status.blockedBy", 1),
)
"""Name, type, path and priority (1 shows with -o wide) of what `kubectl get` prints."""


def custom_resource_definition() -> dict[str, Any]:
    """Give the manifest of the CRD."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": [SHORT_NAME],
                "categories": list(CATEGORIES),
            },
            "versions": [_version()],
        },
    }


def _version() -> dict[str, Any]:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(*column) for column in PRINTER_COLUMNS],
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.workers.replicas",
                "statusReplicasPath": ".status.workers.ready",
                "labelSelectorPath": ".status.workers.selector",
            },
        },
        "schema": {"openAPIV3Schema": open_api_schema()},
    }


def _column(name: str, kind: str, path: str, priority: int) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": kind, "jsonPath": path}
    return {**column, "priority": priority} if priority else column


def all_rules() -> tuple[CelRule, ...]:
    """Give every CEL rule of the CRD, with its examples."""
    return (*RULES, *bound_rules(tree_of(PretrainJobSpec)))


def open_api_schema() -> Node:
    """Give the structural schema of the whole object."""
    rules: dict[str, list[CelRule]] = {}
    for rule in all_rules():
        rules.setdefault(rule.path, []).append(rule)
    compiler = _Compiler(rules, {f"spec.{'.'.join(path)}" for path in layered_paths()})
    root: Node = {
        "description": "From raw text to an evaluated, exported language model, in one object.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": compiler.structural(tree_of(PretrainJobSpec), "spec"),
            "status": compiler.structural(tree_of(PretrainJobStatus), "status"),
        },
    }
    return compiler.ruled(root, "")


class _Compiler:
    """Turns nodes of a tree into structural ones, given the rules and the layered fields."""

    def __init__(self, rules: dict[str, list[CelRule]], layered: set[str]) -> None:
        self.rules = rules
        self.layered = layered

    def structural(self, node: Node, path: str) -> Node:
        """Give one node and all below it."""
        if "anyOf" in node:
            return self.ruled(_union(node), path)
        out = {key: node[key] for key in _KEPT if key in node}
        out |= _closed_bounds(node) | _integer_format(node) | self._default(node, path)
        out = {key: _as_stored(value) for key, value in out.items()}
        if node.get("properties"):
            out["properties"] = {
                name: self.structural(child, f"{path}.{name}")
                for name, child in node["properties"].items()
            }
        if "items" in node:
            out["items"] = self.structural(node["items"], f"{path}[]")
            out |= _list_type(path)
        return self.ruled(out | self._values(node, path), path)

    def ruled(self, node: Node, path: str) -> Node:
        """Add the rules of a place."""
        rules = [_validation(rule) for rule in self.rules.get(path, [])]
        return {**node, "x-kubernetes-validations": rules} if rules else node

    def _values(self, node: Node, path: str) -> Node:
        values = node.get("additionalProperties")
        if values is True:
            return {"x-kubernetes-preserve-unknown-fields": True}
        if isinstance(values, dict):
            return {"additionalProperties": self.structural(values, f"{path}{{}}")}
        return {}

    def _default(self, node: Node, path: str) -> Node:
        """Give the default that an API server may write: none in status, none of layers.

        An object's is empty, so that the defaults of its fields are filled in when a user leaves
        the object out; empty lists and maps say nothing and stay away.
        """
        default = node.get("default")
        if path.startswith("status") or path in self.layered or default is None:
            return {}
        if node["type"] == "object":
            return {"default": {}} if "properties" in node else {}
        return {} if default == [] else {"default": default}


def _validation(rule: CelRule) -> Node:
    """A rule as the schema has it; `format` in a message needs an API server of 1.30 or newer."""
    made = {"messageExpression": rule.message_expression} if rule.message_expression else {}
    return {"rule": rule.rule, "message": rule.message, **made}


def _union(node: Node) -> Node:
    """Give a value of several types: integer or string, else anything."""
    description = {key: node[key] for key in ("description",) if key in node}
    members = node["anyOf"]
    if sorted(member["type"] for member in members) != ["integer", "string"]:
        return {**description, "x-kubernetes-preserve-unknown-fields": True}
    bounds = {k: m[k] for m in members for k in ("minimum", "maxLength", "pattern") if k in m}
    either = [{"type": "integer"}, {"type": "string"}]
    return {**description, "anyOf": either, "x-kubernetes-int-or-string": True, **bounds}


def _closed_bounds(node: Node) -> Node:
    pairs = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
    return {closed: node[open_] for open_, closed in pairs if open_ in node}


def _as_stored(value: Any) -> Any:
    """Write a number as an API server does, so that what is applied equals what is stored.

    Tools that compare the two would see a difference for ever otherwise.
    """
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _integer_format(node: Node) -> Node:
    return {"format": "int64"} if node.get("type") == "integer" else {}


def _list_type(path: str) -> Node:
    if path in LIST_TYPES:
        keys = list(LIST_TYPES[path])
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
    return {"x-kubernetes-list-type": "set" if path in SET_LISTS else "atomic"}
