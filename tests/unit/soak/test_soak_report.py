"""What a soak prints and writes: every subject, with what was wrong."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pretrain_jobs.checkpoint.layout import CheckpointKey, generation_key
from pretrain_testing.soak.accounts import Done
from pretrain_testing.soak.bounds import BOUNDS
from pretrain_testing.soak.children import Child, Told
from pretrain_testing.soak.findings import Findings, Objects
from pretrain_testing.soak.history import History
from pretrain_testing.soak.plan import Kill
from pretrain_testing.soak.readings import OperatorReading, RankReading, Seen
from pretrain_testing.soak.report import document, tables
from pretrain_testing.soak.stored import Stored
from rich.console import Console

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
SECONDS = 600.0
STEPS = 4
RESTARTED = {"Infrastructure": 1}
COMMITS = [CheckpointKey(step, 2, "a" * 32).commit for step in (2, STEPS)]
SECRET = Child("Secret", "storage")


def findings(restarts: Mapping[str, int] = RESTARTED) -> Findings:
    """A soak of ten minutes, in which rank 1 was killed once."""
    looks = [5.0 * number for number in range(120)]
    return Findings(
        done=[
            Done(
                Kill(at=120, kind="a rank", victim=1, outage_seconds=5),
                at=121.0,
                seconds=31.0,
                before={},
                after=RESTARTED,
                attempts=1,
            )
        ],
        status={
            "stages": [{"name": "train", "attempt": 1}],
            "restarts": restarts,
            "goodput": {
                "startTime": BEGAN.isoformat(),
                "seconds": {"step": 540.0, "lost": 60.0},
                "ratio": 0.9,
            },
        },
        read_at=BEGAN + timedelta(seconds=SECONDS),
        seconds=SECONDS,
        looks=len(looks),
        seen=Seen(
            operators=[
                OperatorReading(at, "operator-a/7", True, 80 << 20, 14, 9, {}) for at in looks
            ],
            ranks=[RankReading(at, 1, 20, {"pretrain_loss": 2}) for at in looks],
            events={"1": Told("AttemptFailed", "Attempt 0 of train ended", 1)},
        ),
        objects=Objects([SECRET], [SECRET], [SECRET], [SECRET]),
        stored=Stored(
            keys=[generation_key(1), generation_key(2), *COMMITS, "LATEST"],
            marks=(),
            latest=STEPS,
            uploads=[],
        ),
        history=History({1: {(step, 0): ((0, step),) for step in range(1, STEPS + 1)}}),
        workers=1,
        keep_last=2,
        bounds=BOUNDS,
    )


def printed(found: Findings) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(*tables(found))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_soak_as_it_should_be_is_said_to_be_so_subject_by_subject() -> None:
    text = printed(findings())

    assert "wrong" not in text
    assert text.count("as it should be") == len(findings().judged())
    for figure in ("90.0%", "4 of 4 that were made", "80.0 to 80.0 MiB", "Infrastructure"):
        assert figure in text


def test_what_is_wrong_is_printed_beside_its_subject() -> None:
    text = printed(findings(restarts={}))

    assert "Status counts the restarts {}, not {'Infrastructure': 1}." in text
    assert "1 events AttemptFailed tell of 0 restarts." in text


def test_too_few_readings_are_told() -> None:
    found = findings()
    few = replace(found, seen=replace(found.seen, ranks=found.seen.ranks[:10]))

    assert few.judged()["readings"] == [
        "10 readings of rank 0 were taken where there was time for 120."
    ]


def test_the_document_is_json_with_every_reading_and_verdict() -> None:
    written = json.loads(json.dumps(document(findings())))

    assert written["kills"] == [
        {
            "kind": "a rank",
            "victim": 1,
            "at": 121.0,
            "secondsToTheNextCommit": 31.0,
            "restarts": RESTARTED,
        }
    ]
    assert written["goodput"]["wallClock"] == SECONDS
    assert len(written["operators"]) == len(written["ranks"]) == 120
    assert not any(written["wrong"].values())
