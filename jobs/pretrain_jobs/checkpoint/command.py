"""`python -m pretrain_jobs checkpoints ls|verify|prune|pull URI`: a run's checkpoints, by hand.

For people and scripts that have the URI, and neither the cluster nor torch.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.checkpoint.cleaning import delete_checkpoints, give_up_checkpoint
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.generations import newest
from pretrain_jobs.checkpoint.inspection import Found, files_of, find, pull, verify
from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.checkpoint.manifest import Commit
from pretrain_jobs.checkpoint.retention import superseded
from pretrain_jobs.errors import CheckpointUnusableError, StorageUnavailableError, UserError
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_jobs.storage.local_files import translated
from pretrain_jobs.transfer_meter import TransferMeter, in_bytes

_EPILOG = """\
URI is a job's directory of checkpoints, as status.checkpoint.uri shows it without its last two
parts: s3://bucket/prefix/checkpoints/JOB-UID. Credentials and endpoint of S3 come from AWS_* of the
environment (AWS_ENDPOINT_URL names an S3-compatible server).

examples:
  python -m pretrain_jobs checkpoints ls s3://models/zh/checkpoints/roberta-0b1c2d3e
  python -m pretrain_jobs checkpoints verify --step 1200 file:///data/checkpoints/gpt2-4f5a6b7c
  python -m pretrain_jobs checkpoints pull s3://models/zh/checkpoints/roberta-0b1c2d3e out
  python -m deepspeed.utils.zero_to_fp32 out weights    # one set of weights, from ZeRO 1 to 3

exit codes: 0 done, 2 wrong usage, 64 no such checkpoint, 65 the one to copy is damaged,
69 no storage, 74 one is not sound
"""


def main(arguments: Sequence[str]) -> None:
    """Do what the first argument says."""
    options = _parser().parse_args(arguments)
    store = open_store(StorageSpec(uri=options.uri, endpoint_url=options.endpoint_url))
    options.action(store, options)


def _list(store: ObjectStore, options: argparse.Namespace) -> None:
    found = find(store)
    if options.output == "json":
        _say(json.dumps([_as_json(one) for one in found], indent=1))
        return
    rows = [("STEP", "GENERATION", "STATE", "RANKS", "ZERO", "SIZE", "WRITTEN", "LINEAGE")]
    for row in (*rows, *map(_row, found)):
        _say(
            f"{row[0]:>9}  {row[1]:>10}  {row[2]:11}  {row[3]:>5}  {row[4]:>4}  {row[5]:>9}  "
            f"{row[6]:20}  {row[7]}".rstrip()
        )
    for one in found:
        if one.doubt:
            _say(f"{_name(one.key)}: {one.doubt}")
    if not found:
        _tell(f"no checkpoint lies under {store.uri}")


def _verify(store: ObjectStore, options: argparse.Namespace) -> None:
    found = find(store)
    if options.step is not None:
        if options.step not in {one.key.step for one in found}:
            raise _none_of(store, found, options.step)
        found = tuple(one for one in found if one.key.step == options.step)
    damaged = 0
    for one in found:
        if one.state in {"uncommitted", "given up"}:
            _say(f"{_name(one.key)}: never finished, nothing resumes from it")
            continue
        doubts = _doubts(store, one)
        damaged += bool(doubts)
        _say(f"{_name(one.key)}: {'; '.join(doubts) or f'sound, {in_bytes(one.size)}'}")
    if damaged:
        raise CheckpointUnusableError(
            f"{damaged} of {len(found)} checkpoints under {store.uri} cannot be trusted"
        )
    if not found:
        _tell(f"no checkpoint lies under {store.uri}")


def _prune(store: ObjectStore, options: argparse.Namespace) -> None:
    found = find(store)
    going = [*_superseded(found, keep_last=options.keep_last, keep_every=options.keep_every)]
    if options.broken:
        going += _broken(found, generation=newest(store))
    sizes = {one.key: one.size for one in found}
    for key in going:
        verb = "would delete" if options.dry_run else "deleting"
        _say(f"{verb} {_name(key)}, {in_bytes(sizes[key])}")
    if options.dry_run:
        return
    generation = newest(store) + 1
    for one in found:
        if one.key in going and one.state == "uncommitted":
            give_up_checkpoint(store, one.key, generation)
        elif one.key in going:
            delete_checkpoints(store, [one.key], Failpoints())
    left = {one.key for one in find(store) if one.state != "given up"} & set(going)
    if left:
        raise StorageUnavailableError(
            f"{len(left)} of {len(going)} could not be deleted; see the log above"
        )


def _pull(store: ObjectStore, options: argparse.Namespace) -> None:
    commit = _chosen(store, find(store), options.step)
    directory: Path = options.directory
    tag = commit.key.prefix.partition("/")[0]
    with translated(directory, "writing"):
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UserError(f"{directory} is not empty; name an empty or a new directory")
        (directory / tag).mkdir()
    with TransferMeter("pulling", _size(commit)) as meter:
        pull(store, commit, directory / tag, progress=meter)
    with translated(directory, "writing"):
        (directory / "latest").write_text(tag)
    _say(f"{directory / tag}")


def _doubts(store: ObjectStore, one: Found) -> tuple[str, ...]:
    if one.commit is None:
        return (one.doubt,)
    with TransferMeter(_name(one.key), _size(one.commit)) as meter:
        return verify(store, one.commit, progress=meter)


def _chosen(store: ObjectStore, found: Iterable[Found], step: int | None) -> Commit:
    """The newest commit, or that of a step; UserError that lists the steps that there are."""
    for commit in _commits(found):
        if step in {None, commit.step}:
            return commit
    raise _none_of(store, found, step)


def _commits(found: Iterable[Found]) -> list[Commit]:
    return [one.commit for one in found if one.commit is not None]


def _none_of(store: ObjectStore, found: Iterable[Found], step: int | None) -> UserError:
    there = ", ".join(str(commit.step) for commit in reversed(_commits(found)))
    return UserError(
        f"{store.uri} has no committed checkpoint{'' if step is None else f' of step {step}'}"
        f"{f'; there are steps {there}' if there else ''}"
    )


def _superseded(
    found: Iterable[Found], *, keep_last: int, keep_every: int | None
) -> Iterable[CheckpointKey]:
    """What retention would delete now, each run's checkpoints judged by themselves."""
    runs: dict[str, list[CheckpointKey]] = {}
    for one in found:
        if one.commit is not None:
            runs.setdefault(one.commit.lineage, []).append(one.key)
    for keys in runs.values():
        yield from superseded(keys, keep_last=keep_last, keep_every_steps=keep_every)


def _broken(found: Iterable[Found], *, generation: int) -> list[CheckpointKey]:
    """Unreadable commits, and what attempts before the newest one never finished."""
    return [
        one.key
        for one in found
        if one.state == "damaged"
        or (one.state == "uncommitted" and one.key.generation < generation)
    ]


def _row(one: Found) -> tuple[str, ...]:
    commit = one.commit
    return (
        str(one.key.step),
        str(one.key.generation),
        one.state,
        str(commit.world_size) if commit else "-",
        str(commit.zero_stage) if commit else "-",
        in_bytes(one.size),
        f"{commit.time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if commit else "-",
        commit.lineage if commit else "-",
    )


def _as_json(one: Found) -> dict[str, object]:
    commit = one.commit
    told: dict[str, object] = {
        "step": one.key.step,
        "generation": one.key.generation,
        "attempt": one.key.attempt,
        "state": one.state,
        "bytes": one.size,
    }
    if one.doubt:
        told["doubt"] = one.doubt
    if commit is not None:
        told |= {
            "worldSize": commit.world_size,
            "zeroStage": commit.zero_stage,
            "files": sum(1 for _ in files_of(commit)),
            "rootHash": commit.root_hash,
            "lineage": commit.lineage,
            "time": commit.time.astimezone(UTC).isoformat(),
            "ageSeconds": round((datetime.now(UTC) - commit.time).total_seconds()),
        }
    return told


def _size(commit: Commit) -> int:
    return sum(file.size for _, file in files_of(commit))


def _name(key: CheckpointKey) -> str:
    return f"step {key.step} (generation {key.generation})"


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the tool's result


def _tell(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain_jobs checkpoints",
        description="Look at, check, thin out or copy the checkpoints of one job.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("uri", metavar="URI", help="the checkpoints' root, file:// or s3://")
    shared.add_argument("--endpoint-url", metavar="URL", help="an S3-compatible server")
    one = argparse.ArgumentParser(add_help=False)
    one.add_argument("--step", type=int, help="this step instead of the newest, or of all")
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    ls = actions.add_parser("ls", parents=[shared], help="what is there, the newest first")
    ls.add_argument("-o", "--output", choices=["table", "json"], default="table")
    ls.set_defaults(action=_list)

    check = actions.add_parser("verify", parents=[shared, one], help="read and hash every byte")
    check.set_defaults(action=_verify)

    prune = actions.add_parser(
        "prune",
        parents=[shared],
        help="delete old ones, COMMIT first",
        description="Delete old checkpoints as a job itself does after each commit. Not while an "
        "attempt is starting: it may be reading the one that it found. Files are not looked at: "
        "run verify first.",
    )
    prune.add_argument("--keep-last", type=_positive, required=True, metavar="N")
    prune.add_argument("--keep-every", type=_positive, metavar="N", help="and multiples of N steps")
    prune.add_argument(
        "--broken",
        action="store_true",
        help="also those with an unreadable COMMIT, and what earlier attempts never finished",
    )
    prune.add_argument("--dry-run", action="store_true", help="only say what would be deleted")
    prune.set_defaults(action=_prune)

    copy = actions.add_parser(
        "pull", parents=[shared, one], help="copy one, verified, in DeepSpeed's own layout"
    )
    copy.add_argument("directory", metavar="DIR", type=Path, help="an empty or a new directory")
    copy.set_defaults(action=_pull)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
