"""YAML is read as kubectl reads it, with the place of every field and of every problem."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrainctl import yaml_positions
from pretrainctl.yaml_positions import (
    FieldPath,
    NotYamlError,
    Position,
    YamlDocument,
    decode_text,
    read_documents,
)
from pretrainctl.yaml_scalars import dump_yaml


def read(text: str) -> YamlDocument:
    (document,) = read_documents(text)
    return document


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("1e-3", 1e-3),
        ("2E5", 2e5),
        ("1.5", 1.5),
        (".5", 0.5),
        ("12", 12),
        ("-7", -7),
        ("0x1F", 31),
        ("1_000", 1000),
        ("yes", True),
        ("off", False),
        ("true", True),
        ("null", None),
        ("~", None),
        ("", None),
        ("2026-11-29", "2026-11-29"),
        ("1:30", "1:30"),
        ("1Gi", "1Gi"),
        ("'12'", "12"),
        ("酒店", "酒店"),
    ],
)
def test_a_scalar_is_read_as_an_api_server_would_get_it_from_kubectl(
    scalar: str, value: Any
) -> None:
    found = read(f"key: {scalar}").data["key"]
    assert (type(found), found) == (type(value), value)


def test_every_field_and_list_item_has_the_position_where_it_begins() -> None:
    document = read("spec:\n  sources:\n    - uri: a\n    - {uri: b, weight: 2}\n")
    expected: dict[FieldPath, Position] = {
        (): Position(1, 1),
        ("spec",): Position(1, 1),
        ("spec", "sources"): Position(2, 3),
        ("spec", "sources", 0): Position(3, 7),
        ("spec", "sources", 0, "uri"): Position(3, 7),
        ("spec", "sources", 1): Position(4, 7),
        ("spec", "sources", 1, "uri"): Position(4, 8),
        ("spec", "sources", 1, "weight"): Position(4, 16),
    }
    assert document.positions == expected


def test_a_field_that_is_missing_has_the_position_of_the_nearest_parent() -> None:
    document = read("spec:\n  model:\n    preset: gpt2\n")
    assert document.position(("spec", "model", "config", "hidden")) == Position(2, 3)
    assert document.position(("status",)) == Position(1, 1)


def test_each_duplicate_key_is_a_problem_and_the_first_value_stays() -> None:
    document = read("a: 1\nb: {c: 1, c: 2}\na: 3\n")
    assert document.data == {"a": 1, "b": {"c": 1}}
    assert [(item.position, item.path, item.message) for item in document.problems] == [
        (Position(2, 11), ("b", "c"), "duplicate key; the first is in line 2"),
        (Position(3, 1), ("a",), "duplicate key; the first is in line 1"),
    ]


@pytest.mark.parametrize("key", ["1", "on", "2.5", "null", "[a]"])
def test_a_key_that_json_cannot_have_is_a_problem(key: str) -> None:
    document = read(f"labels:\n  ? {key}\n  : x\n")
    (problem,) = document.problems
    assert problem.position == Position(2, 5)
    assert "quotation marks" in problem.message
    assert document.data == {"labels": {}}


def test_a_tag_that_json_cannot_have_is_a_problem() -> None:
    document = read("a: !!binary aGk=\nb: !secret x\n")
    assert [item.message for item in document.problems] == [
        "the tag !!binary cannot be used here",
        "the tag !secret cannot be used here",
    ]


@pytest.mark.parametrize("text", ["!!bool maybe", "!!int ''", "!!float ''", "!!int x"])
def test_a_tag_whose_value_is_none_of_its_kind_is_a_problem(text: str) -> None:
    (document,) = read_documents(f"a: {text}")
    assert document.data == {"a": None}
    assert [str(problem.path[0]) for problem in document.problems] == ["a"]


@pytest.mark.parametrize("text", ["[" * 3000, "{a: " * 3000, "[" * 200 + "]" * 200, "- " * 3000])
def test_a_document_that_is_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(NotYamlError, match="nested more than 100 levels"):
        list(read_documents(f"a:\n  {text}"))


@pytest.mark.parametrize("text", ["[" * 100 + "]" * 100, "- " * 99 + "b"])
def test_a_document_may_be_nested_a_hundred_levels(text: str) -> None:
    assert not read(f"a:\n  {text}").problems


def test_a_character_that_is_escaped_as_two_halves_is_one_and_half_of_one_is_a_problem() -> None:
    assert read(r'a: "\ud83d\ude00"').data == {"a": "😀"}
    (problem,) = read(r'a: "\ud83d"').problems
    assert "not a value of type str" in problem.message


def test_anchors_and_merge_keys_are_expanded_and_own_keys_win() -> None:
    document = read("base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\nsame: *b\n")
    assert document.data["more"] == {"x": 1, "y": 3}
    assert document.data["same"] == {"x": 1, "y": 2}
    assert not document.problems


def test_an_alias_inside_of_itself_is_refused() -> None:
    with pytest.raises(NotYamlError, match="inside of what it refers to"):
        read("a: &a [*a]\n")


def test_a_document_that_expands_to_very_many_values_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(yaml_positions, "MAX_NODES", 5000)
    levels = "\n".join(f"k{n + 1}: &k{n + 1} [{', '.join([f'*k{n}'] * 9)}]" for n in range(8))
    with pytest.raises(NotYamlError, match="more than 5,000 values"):
        read(f"k0: &k0 [x]\n{levels}\n")


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a: [1, 2\nb: 3\n", Position(2, 2)),
        ("a: 1\n\tb: 2\n", Position(2, 1)),
        ("a: b: c\n", Position(1, 5)),
        ("ok: 1\nbad: \x07\n", Position(2, 6)),
        ("a: *nothing\n", Position(1, 4)),
    ],
)
def test_text_that_is_not_yaml_says_where(text: str, position: Position) -> None:
    with pytest.raises(NotYamlError, match="not YAML") as raised:
        list(read_documents(text))
    assert raised.value.position == position


def test_bytes_that_are_not_utf8_say_where() -> None:
    with pytest.raises(NotYamlError, match="byte 0xff") as raised:
        decode_text("a: 1\nb: é".encode() + b"\xff")
    assert raised.value.position == Position(2, 6)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert decode_text(b"\xef\xbb\xbfa: 1") == "a: 1"


def test_empty_documents_are_left_out_and_the_others_keep_their_lines() -> None:
    documents = list(read_documents("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n"))
    assert [item.data for item in documents] == [{"a": 1}, {"b": 2}]
    assert documents[1].position(("b",)) == Position(7, 1)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["C"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcxyz", min_size=1), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abcxyz", min_size=1), json_values, min_size=1, max_size=4))
def test_json_and_yaml_of_our_own_are_read_back_as_they_were(data: dict[str, Any]) -> None:
    assert read(json.dumps(data)).data == data
    assert read(dump_yaml([data])).data == data
