"""Making a stage's report fit into a termination message: pure functions of the report."""

from __future__ import annotations

from pretrain_api.reports import TERMINATION_MESSAGE_LIMIT, StageReport, StageResult

_MESSAGE_LIMIT = 2048
"""Bytes of the message that survive when a report is too long."""

_TOO_LONG = "the result does not fit into a termination message: shorten spec.storage.uri"


def encode_report(report: StageReport, *, limit: int = TERMINATION_MESSAGE_LIMIT) -> bytes:
    """The report as JSON of at most `limit` bytes, defaults left out.

    What does not fit goes in this order: the middle of a long message, warnings, metrics, counts,
    and the whole result.
    """
    candidates = [report, _shorten_message(report)]
    for field in ("warnings", "metrics", "counts"):
        candidates.append(_without(candidates[-1], field))
    encoded = (_encode(candidate) for candidate in candidates)
    return next((data for data in encoded if len(data) <= limit), _encode(_bare(report)))


def _encode(report: StageReport) -> bytes:
    return report.model_dump_json(by_alias=True, exclude_defaults=True).encode()


def _shorten_message(report: StageReport) -> StageReport:
    data = report.message.encode()
    if len(data) <= _MESSAGE_LIMIT:
        return report
    half = _MESSAGE_LIMIT // 2
    head, tail = data[:half].decode(errors="ignore"), data[-half:].decode(errors="ignore")
    return report.model_copy(update={"message": f"{head} [...] {tail}"})


def _bare(report: StageReport) -> StageReport:
    """The cause alone, with the reason why there is no more."""
    message = report.message[:100] or _TOO_LONG
    return report.model_copy(update={"message": message, "result": None})


def _without(report: StageReport, field: str) -> StageReport:
    if report.result is None:
        return report
    empty = StageResult.model_fields[field].get_default()
    result = report.result.model_copy(update={field: empty})
    return report.model_copy(update={"result": result})
