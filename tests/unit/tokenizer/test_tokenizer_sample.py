"""The sample that a tokenizer is trained on: bounded, spread out, cleaned."""

from pathlib import Path

import pytest
from pretrain_api.spec.corpus import CleaningSpec, SourceSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.corpus.sources import list_source_files
from pretrain_jobs.errors import DataError
from pretrain_jobs.tokenizer.sample import Sample, sample_texts
from pretrain_testing.tokenizer_texts import write_jsonl


def sample(root: Path, *, max_bytes: int, cleaning: CleaningSpec | None = None) -> Sample:
    storage = StorageSpec(uri=root.as_uri())
    listing = list_source_files([SourceSpec(uri="corpus/")], storage)
    return sample_texts(
        listing.files, storage, max_bytes=max_bytes, cleaning=cleaning or CleaningSpec()
    )


def test_a_small_corpus_is_taken_whole(tmp_path):
    documents = [f"第{i}天，天气很好。" for i in range(50)]
    write_jsonl(tmp_path / "corpus/a.jsonl", documents)

    taken = sample(tmp_path, max_bytes=10**6)

    assert list(taken.texts) == documents
    assert taken.size == sum(len(text.encode()) for text in documents)


def test_a_large_corpus_gives_a_share_of_every_part(tmp_path):
    for name, letter in (("a", "甲"), ("b", "乙"), ("c", "丙"), ("d", "丁")):
        write_jsonl(tmp_path / f"corpus/{name}.jsonl", [letter * 20] * 1_000)

    taken = sample(tmp_path, max_bytes=48_000)

    assert taken.size <= 48_000
    joined = "".join(taken.texts)
    for letter in "甲乙丙丁":
        assert 2_500 <= joined.count(letter) <= 5_500


def test_one_large_document_is_cut_at_a_character(tmp_path):
    write_jsonl(tmp_path / "corpus/a.jsonl", ["好" * 10_000])

    taken = sample(tmp_path, max_bytes=100)

    assert taken.texts == ("好" * 33,)


def test_texts_are_normalised_and_filtered_as_the_dataset_will_be(tmp_path):
    write_jsonl(tmp_path / "corpus/a.jsonl", ["ＡＢ\r\nＣ", "短", "   "])

    taken = sample(
        tmp_path,
        max_bytes=1_000,
        cleaning=CleaningSpec(normalization="NFKC", min_characters=2),
    )

    assert taken.texts == ("AB\nC",)


def test_a_corpus_without_documents_is_refused_with_the_first_cause(tmp_path):
    path = tmp_path / "corpus/a.jsonl"
    path.parent.mkdir()
    path.write_text('{"title": "x"}\n')

    with pytest.raises(
        DataError, match=r"no document: 1 files, 1 records refused.*a\.jsonl line 1"
    ):
        sample(tmp_path, max_bytes=1_000)
