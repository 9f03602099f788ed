"""One pod's log as it grows, taken up again where its stream was cut, until the container ends.

A stream ends when the container does, but also when the API server or the kubelet restarts, or
something on the way drops what is idle. Lines are asked for with their timestamps, which are not
printed: a log that was cut is read again from its last seconds on, without what was seen of them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pretrain_operator.observe import PodFacts

from pretrainctl.cluster.access import Cluster, CutError, MissingError
from pretrainctl.errors import UnreachableError

OVERLAP = timedelta(seconds=1)
"""Before the newest line, and down to a whole second, a log is read again: stdout and stderr are
stamped apart, so that lines may lie out of order by less than that."""

PATIENCE = 150
"""Failures in a row until a log is given up; there are two seconds between them."""

PATIENCE_AT_THE_END = 5
"""The same for a pod that has ended or is being deleted: on a lost node it stays for ever."""

ENDED = frozenset({"Succeeded", "Failed"})


class TakenLines:
    """What was taken of a log; `take` gives each line once, however often it is read again.

    Lines are `TIMESTAMP TEXT`, as the kubelet stamps them (RFC 3339 with nine digits). Of a log
    that `starts_late`, what lies before the first line that was taken is not wanted later either.
    """

    def __init__(self, *, starts_late: bool = False) -> None:
        self._starts_late = starts_late
        self._newest = datetime.min.replace(tzinfo=UTC)
        self._recent: deque[tuple[datetime, str]] = deque()
        self._again: Counter[str] = Counter()
        self._is_before_known = False
        self._unstamped: set[str] = set()

    @property
    def since(self) -> str | None:
        """From when on to read again, as the API takes it: whole seconds; None: from the start."""
        if not self._recent:
            return None
        return (self._newest - OVERLAP).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def read_again(self) -> None:
        """From now on lines come again from `since` on."""
        self._again = Counter(line for _, line in self._recent)
        self._is_before_known = self._starts_late and bool(self._again)

    def take(self, line: str) -> str | None:
        """The text of a line, None when it was taken before.

        A line without a stamp is the kubelet's own, about its trouble; it is taken once.
        """
        stamp, _, text = line.partition(" ")
        moment = _moment(stamp)
        if moment is None:
            is_known = line in self._unstamped
            self._unstamped.add(line)
            return None if is_known else line
        if self._again[line] > 0:
            self._again[line] -= 1
            self._is_before_known = False
            return None
        if self._is_before_known and moment <= self._newest + OVERLAP:
            return None
        self._remember(moment, line)
        return text

    def _remember(self, moment: datetime, line: str) -> None:
        self._newest = max(self._newest, moment)
        self._recent.append((moment, line))
        kept_from = (self._newest - OVERLAP).replace(microsecond=0)
        while self._recent[0][0] < kept_from:
            self._recent.popleft()


@dataclass
class GrowingLog:
    """The log at a path, for as long as it grows.

    `look` gives the pod as it is now, None when it is none of ours any more; `note` is told why
    nothing comes. `tail` is the number of last lines to begin with, None for all.
    """

    cluster: Cluster
    path: str
    container: str
    tail: int | None
    look: Callable[[], PodFacts | None]
    note: Callable[[str], None]
    sleep: Callable[[], None]
    _taken: TakenLines = field(init=False)
    _rest: str = field(default="", init=False)
    _failures: int = field(default=0, init=False)
    _patience: int = field(default=PATIENCE, init=False)
    _may_lack: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self._taken = TakenLines(starts_late=self.tail is not None)

    def lines(self) -> Iterator[str]:
        """Its lines, each once; raises CommandError when no more can be had of it."""
        yield from self._stream(follow=True)
        while not self._has_ended():
            self.sleep()
            yield from self._stream(follow=True)
        yield from self._end()

    def _end(self) -> Iterator[str]:
        """What a cut has left out, and the last line where nothing ends it."""
        lacked = self._may_lack
        try:
            yield from self._stream(follow=False)
            while self._may_lack:
                self.sleep()
                yield from self._stream(follow=False)
        except MissingError:
            if lacked:
                raise
        last = self._taken.take(self._rest) if self._rest else None
        if last is not None:
            yield last

    def _stream(self, *, follow: bool) -> Iterator[str]:
        """New lines until the stream ends, however it does."""
        self._taken.read_again()
        try:
            for line in self.cluster.lines(self.path, self._query(follow=follow)):
                self._rest = "" if line.endswith("\n") else line
                text = None if self._rest else self._taken.take(line.removesuffix("\n"))
                if text is not None:
                    yield text
        except CutError as error:
            self._may_lack = True
            if not follow:
                self._fail(error)
        except UnreachableError as error:
            self._fail(error)
        else:
            self._failures, self._may_lack = 0, False

    def _query(self, *, follow: bool) -> dict[str, str | int]:
        query: dict[str, str | int] = {"container": self.container, "timestamps": "true"}
        if follow:
            query["follow"] = "true"
        if since := self._taken.since:
            return {**query, "sinceTime": since}
        return query if self.tail is None else {**query, "tailLines": self.tail}

    def _has_ended(self) -> bool:
        """Whether the container has, or the pod is gone."""
        try:
            now = self.look()
        except MissingError:
            return True
        except UnreachableError as error:
            self._fail(error)
            return False
        ended = now is None or now.pod.exit_code is not None or now.pod.phase in ENDED
        if now is None or ended or now.pod.deleting:
            self._patience = PATIENCE_AT_THE_END
        return ended

    def _fail(self, error: UnreachableError) -> None:
        self._failures += 1
        self._may_lack = True
        if self._failures > self._patience:
            raise error
        if self._failures == 2:
            self.note(f"nothing comes any more ({error}); waiting for it")


def _moment(stamp: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
