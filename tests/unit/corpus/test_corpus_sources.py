"""Which files a source's URI means, and what is told of those that are not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pretrain_api.spec.corpus import SourceSpec
from pretrain_jobs.corpus.slices import encode_plan, plan_slices
from pretrain_jobs.corpus.sources import SourceListing, exclude_validation, list_source_files
from pretrain_jobs.errors import DataError
from pretrain_testing.corpora import storage_at


def lay(directory: Path, *names: str, data: bytes = b"x") -> None:
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def listing(directory: Path, uri: str, **options: Any) -> SourceListing:
    return list_source_files([SourceSpec(uri=uri, **options)], storage_at(directory))


def names(directory: Path, found: SourceListing) -> list[str]:
    return [file.uri.removeprefix(directory.as_uri() + "/") for file in found.files]


def test_a_single_file_can_be_named_relative_to_the_storage_or_absolutely(tmp_path: Path) -> None:
    lay(tmp_path, "in/a.jsonl", "in/b.jsonl")

    relative = listing(tmp_path, "in/a.jsonl")
    absolute = listing(tmp_path, (tmp_path / "in" / "a.jsonl").as_uri())

    assert names(tmp_path, relative) == ["in/a.jsonl"]
    assert relative == absolute


@pytest.mark.parametrize("uri", ["in/", "in"])
def test_a_prefix_or_directory_means_everything_below_it(tmp_path: Path, uri: str) -> None:
    lay(tmp_path, "in/b/c.txt", "in/a.jsonl", "in/b.jsonl", "inner/x.jsonl")

    assert names(tmp_path, listing(tmp_path, uri)) == ["in/a.jsonl", "in/b.jsonl", "in/b/c.txt"]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("in/*.jsonl", ["in/a.jsonl", "in/b.jsonl"]),
        ("in/**/*.jsonl", ["in/a.jsonl", "in/b.jsonl", "in/d/e.jsonl"]),
        ("in/[ab].jsonl", ["in/a.jsonl", "in/b.jsonl"]),
        ("in/[!a].jsonl", ["in/b.jsonl"]),
        ("in/?.txt", ["in/c.txt"]),
        ("i*/a.jsonl", ["in/a.jsonl"]),
        ("*/d/", ["in/d/e.jsonl"]),
    ],
)
def test_globs_match_whole_keys(tmp_path: Path, glob: str, expected: list[str]) -> None:
    lay(tmp_path, "in/a.jsonl", "in/b.jsonl", "in/c.txt", "in/d/e.jsonl", "other.jsonl")

    assert names(tmp_path, listing(tmp_path, glob)) == expected
    absolute = f"{tmp_path.as_uri()}/{glob}"
    assert names(tmp_path, listing(tmp_path, absolute)) == expected


def test_names_that_look_like_globs_or_escapes_are_found_as_they_are(tmp_path: Path) -> None:
    lay(tmp_path, "in/[a] 100%.jsonl", "in/好.jsonl", "in/a.jsonl")

    assert len(listing(tmp_path, "in/[a] 100%.jsonl").files) == 1
    assert len(listing(tmp_path, "in/好.jsonl").files) == 1
    assert len(listing(tmp_path, (tmp_path / "in" / "[a] 100%.jsonl").as_uri()).files) == 1
    assert len(listing(tmp_path, "in/").files) == 3


def test_formats_and_compressions_follow_from_exact_suffixes(tmp_path: Path) -> None:
    lay(
        tmp_path,
        *(f"in/{n}" for n in ("a.jsonl.gz", "b.json", "c.txt.xz", "d.csv.zst", "e.parquet")),
    )

    kinds = [(file.format, file.compression) for file in listing(tmp_path, "in/").files]

    assert kinds == [
        ("jsonl", "gzip"),
        ("json", "none"),
        ("text", "xz"),
        ("csv", "zstd"),
        ("parquet", "none"),
    ]


def test_what_no_suffix_explains_is_skipped_and_told(tmp_path: Path) -> None:
    lay(tmp_path, "in/notes.json.bak", "in/a.jsonl", "in/b.json", "in/_SUCCESS", "in/.x/c.jsonl")

    found = listing(tmp_path, "in/")

    assert [
        (name, f.format) for name, f in zip(names(tmp_path, found), found.files, strict=True)
    ] == [
        ("in/a.jsonl", "jsonl"),
        ("in/b.json", "json"),
    ]
    told = "\n".join(found.warnings)
    assert all(name in told for name in ("notes.json.bak", "_SUCCESS", ".x/c.jsonl"))


def test_a_configured_format_reads_files_of_any_suffix_but_another_formats(tmp_path: Path) -> None:
    lay(tmp_path, "in/part-0", "in/a.jsonl", "in/b.json", "in/c.parquet")

    lines = listing(tmp_path, "in/", format="jsonl")
    arrays = listing(tmp_path, "in/", format="json")

    assert names(tmp_path, lines) == ["in/a.jsonl", "in/b.json", "in/part-0"]
    assert names(tmp_path, arrays) == ["in/b.json", "in/part-0"]
    assert any("a.jsonl" in warning for warning in arrays.warnings)


def test_a_file_that_is_named_is_read_in_the_configured_format(tmp_path: Path) -> None:
    lay(tmp_path, "_a.jsonl")

    [file] = listing(tmp_path, "_a.jsonl", format="text", compression="gzip").files

    assert (file.format, file.compression) == ("text", "gzip")


def test_a_source_without_files_is_refused_with_both_its_names(tmp_path: Path) -> None:
    with pytest.raises(DataError) as refusal:
        listing(tmp_path, "corpora/wiki/")

    assert "'corpora/wiki/'" in str(refusal.value)
    assert f"{tmp_path.as_uri()}/corpora/wiki/" in str(refusal.value)


def test_a_source_whose_files_are_all_skipped_says_which(tmp_path: Path) -> None:
    lay(tmp_path, "in/a.docx")

    with pytest.raises(DataError, match=r"a\.docx is skipped: its suffix is none of"):
        listing(tmp_path, "in/")


def test_empty_files_are_listed_and_told(tmp_path: Path) -> None:
    lay(tmp_path, "in/a.jsonl", "in/c.jsonl", data=b"")
    lay(tmp_path, "in/b.jsonl")

    found = listing(tmp_path, "in/")

    assert len(found.files) == 3
    assert [w.rsplit("/", 1)[-1] for w in found.warnings] == [
        "a.jsonl is empty",
        "c.jsonl is empty",
    ]


def test_equal_names_in_different_folders_are_different_files(tmp_path: Path) -> None:
    lay(tmp_path, "a/part-00000000000001.jsonl", "b/part-00000000000001.jsonl")

    found = list_source_files([SourceSpec(uri="a/"), SourceSpec(uri="b/")], storage_at(tmp_path))

    assert names(tmp_path, found) == ["a/part-00000000000001.jsonl", "b/part-00000000000001.jsonl"]
    assert [file.source for file in found.files] == [0, 1]


def test_a_file_of_several_sources_belongs_to_the_first(tmp_path: Path) -> None:
    lay(tmp_path, "in/a.jsonl", "in/b.jsonl")
    sources = [SourceSpec(uri="in/b.jsonl"), SourceSpec(uri="in/")]

    found = list_source_files(sources, storage_at(tmp_path))

    assert [(n, f.source) for n, f in zip(names(tmp_path, found), found.files, strict=True)] == [
        ("in/a.jsonl", 1),
        ("in/b.jsonl", 0),
    ]
    assert any("read once" in warning for warning in found.warnings)


def test_validation_files_are_not_trained_on(tmp_path: Path) -> None:
    lay(tmp_path, "in/a.jsonl", "in/held-out.jsonl")
    storage = storage_at(tmp_path)
    train = list_source_files([SourceSpec(uri="in/")], storage)
    held_out = list_source_files([SourceSpec(uri="in/held-out.jsonl")], storage, split="validation")

    both = exclude_validation(train.files, held_out.files)

    assert [(n, f.split) for n, f in zip(names(tmp_path, both), both.files, strict=True)] == [
        ("in/a.jsonl", "train"),
        ("in/held-out.jsonl", "validation"),
    ]
    assert len(both.warnings) == 1


def test_the_plan_does_not_depend_on_the_order_of_creation(tmp_path: Path) -> None:
    names_in_order = [f"in/{number:02}.jsonl" for number in range(12)]
    lay(tmp_path / "one", *names_in_order)
    lay(tmp_path / "two", *reversed(names_in_order))

    plans = [
        plan_slices(listing(tmp_path / root, "in/").files, slice_bytes=4) for root in ("one", "two")
    ]

    first, second = (
        encode_plan(plan).replace(root, b"")
        for plan, root in zip(plans, (b"/one/", b"/two/"), strict=True)
    )
    assert first == second
