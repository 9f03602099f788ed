"""The patch that turns a stored status into the planned one, and nothing else."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.status import Phase, PretrainJobStatus, StageStatus, WorkersStatus
from pretrain_operator.status_patch import (
    merge_patch,
    tells_news,
    unstored_fields,
    wire_status,
)

scalars = st.one_of(st.integers(-5, 5), st.text("ab", max_size=2), st.booleans())
documents: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.dictionaries(st.sampled_from("xyz"), scalars, max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from("xyz"), st.one_of(scalars, inner, st.lists(inner, max_size=2)), max_size=3
    ),
    max_leaves=10,
)


def applied(old: Any, patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7396, section 2."""
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = applied(result.get(name), value)
        else:
            result[name] = value
    return result


@given(documents, documents)
def test_the_patch_makes_one_status_of_the_other(before, after):
    old, new = {"goodput": before}, {"goodput": after}
    assert applied(old, merge_patch(old, new)) == new


@given(documents)
def test_equal_statuses_need_no_patch(document):
    assert merge_patch({"goodput": document}, {"goodput": document}) == {}


def test_fields_of_a_newer_version_are_left_alone_and_old_ones_that_ended_are_removed():
    stored = {"phase": "Pending", "queue": {"position": 3}, "exportUri": "s3://a"}
    assert merge_patch(stored, {"phase": "Training"}) == {"phase": "Training", "exportUri": None}


def test_a_first_status_is_sent_whole():
    wire = wire_status(PretrainJobStatus())
    assert merge_patch({}, wire) == wire
    assert wire["phase"] == "Pending"


def test_fields_that_the_server_dropped_are_named():
    sent = {"phase": "Pending", "restartCount": 2, "training": None, "metrics": {}}
    assert unstored_fields(sent, {"phase": "Pending"}) == ["restartCount"]


def test_figures_are_no_news_and_a_state_is():
    before = PretrainJobStatus(stages=[StageStatus(name="train", state="Running")])
    figures = before.model_copy(
        update={"workers": WorkersStatus(ready=3), "blocked_by": "Rank 1: waiting"}
    )
    failed = before.model_copy(update={"phase": Phase.FAILED})
    retried = before.model_copy(update={"stages": [StageStatus(name="train", attempt=1)]})
    assert not tells_news(before, figures)
    assert tells_news(before, failed)
    assert tells_news(before, retried)
