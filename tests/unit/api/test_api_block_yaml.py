"""The YAML writer: what is read back is what was written."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_api.block_yaml import block_yaml

scalars = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
values = st.recursive(
    scalars.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda children: st.lists(children) | st.dictionaries(st.text(max_size=50), children),
    max_leaves=20,
)


@settings(deadline=None, max_examples=50)
@given(values)
def test_what_is_written_reads_back_equal(value: Any) -> None:
    assert yaml.safe_load(block_yaml(value)) == value


@pytest.mark.parametrize(
    "text", ["no", "Off", "1", "1.5", "", " a", "a: b", "a #b", "2030-01-01", "~", "- a", "'"]
)
def test_text_that_yaml_takes_for_something_else_is_quoted(text: str) -> None:
    assert block_yaml({"key": text}) == f'key: "{text}"\n'


def test_objects_in_lists_begin_beside_the_dash() -> None:
    assert block_yaml({"a": [{"b": 1, "c": [2]}]}) == "a:\n  - b: 1\n    c:\n      - 2\n"


def test_a_small_number_keeps_its_point_beside_the_exponent() -> None:
    assert block_yaml(1e-12) == "1.0e-12\n"
