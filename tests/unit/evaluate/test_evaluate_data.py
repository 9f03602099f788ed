"""Labelled examples: reading, labels, the split, the subset of a seed."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.spec.evaluation import TaskDataSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.errors import DataError
from pretrain_jobs.evaluate.data import (
    Example,
    TaskData,
    load_task_data,
    split_by_content,
    training_subset,
)


def load(root: Path, **fields) -> TaskData:
    data = TaskDataSpec(**({"uri": "train.jsonl"} | fields))
    return load_task_data(data, StorageSpec(uri=root.as_uri()), root / "scratch")


def write_rows(path: Path, rows) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def rows(count: int, labels=("bad", "good")):
    return [{"text": f"text {i}", "label": labels[i % len(labels)]} for i in range(count)]


def test_json_lines_and_csv_give_the_same_examples(tmp_path):
    write_rows(
        tmp_path / "train.jsonl", [{"text": f'a "{i}",\nb', "label": i % 2} for i in range(20)]
    )
    lines = [f'"a ""{i}"",\nb",{i % 2}' for i in range(20)]
    (tmp_path / "train.csv").write_bytes(("\ufefftext,label\n" + "\n".join(lines)).encode())

    first, second = load(tmp_path), load(tmp_path, uri="train.csv")

    assert first.train_texts == second.train_texts
    assert first.labels == second.labels == ("0", "1")
    np.testing.assert_array_equal(first.test_classes, second.test_classes)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["good", "bad"], ("bad", "good")),
        ([10, 9, -1], ("-1", "9", "10")),
        (["1", 2], ("1", "2")),
        (["b", 3], ("3", "b")),
    ],
)
def test_labels_are_in_order_of_their_value(tmp_path, labels, expected):
    write_rows(tmp_path / "train.jsonl", rows(30, labels))

    assert load(tmp_path).labels == expected


def test_a_test_file_is_the_test_and_leaves_the_training_whole(tmp_path):
    write_rows(tmp_path / "train.jsonl", rows(10))
    write_rows(tmp_path / "test.jsonl", [{"text": "x", "label": "good"}])

    data = load(tmp_path, test_uri="test.jsonl")

    assert len(data.train_texts) == 10
    assert data.test_texts == ("x",)
    assert data.labels[data.test_classes[0]] == "good"


def test_fields_have_the_names_of_the_spec(tmp_path):
    write_rows(tmp_path / "train.jsonl", [{"review": f"r{i}", "stars": i % 5} for i in range(40)])

    data = load(tmp_path, text_field="review", label_field="stars")

    assert data.labels == ("0", "1", "2", "3", "4")


def test_the_test_has_at_most_the_samples_asked_for_in_their_own_order(tmp_path):
    write_rows(tmp_path / "train.jsonl", rows(100))

    every, some = (
        load(tmp_path, test_fraction=0.5),
        load(tmp_path, test_fraction=0.5, max_test_samples=7),
    )

    assert len(some.test_texts) == 7
    positions = [every.test_texts.index(text) for text in some.test_texts]
    assert positions == sorted(positions)


examples = st.lists(
    st.builds(Example, text=st.text("ab", max_size=4), label=st.sampled_from("xyz")), min_size=1
)


@given(examples, st.floats(0.05, 0.95))
def test_a_split_loses_nothing_and_parts_no_equal_examples(given_examples, fraction):
    train, test = split_by_content(given_examples, fraction)

    assert Counter(train) + Counter(test) == Counter(given_examples)
    assert not set(train) & set(test)
    assert {example.label for example in train} == {example.label for example in given_examples}


def test_a_split_has_the_share_of_each_label():
    many = [Example(f"text {i}", "rare" if i % 10 == 0 else "common") for i in range(1_000)]

    _, test = split_by_content(many, 0.2)

    assert Counter(example.label for example in test) == {"rare": 20, "common": 180}


def test_an_example_keeps_its_side_when_the_order_changes():
    many = [Example(f"text {i}", str(i % 2)) for i in range(100)]

    assert set(split_by_content(many, 0.3)[1]) == set(split_by_content(many[::-1], 0.3)[1])


def test_a_seeds_subset_is_the_same_each_time_and_another_for_another_seed():
    first, again, other = (training_subset(1_000, 100, seed=seed) for seed in (1, 1, 2))

    np.testing.assert_array_equal(first, again)
    assert len(set(first)) == 100
    assert set(first) != set(other)
    np.testing.assert_array_equal(training_subset(5, None, seed=1), np.arange(5))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a"}\n', r"line 1 has no field 'label'; it has text"),
        ('{"label": 1}\n', r"line 1 has no field 'text'; it has label"),
        ('{"text": "a", "label": 1}\n\n{"text": 5, "label": 1}', r"line 3: text is not a string"),
        ('{"text": "a", "label": 1.5}', r"line 1: label is neither a string nor an integer"),
        ('{"text": "a", "label": true}', r"line 1: label is neither"),
        ('{"text": "a", "label": 1}\n{"text"', r"line 2 is not JSON"),
        ("[1]\n", r"line 1 is not an object"),
        ("", r"no example to train on"),
        ('{"text": "a", "label": 1}\n{"text": "b", "label": 1}\n', r"only the label '1'"),
        ('{"text": "a", "label": 1}\n{"text": "b", "label": 2}\n', r"no example for the test"),
    ],
)
def test_data_that_cannot_be_used_is_refused_by_place_and_name(tmp_path, content, message):
    (tmp_path / "train.jsonl").write_text(content)

    with pytest.raises(DataError, match=rf"train\.jsonl.*{message}"):
        load(tmp_path)


def test_a_label_that_only_the_test_has_is_refused(tmp_path):
    write_rows(tmp_path / "train.jsonl", rows(10))
    write_rows(tmp_path / "test.jsonl", [{"text": "x", "label": "new"}])

    with pytest.raises(DataError, match="'new'"):
        load(tmp_path, test_uri="test.jsonl")


@pytest.mark.parametrize(
    ("uri", "message"), [("none.jsonl", "is not there"), ("train.xlsx", "neither .jsonl nor .csv")]
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, uri, message):
    (tmp_path / "train.xlsx").write_text("")

    with pytest.raises(DataError, match=message):
        load(tmp_path, uri=uri)


def test_bytes_that_are_not_utf8_are_refused(tmp_path):
    (tmp_path / "train.csv").write_bytes(b"text,label\n\xff\xfe,1\n")

    with pytest.raises(DataError, match="UTF-8"):
        load(tmp_path, uri="train.csv")
