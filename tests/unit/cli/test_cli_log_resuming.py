"""A log that is followed has each line once, however often its stream is cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_operator.observe import PodFacts
from pretrain_testing.raw_children import raw_pod, terminated
from pretrainctl.cluster.access import CutError, MissingError
from pretrainctl.cluster.log_resuming import PATIENCE, PATIENCE_AT_THE_END, GrowingLog
from pretrainctl.errors import CommandError, UnreachableError

START = datetime(2026, 1, 1, tzinfo=UTC)
RUNNING = raw_pod()
DONE = raw_pod(phase="Succeeded", state=terminated(0))
End = Literal["closed", "cut", "refused", "gone"]
Line = tuple[float, str]
"""Seconds since the start, and a text."""


@dataclass(frozen=True)
class Read:
    """What one request sees: the first `written` lines, up to `limit` bytes, and how it ends."""

    written: int
    limit: int | None = None
    end: End = "closed"


@dataclass
class Kubelet:
    """A log that grows with each read; the last read sees all of it, of a pod that has ended."""

    log: Sequence[Line]
    reads: list[Read] = field(default_factory=list)
    pods: list[dict[str, Any]] = field(default_factory=list)
    queries: list[Mapping[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ends_line: bool = True

    def lines(self, _path: str, query: Mapping[str, Any]) -> Iterator[str]:
        self.queries.append(query)
        read = self.reads.pop(0) if self.reads else Read(len(self.log))
        if read.end == "refused":
            raise UnreachableError("the kubelet does not answer")
        if read.end == "gone":
            raise MissingError("no such pod", is_kind=False)
        yield from (
            self._text(read, query)
            .encode()[: read.limit]
            .decode(errors="ignore")
            .splitlines(keepends=True)
        )
        if read.end == "cut":
            raise CutError("the connection was closed")

    def look(self) -> PodFacts | None:
        later = DONE if not self.reads else RUNNING
        return PodFacts.of(self.pods.pop(0) if self.pods else later)

    def follow(self, tail: int | None = None) -> list[str]:
        cluster: Any = self
        log = GrowingLog(
            cluster=cluster,
            path="/log",
            container="main",
            tail=tail,
            look=self.look,
            note=self.notes.append,
            sleep=lambda: None,
        )
        return list(log.lines())

    def _text(self, read: Read, query: Mapping[str, Any]) -> str:
        since = datetime.fromisoformat(query.get("sinceTime", START.isoformat()))
        shown = [stamped(line) for line in self.log[: read.written] if moment(line) >= since]
        text = "".join(shown[-query["tailLines"] :] if "tailLines" in query else shown)
        return text if self.ends_line else text.removesuffix("\n")


def moment(line: Line) -> datetime:
    return START + timedelta(seconds=line[0])


def stamped(line: Line) -> str:
    at = moment(line)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06d}000Z {line[1]}\n"


def texts(log: Sequence[Line]) -> list[str]:
    return [text for _, text in log]


LOG: list[Line] = [(1, "a"), (1, "a"), (1.2, ""), (1.5, "b"), (9, "c"), (9, "c")]


@pytest.mark.parametrize("end", ["closed", "cut"])
@pytest.mark.parametrize("limit", [None, 0, 10, 32, 70])
def test_a_stream_that_ends_early_is_taken_up_where_it_ended(limit: int | None, end: End) -> None:
    kubelet = Kubelet(LOG, [Read(4, limit, end), Read(5)])

    assert kubelet.follow() == texts(LOG)
    assert kubelet.notes == []


def test_a_log_is_read_again_from_its_last_seconds_only() -> None:
    kubelet = Kubelet(LOG, [Read(6, end="cut")])

    kubelet.follow()

    assert kubelet.queries[0].get("sinceTime") is None
    assert kubelet.queries[1]["sinceTime"] == "2026-01-01T00:00:08Z"


@st.composite
def logs(draw: st.DrawFn) -> list[Line]:
    """Lines of two streams, out of order by less than a second, some of them alike."""
    at, log = 0.0, []
    for _ in range(draw(st.integers(0, 12))):
        at += draw(st.sampled_from([0.0, 0.001, 0.4, 1.0, 30.0]))
        late = draw(st.sampled_from([0.0, 0.0, 0.9]))
        log.append((1 + max(0.0, at - late), draw(st.sampled_from(["", "x", "x y", "损失 é"]))))
    return log


@st.composite
def reads_of(draw: st.DrawFn, log: list[Line]) -> list[Read]:
    """Requests that see ever more of a log, and end anywhere and anyhow."""
    ends: st.SearchStrategy[End] = st.sampled_from(["closed", "cut", "refused"])
    reads, written = [], 0
    for _ in range(draw(st.integers(0, 6))):
        written = draw(st.integers(written, len(log)))
        reads.append(Read(written, draw(st.none() | st.integers(0, 200)), draw(ends)))
    return reads


@given(logs(), st.data(), st.booleans())
def test_each_line_comes_once_and_in_order_wherever_streams_are_cut(
    log: list[Line], data: st.DataObject, ends_line: bool
) -> None:
    kubelet = Kubelet(log, data.draw(reads_of(log)), ends_line=ends_line)

    assert kubelet.follow() == texts(log)


@given(logs(), st.data(), st.integers(1, 12))
def test_after_the_last_lines_that_were_asked_for_each_comes_once_too(
    log: list[Line], data: st.DataObject, tail: int
) -> None:
    log = [(second + place * 7e-6, text) for place, (second, text) in enumerate(log)]
    kubelet = Kubelet(log, data.draw(reads_of(log)))

    lines = kubelet.follow(tail)

    assert lines == texts(log)[len(log) - len(lines) :]
    assert len(lines) >= min(tail, len(log))


def test_the_end_of_a_container_is_seen_though_its_status_comes_late() -> None:
    kubelet = Kubelet(LOG, [Read(6), Read(6)], pods=[RUNNING, RUNNING, DONE])

    assert kubelet.follow() == texts(LOG)


def test_only_the_first_request_asks_for_the_last_lines_alone() -> None:
    kubelet = Kubelet(LOG, [Read(4, end="cut")])

    assert kubelet.follow(tail=1) == ["b", "c", "c"]
    assert [query.get("tailLines") for query in kubelet.queries] == [1, None]


def test_a_pod_that_is_removed_after_its_stream_has_ended_is_no_loss() -> None:
    kubelet = Kubelet(LOG, [Read(6), Read(6, end="gone")], pods=[DONE])

    assert kubelet.follow() == texts(LOG)


def test_a_pod_that_is_removed_after_its_stream_was_cut_is_told() -> None:
    kubelet = Kubelet(LOG, [Read(4, end="cut"), Read(6, end="gone")], pods=[DONE])

    with pytest.raises(MissingError):
        kubelet.follow()


def test_a_kubelet_that_is_away_is_waited_for_and_told_once() -> None:
    away = [Read(4, end="refused")] * 20
    kubelet = Kubelet(LOG, [Read(4, end="cut"), *away])

    assert kubelet.follow() == texts(LOG)
    assert kubelet.notes == ["nothing comes any more (the kubelet does not answer); waiting for it"]


def test_a_silent_container_is_no_trouble_however_often_its_connection_is_cut() -> None:
    kubelet = Kubelet(LOG, [Read(4, end="cut")] * (2 * PATIENCE))

    assert kubelet.follow() == texts(LOG)
    assert kubelet.notes == []


@pytest.mark.parametrize(
    ("pod", "patience"),
    [
        (RUNNING, PATIENCE),
        (raw_pod(phase="Failed"), PATIENCE_AT_THE_END),
        ({**RUNNING, "metadata": {**RUNNING["metadata"], "deletionTimestamp": "x"}}, 5),
    ],
    ids=["running", "failed", "being deleted"],
)
def test_a_node_that_never_comes_back_is_given_up(pod: dict[str, Any], patience: int) -> None:
    many = 2 * PATIENCE
    kubelet = Kubelet(LOG, [Read(4, end="refused")] * many, pods=[pod] * many)

    with pytest.raises(CommandError, match="does not answer"):
        kubelet.follow()
    assert len(kubelet.queries) == patience + 1


def test_what_the_kubelet_says_of_its_own_trouble_is_printed_once() -> None:
    kubelet = Kubelet(LOG)
    trouble = "failed to create fsnotify watcher: too many open files"
    kubelet._text = lambda *_: f"{stamped(LOG[0])}{trouble}\n"  # type: ignore[method-assign]
    kubelet.reads = [Read(1), Read(1)]

    assert kubelet.follow() == ["a", trouble]
