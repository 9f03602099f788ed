"""Reports fit into a termination message."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_api.reports import (
    TERMINATION_MESSAGE_LIMIT,
    Artifact,
    Cause,
    StageReport,
    StageResult,
)
from pretrain_jobs.termination import encode_report

REPORTS = st.builds(
    StageReport,
    stage=st.sampled_from(["tokenizer", "train", "evaluate"]),
    index=st.integers(0, 4095),
    cause=st.none() | st.sampled_from(Cause),
    message=st.text(max_size=5000),
    retryable=st.booleans(),
    mendable=st.booleans(),
    result=st.none()
    | st.builds(
        StageResult,
        slices=st.none() | st.integers(0, 4096),
        counts=st.dictionaries(st.text(max_size=40), st.integers(0, 2**53), max_size=60),
        metrics=st.dictionaries(st.text(max_size=40), st.floats(-1, 1), max_size=60),
        warnings=st.lists(st.text(max_size=400), max_size=10),
    ),
)


@settings(deadline=None, max_examples=50)
@given(REPORTS)
def test_every_report_fits_and_is_read_back_with_its_cause(report: StageReport) -> None:
    data = encode_report(report)

    assert len(data) <= TERMINATION_MESSAGE_LIMIT
    read = StageReport.model_validate_json(data)
    for field in ("stage", "index", "cause", "retryable", "mendable"):
        assert getattr(read, field) == getattr(report, field)
    assert (read.result is None) == (report.result is None)


def test_a_report_that_fits_is_kept_whole() -> None:
    artifacts = [Artifact(stage="train", fingerprint="f" * 16, uri="s3://b/models/f", cached=True)]
    report = StageReport(
        stage="tokenizer",
        attempt=3,
        result=StageResult(artifacts=artifacts, slices=7, warnings=["one"], metrics={"a": 0.5}),
    )

    assert StageReport.model_validate_json(encode_report(report)) == report


def test_a_long_message_loses_its_middle_and_the_result_its_warnings_first() -> None:
    report = StageReport(
        stage="preprocess",
        cause=Cause.DATA_ERROR,
        message="begin " + "词" * 3000 + " end",
        result=StageResult(warnings=["w" * 3000], metrics={"kept": 1.0}, slices=2),
    )

    read = StageReport.model_validate_json(encode_report(report))

    assert read.message.startswith("begin 词")
    assert " [...] " in read.message
    assert read.message.endswith("词 end")
    assert read.result == StageResult(metrics={"kept": 1.0}, slices=2)


def test_defaults_are_left_out_so_that_more_fits() -> None:
    data = json.loads(encode_report(StageReport(stage="export")))

    assert data == {"stage": "export"}


def test_a_result_that_cannot_be_cut_to_fit_is_left_out_with_the_reason() -> None:
    uri = "s3://bucket/" + "x" * 1000
    artifacts = [Artifact(stage="train", fingerprint="f" * 16, uri=uri)] * 5

    read = StageReport.model_validate_json(
        encode_report(StageReport(stage="tokenizer", result=StageResult(artifacts=artifacts)))
    )

    assert read.result is None
    assert "shorten spec.storage.uri" in read.message
