"""What was seen of faulty jobs as rows of a table, without what differs from run to run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pretrain_testing.fault_run import Seen
from pretrain_testing.fault_world import World

Row = dict[str, Any]

PARTS = (
    (re.compile(r"\s+"), " "),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z"), "TIME"),
    (re.compile(r"^Attempt \d of \w+ starts at TIME at the latest: "), ""),
    (re.compile(r"^[^:.]*: not running yet\. "), ""),
    (re.compile(r'Back-off pulling image "[^"]*": ErrImagePull: '), ""),
    (re.compile(r"(?<=-)[0-9a-f]{5}(?=-(?:tokenizer|preprocess|train)-\d)"), "UID"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "FINGERPRINT"),
    (re.compile(r"\bnode-[ab]\b"), "NODE"),
    (re.compile(r"\bRank [01]\b"), "Rank N"),
    (re.compile(r"\bafter \d+ steps?\b"), "after N steps"),
)
"""What another run would say otherwise, and what the moment of looking adds in front."""


def rows_of(seen: Iterable[Seen], world: World) -> list[Row]:
    """A row for each fault that was told, in the order in which they were made."""
    return [_row(one, world) for one in seen if one.told_at is not None]


def _row(seen: Seen, world: World) -> Row:
    fault = seen.fault
    return {
        "fault": fault.title,
        "cause": fault.cause,
        "sentence": plain(seen.sentence, world),
        "seconds": round(seen.delay, 1),
        "follows": fault.follows,
    }


def plain(sentence: str, world: World) -> str:
    """A sentence in which the names of this run are told by what they are."""
    text = sentence.replace(world.limited, "NAMESPACE").replace(world.bucket, "BUCKET")
    text = text.replace(world.namespace, "NAMESPACE")
    for pattern, word in PARTS:
        text = pattern.sub(word, text)
    return text.strip()
