"""What the preprocessing stage refuses, and what is damaged or left over; in this process, 5 s."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from pretrain_api.spec.corpus import SourceSpec
from pretrain_jobs.errors import DataError, UserError
from pretrain_testing.corpora import PreprocessJob, json_lines
from pretrain_testing.sentence_jobs import TEXTS, Run, make_job


def test_a_refused_record_is_told_by_its_place(tmp_path: Path, run: Run) -> None:
    data = json_lines(["好"]) + b'{"text": "x\n' + json_lines(["坏"])
    job = make_job(tmp_path, {"a/p.jsonl": data, "b/p.jsonl": data}, corpus={"max_rejects": 2})

    result = run(job)

    rejects = (job.dataset_directory / "rejects" / "00000.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in rejects]
    assert [(r["file"].rsplit("/", 2)[1], r["line"], r["cause"]) for r in found] == [
        ("a", 2, "JSON"),
        ("b", 2, "JSON"),
    ]
    assert result.counts["rejects"] == 2
    manifest = job.manifest()
    assert manifest is not None
    assert manifest.statistics.rejects == {"JSON": 2}
    assert manifest.statistics.documents_read == 6


def test_one_reject_too_many_ends_the_slice_with_file_and_line(tmp_path: Path, run: Run) -> None:
    data = json_lines(["好"]) + b'{"text": "x\n'
    job = make_job(tmp_path, {"a.jsonl": data}, corpus={"max_rejects": 0})

    with pytest.raises(DataError, match=r"a\.jsonl, line 2, byte \d+: JSON"):
        run(job)

    assert job.manifest() is None


def test_rejects_are_limited_over_all_slices(tmp_path: Path, run: Run) -> None:
    files = {f"{n}/a.jsonl": json_lines(TEXTS) + b"{\n" for n in range(3)}
    sources = tuple(SourceSpec(uri=f"corpus/{n}/") for n in range(3))
    job = make_job(tmp_path, files, sources=sources, corpus={"max_rejects": 2})

    for index in range(2):
        run(job, index)
    with pytest.raises(DataError, match=r"3 records were refused and corpus\.maxRejects is 2"):
        run(job, 2)

    assert job.manifest() is None


def test_a_cut_archive_is_a_warning_beside_its_documents(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path, {"a.jsonl.gz": gzip.compress(json_lines(TEXTS * 10))[:-20]})

    result = run(job)

    [warning] = result.warnings
    assert "a.jsonl.gz: truncated" in warning


def test_a_corpus_without_text_is_refused_and_makes_no_dataset(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path, {"a.jsonl": json_lines(["", " ", 5]), "b.jsonl": b""})

    with pytest.raises(DataError, match=r"no document with text in 2 files \(2 empty, 1 type\)"):
        run(job)

    assert job.manifest() is None


def test_an_index_without_a_slice_is_refused(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path)

    with pytest.raises(UserError, match="the plan has 1 slices"):
        run(job, 1)


def test_a_missing_tokenizer_is_told(tmp_path: Path, run: Run) -> None:
    job = PreprocessJob(tmp_path)
    job.write({"a.jsonl": json_lines(TEXTS)})
    job.lay_out()

    with pytest.raises(DataError, match=r"no tokenizer in .*/tokenizer"):
        run(job)


@pytest.mark.parametrize("damage", ["cut", "flip", "delete", "empty"])
def test_damaged_shards_are_made_again(tmp_path: Path, run: Run, damage: str) -> None:
    job = make_job(tmp_path)
    run(job)
    sound = job.content()
    [path] = (job.dataset_directory / "shards").iterdir()
    data = path.read_bytes()
    path.unlink()
    if damage != "delete":
        half = len(data) // 2
        flipped = data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :]
        path.write_bytes(
            {"cut": data[: len(data) * 6 // 10], "flip": flipped, "empty": b""}[damage]
        )

    run(job)

    assert job.content() == sound


@pytest.mark.parametrize("junk", [b"", b"{}", b"\x00" * 100])
def test_a_damaged_slice_manifest_counts_as_none(tmp_path: Path, run: Run, junk: bytes) -> None:
    job = make_job(tmp_path)
    run(job)
    sound = job.content()
    (job.dataset_directory / "slices" / "00000.json").write_bytes(junk)
    (job.dataset_directory / "manifest.json").write_bytes(junk)

    run(job)

    assert job.content() == sound


def test_all_shards_without_a_manifest_are_no_dataset_until_the_stage_completes_it(
    tmp_path: Path, run: Run
) -> None:
    job = make_job(tmp_path)
    run(job)
    sound = job.content()
    (job.dataset_directory / "manifest.json").unlink()
    assert job.manifest() is None

    run(job)

    assert job.content() == sound


def test_another_fingerprints_slices_are_not_taken(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path)
    run(job)
    slice_path = job.dataset_directory / "slices" / "00000.json"
    foreign = json.loads(slice_path.read_text()) | {"fingerprint": "another"}
    slice_path.write_text(json.dumps(foreign))
    sound = {k: v for k, v in job.content().items() if not k.startswith("slices/")}

    run(job)

    assert {k: v for k, v in job.content().items() if not k.startswith("slices/")} == sound
    assert json.loads(slice_path.read_text())["fingerprint"] == "fingerprint"
