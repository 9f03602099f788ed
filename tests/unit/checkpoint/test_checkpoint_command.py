"""`python -m pretrain_jobs checkpoints`: what it shows, what it finds wrong, what it removes."""

import json
from pathlib import Path

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.checkpoint.command import main
from pretrain_jobs.checkpoint.generations import claim
from pretrain_jobs.checkpoint.inspection import find, verify
from pretrain_jobs.errors import CheckpointUnusableError, UserError
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_testing.stored_checkpoints import ATTEMPT, store_checkpoint

OWN_FILE = "rank-00001/zero_pp_rank_1_mp_rank_00_optim_states.pt"


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(StorageSpec(uri=(tmp_path / "checkpoints").as_uri()))


def local_path(store: ObjectStore, key: str) -> Path:
    return Path(store.uri.removeprefix("file://")) / key


def steps_of(store: ObjectStore) -> list[int]:
    return [one.key.step for one in find(store)]


def test_the_newest_comes_first_by_number_and_each_says_what_it_is(
    store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store_checkpoint(store, 1_000_000_000)
    store_checkpoint(store, 999_999_900)
    store_checkpoint(store, 5, committed=False)
    damaged = store_checkpoint(store, 7)
    store.write(damaged.key.commit, b"{")

    main(["ls", store.uri, "-o", "json"])

    told = json.loads(capsys.readouterr().out)
    assert [(one["step"], one["state"]) for one in told] == [
        (1_000_000_000, "committed"),
        (999_999_900, "committed"),
        (7, "damaged"),
        (5, "uncommitted"),
    ]
    assert told[0]["worldSize"] == 2
    assert told[0]["files"] == 4
    assert told[0]["bytes"] > 2000
    assert "COMMIT is damaged" in told[2]["doubt"]


def test_the_table_has_a_row_for_each_and_the_reason_against_it(
    store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = store_checkpoint(store, 400)
    store.write(damaged.key.commit, b"{")
    store_checkpoint(store, 500, generation=12)

    main(["ls", store.uri])

    head, newest, older, reason = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["STEP", "GENERATION", "STATE"]
    assert newest.split()[:5] == ["500", "12", "committed", "2", "1"]
    assert older.split()[:3] == ["400", "1", "damaged"]
    assert reason.startswith("step 400 (generation 1): COMMIT is damaged")


def test_sound_checkpoints_verify(store: ObjectStore, capsys: pytest.CaptureFixture[str]) -> None:
    store_checkpoint(store, 400)
    store_checkpoint(store, 500)
    store_checkpoint(store, 600, committed=False)

    main(["verify", store.uri])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "step 600 (generation 1): never finished, nothing resumes from it"
    assert [line.split(":")[1].split(",")[0] for line in lines[1:]] == [" sound", " sound"]


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ("missing", f"{OWN_FILE} is missing"),
        ("truncated", f"{OWN_FILE} has 999 bytes instead of 1000"),
        ("flipped", f"{OWN_FILE} has another SHA-256 than its manifest"),
    ],
)
def test_a_damaged_file_is_found_and_named(
    store: ObjectStore, capsys: pytest.CaptureFixture[str], harm: str, told: str
) -> None:
    store_checkpoint(store, 400)
    commit = store_checkpoint(store, 500)
    file = local_path(store, f"{commit.key.prefix}{OWN_FILE}")
    data = file.read_bytes()
    if harm == "missing":
        file.unlink()
    else:
        file.write_bytes(data[:-1] if harm == "truncated" else b"\xff" + data[1:])

    with pytest.raises(CheckpointUnusableError, match="1 of 2 checkpoints"):
        main(["verify", store.uri])

    assert f"step 500 (generation 1): {told}\n" in capsys.readouterr().out
    main(["verify", store.uri, "--step", "400"])


def test_every_byte_is_counted_while_it_is_read(store: ObjectStore) -> None:
    commit = store_checkpoint(store, 400)
    read: list[int] = []
    assert not verify(store, commit, progress=read.append)
    assert sum(read) == sum(manifest.size for manifest in commit.ranks)


def test_a_step_that_is_not_there_is_answered_with_those_that_are(
    store: ObjectStore, tmp_path: Path
) -> None:
    store_checkpoint(store, 400)
    store_checkpoint(store, 500)
    with pytest.raises(UserError, match=r"of step 700; there are steps 400, 500$"):
        main(["pull", store.uri, str(tmp_path / "out"), "--step", "700"])
    assert not (tmp_path / "out").exists()


def test_pruning_keeps_the_newest_of_each_run_and_multiples(store: ObjectStore) -> None:
    for step in (100, 200, 300, 400, 500):
        store_checkpoint(store, step)
    store_checkpoint(store, 150, lineage="other")

    main(["prune", store.uri, "--keep-last", "1", "--keep-every", "200", "--dry-run"])
    assert len(steps_of(store)) == 6
    main(["prune", store.uri, "--keep-last", "1", "--keep-every", "200"])

    assert steps_of(store) == [500, 400, 200, 150]
    assert not [info.key for info in store.list("step-000000100")]


def test_what_is_broken_goes_only_when_asked_and_only_of_ended_attempts(
    store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    claim(store, attempt=ATTEMPT, lineage="own")
    claim(store, attempt="1" * 32, lineage="own")
    store_checkpoint(store, 500)
    store_checkpoint(store, 600, committed=False)
    store_checkpoint(store, 700, generation=2, committed=False)
    damaged = store_checkpoint(store, 400)
    store.write(damaged.key.commit, b"{")

    main(["prune", store.uri, "--keep-last", "3"])
    assert steps_of(store) == [700, 600, 500, 400]
    main(["prune", store.uri, "--keep-last", "3", "--broken"])

    assert [(one.key.step, one.state) for one in find(store)] == [
        (700, "uncommitted"),
        (600, "given up"),
        (500, "committed"),
    ]
    assert "deleting step 600 (generation 1)" in capsys.readouterr().out


def test_at_least_one_checkpoint_is_kept(store: ObjectStore) -> None:
    with pytest.raises(SystemExit):
        main(["prune", store.uri, "--keep-last", "0"])


def test_a_copy_lies_as_deepspeed_s_tools_expect_it(
    store: ObjectStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_checkpoint(store, 400)
    store_checkpoint(store, 500)
    out = tmp_path / "out"

    main(["pull", store.uri, str(out)])

    assert capsys.readouterr().out == f"{out}/step-000000500\n"
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    tag = "step-000000500"
    assert files == {
        "latest",
        f"{tag}/COMMIT",
        f"{tag}/rank-00000/rank.json",
        f"{tag}/rank-00001/rank.json",
        f"{tag}/zero_pp_rank_0_mp_rank_00_optim_states.pt",
        f"{tag}/zero_pp_rank_1_mp_rank_00_optim_states.pt",
    }
    assert (out / "latest").read_text() == tag


def test_a_directory_with_files_is_left_alone(store: ObjectStore, tmp_path: Path) -> None:
    store_checkpoint(store, 400)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(UserError, match="is not empty"):
        main(["pull", store.uri, str(tmp_path / "mine")])
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
