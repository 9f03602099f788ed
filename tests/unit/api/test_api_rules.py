"""The CEL rules: each is where it belongs, guarded, and true to its examples.

Whether the examples are judged as they say is for an API server; here the models judge them too.
"""

import re
from typing import Any

import pytest
from pretrain_api.documents import validate_object
from pretrain_api.errors import InvalidObjectError
from pretrain_api.names import LONGEST_JOB_NAME
from pretrain_api.rules import IMMUTABLE_RULES, NAME, CelRule
from pretrain_api.schema import all_rules, open_api_schema
from pydantic import BaseModel

RULES = all_rules()
SCHEMA = open_api_schema()
CORE_OF_CEL = {"has", "size", "filter", "all", "exists", "matches", "startsWith", "endsWith"}
"""Macros and functions of the language itself, which every API server with rules knows (1.25)."""

OF_MESSAGES = {"has", "string", "format"}
"""`format` may be in a CRD from 1.30 on."""

KEYS_OF_RULES = {"rule", "message", "messageExpression"}
"""Of a rule in the schema; later servers know more."""

MADE = [rule for rule in RULES if rule.message_expression]

JUDGED_ALONE = [rule for rule in RULES if rule.refused.before is None]


def rule_id(rule: CelRule) -> str:
    return f"{rule.path}: {rule.rule[:60]}"


def node_of(path: str) -> dict[str, Any]:
    node: dict[str, Any] = SCHEMA
    for part in filter(None, path.split(".")):
        node = node["properties"][part.removesuffix("[]")]
        node = node["items"] if part.endswith("[]") else node
    return node


@pytest.mark.parametrize("rule", RULES, ids=rule_id)
def test_a_rule_is_in_the_schema_at_its_path(rule: CelRule) -> None:
    found = node_of(rule.path)["x-kubernetes-validations"]
    assert [each["message"] for each in found if each["rule"] == rule.rule] == [rule.message]


@pytest.mark.parametrize("rule", RULES, ids=rule_id)
def test_a_rule_needs_no_newer_api_server_than_the_oldest_one(rule: CelRule) -> None:
    assert set(re.findall(r"([A-Za-z]\w*)\(", rule.rule)) <= CORE_OF_CEL
    for found in node_of(rule.path)["x-kubernetes-validations"]:
        assert found.keys() <= KEYS_OF_RULES


@pytest.mark.parametrize("rule", MADE, ids=rule_id)
def test_a_made_message_is_in_the_schema_and_needs_nothing_newer_either(rule: CelRule) -> None:
    found = node_of(rule.path)["x-kubernetes-validations"]
    functions = set(re.findall(r"([A-Za-z]\w*)\(", re.sub(r"'[^']*'", "", rule.message_expression)))
    assert {
        "rule": rule.rule,
        "message": rule.message,
        "messageExpression": rule.message_expression,
    } in found
    assert functions <= OF_MESSAGES


@pytest.mark.parametrize("rule", MADE, ids=rule_id)
def test_a_made_message_adds_up_no_strings_which_no_budget_of_a_rule_allows(rule: CelRule) -> None:
    assert not re.search(r"'\s*\+|\+\s*'|\+\s*string\(", rule.message_expression)


@pytest.mark.parametrize("rule", MADE, ids=rule_id)
def test_a_made_message_says_what_validate_says(rule: CelRule) -> None:
    with pytest.raises(InvalidObjectError) as error:
        validate_object(rule.refused.document())
    assert [str(problem).removeprefix("spec.") for problem in error.value.problems] == [rule.told]


@pytest.mark.parametrize("rule", RULES, ids=rule_id)
def test_a_rule_reads_only_fields_that_are_there_or_asked_for(rule: CelRule) -> None:
    text = f"{rule.rule} {rule.message_expression}"
    reads = set(re.findall(r"(?<!has\()\bself\.([A-Za-z.]+)(?!\w*\()", text))
    asked = set(re.findall(r"has\(self\.([A-Za-z.]+)\)", text))
    for read in reads - {"metadata.name.matches", "metadata.name"}:
        parts = read.removesuffix(".startsWith").split(".")
        node = node_of(rule.path)
        for depth, name in enumerate(parts, start=1):
            present = name in node.get("required", []) or "default" in node["properties"][name]
            assert present or ".".join(parts[:depth]) in asked, read
            node = node["properties"][name]


@pytest.mark.parametrize("rule", [r for r in RULES if " % " in r.rule], ids=rule_id)
def test_a_rule_divides_by_no_count_that_may_be_zero(rule: CelRule) -> None:
    divisor = rule.rule.partition(" % ")[2]
    fields = set(re.findall(r"(?<!has\()self\.[A-Za-z.]+", divisor))
    assert fields
    for field in fields:
        assert f"{field} < 1" in rule.rule


@pytest.mark.parametrize("rule", RULES, ids=rule_id)
def test_the_accepted_example_is_a_job_in_itself(rule: CelRule) -> None:
    for document in (rule.accepted.document_before(), rule.accepted.document()):
        assert document is None or problem_kinds(document) <= {"not supported"}


@pytest.mark.parametrize("rule", JUDGED_ALONE, ids=rule_id)
def test_the_models_refuse_the_refused_example_too(rule: CelRule) -> None:
    assert "wrong" in problem_kinds(rule.refused.document())


@pytest.mark.parametrize("rule", IMMUTABLE_RULES, ids=rule_id)
def test_an_immutable_field_changes_in_the_refused_example_and_stays_in_the_accepted(
    rule: CelRule,
) -> None:
    field = rule.message.partition(" ")[0]
    place = [*rule.path.split(".")[1:], field]

    def value(document: dict[str, object] | None) -> object:
        node: object = (document or {})["spec"]
        for name in place:
            node = node.get(name) if isinstance(node, dict) else None
        return node

    assert rule.path.startswith("spec")
    assert value(rule.accepted.document()) == value(rule.accepted.document_before()) is not None
    assert value(rule.refused.document()) != value(rule.refused.document_before())


def test_an_immutable_field_may_neither_appear_nor_go() -> None:
    for rule in IMMUTABLE_RULES:
        assert re.match(r"has\(self\.(\w+)\) == has\(oldSelf\.\1\) && ", rule.rule)


def test_what_decides_an_artifact_is_immutable_and_what_keeps_a_job_going_is_not() -> None:
    fixed = {(rule.path, rule.message.partition(" ")[0]) for rule in IMMUTABLE_RULES}
    decided = {"corpus", "tokenizer", "objective", "model", "training"}
    assert {("spec", section) for section in decided} <= fixed
    open_fields = [
        ("spec", "suspend"),
        ("spec.workers", "replicas"),
        ("spec.workers", "podTemplate"),
        ("spec.workers", "image"),
        ("spec.checkpoint", "keepLast"),
        ("spec", "failurePolicy"),
    ]
    assert fixed.isdisjoint(open_fields)


def test_the_longest_name_is_accepted_and_one_character_more_refused() -> None:
    longest_child = f"{NAME.accepted.name}-abcde-preprocess-999-99999"
    assert len(NAME.accepted.name) == LONGEST_JOB_NAME
    assert len(longest_child) == 63
    assert len(NAME.refused.name) == LONGEST_JOB_NAME + 1
    assert str(LONGEST_JOB_NAME) in NAME.message


def problem_kinds(document: dict[str, object]) -> set[str]:
    """Tell what is found in a document: nothing, something wrong, something not run yet."""
    try:
        assert isinstance(validate_object(document), BaseModel)
    except InvalidObjectError as error:
        texts = [problem.message for problem in error.problems]
        return {"not supported" if "is not supported: " in text else "wrong" for text in texts}
    return set()
