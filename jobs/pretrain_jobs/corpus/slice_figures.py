"""A slice's figures while it is prepared, for whoever scrapes its pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pretrain_jobs.dataset.statistics import CorpusStatistics
from pretrain_jobs.telemetry import families
from pretrain_jobs.telemetry.samples import Sample


class SliceFigures:
    """A source of samples; what it was shown last is what it tells."""

    def __init__(self) -> None:
        self._shown: tuple[int, CorpusStatistics] = (0, CorpusStatistics())

    def show(self, read: int, statistics: CorpusStatistics, rejects: Mapping[str, int]) -> None:
        """Take note of the stored bytes read, what became of documents, and rejects by cause."""
        self._shown = read, statistics.model_copy(update={"rejects": dict(rejects)})

    def samples(self) -> Iterator[Sample]:
        """Samples of what was shown last."""
        read, statistics = self._shown
        yield Sample(families.INPUT_BYTES, read)
        yield Sample(families.DOCUMENTS, statistics.documents)
        yield Sample(families.ENCODED_TOKENS, statistics.tokens)
        for cause, count in statistics.removed.items():
            yield Sample(families.REMOVED, count, (cause,))
        for cause, count in statistics.rejects.items():
            yield Sample(families.REJECTS, count, (cause,))
