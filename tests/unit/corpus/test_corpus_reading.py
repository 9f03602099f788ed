"""What files of each format read as: documents, rejects and their places."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pretrain_jobs.corpus.readers.records import Document, RejectCause
from pretrain_jobs.errors import DataError
from pretrain_testing.corpora import json_lines, read_file, rejects_of, texts_of

BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", BOM + '{"text":"好人好事。"}\n'.encode()),
        ("a.json", BOM + '[{"text":"好人好事。"}]'.encode()),
        ("a.csv", BOM + "text,id\n好人好事。,1\n".encode()),
        ("a.txt", BOM + "好人好事。\n".encode()),
    ],
)
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path, name: str, data: bytes) -> None:
    records = read_file(tmp_path, name, data)

    assert texts_of(records) == ["好人好事。"]
    assert rejects_of(records) == []


def test_the_last_line_needs_no_line_feed_and_the_first_is_not_lost(tmp_path: Path) -> None:
    records = read_file(tmp_path, "a.jsonl", b'{"text":"a"}\n{"text":"b"}\n{"text":"c"}')

    assert texts_of(records) == ["a", "b", "c"]


def test_empty_files_between_others_read_as_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_bytes(b"")
    (tmp_path / "in" / "3.jsonl").write_bytes(b"")

    records = read_file(tmp_path, "in/2.jsonl", json_lines(["a", "b"]))

    assert texts_of(records) == ["a", "b"]


def test_a_bad_line_is_a_reject_with_line_offset_and_cause(tmp_path: Path) -> None:
    first = json_lines(["一"])

    records = read_file(tmp_path, "a.jsonl", first + b'{"text": "x\n' + json_lines(["三"]))

    assert texts_of(records) == ["一", "三"]
    [reject] = rejects_of(records)
    assert reject.cause == RejectCause.JSON
    assert reject.place == f"{(tmp_path / 'a.jsonl').as_uri()}, line 2, byte {len(first)}"


def test_values_that_are_no_objects_are_rejects(tmp_path: Path) -> None:
    data = '[]\n42\nnull\n"x"\n{"text":"好。"}\n'.encode()

    records = read_file(tmp_path, "a.jsonl", data)

    assert texts_of(records) == ["好。"]
    assert [r.cause for r in rejects_of(records)] == [RejectCause.NOT_OBJECT] * 4


def test_blank_lines_are_neither_records_nor_rejects(tmp_path: Path) -> None:
    records = read_file(tmp_path, "a.jsonl", b'{"text":"a"}\n\n  \n{"text":"b"}\n')

    assert texts_of(records) == ["a", "b"]
    assert rejects_of(records) == []


def test_bytes_that_are_not_utf8_refuse_their_line_only(tmp_path: Path) -> None:
    first = json_lines(["一"])

    records = read_file(tmp_path, "a.jsonl", first + b'{"text":"\xff\xfe"}\n' + json_lines(["三"]))

    assert texts_of(records) == ["一", "三"]
    [reject] = rejects_of(records)
    assert (reject.cause, reject.line, reject.offset) == (RejectCause.ENCODING, 2, len(first))
    assert f"byte {len(first) + 9}" in reject.message


def test_half_a_surrogate_pair_is_a_reject(tmp_path: Path) -> None:
    records = read_file(tmp_path, "a.jsonl", b'{"text":"a\\ud83d"}\n{"text":"\\ud83d\\ude00"}\n')

    assert texts_of(records) == ["😀"]
    assert [r.cause for r in rejects_of(records)] == [RejectCause.ENCODING]


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"text":' + b"9" * 5000 + b"}"])
def test_json_beyond_the_parsers_limits_is_a_reject(tmp_path: Path, line: bytes) -> None:
    records = read_file(tmp_path, "a.jsonl", line + b"\n" + json_lines(["b"]))

    assert texts_of(records) == ["b"]
    assert len(rejects_of(records)) == 1


def test_only_line_feeds_end_records(tmp_path: Path) -> None:
    text = "前\u2028后\u0085末"

    records = read_file(tmp_path, "a.jsonl", json_lines([text]))

    assert texts_of(records) == [text]


def test_carriage_returns_before_line_feeds_are_no_text(tmp_path: Path) -> None:
    lines = read_file(tmp_path, "a.jsonl", '{"text":"一。"}\r\n{"text":"二。"}\r\n'.encode())
    plain = read_file(tmp_path, "a.txt", "一。\r\n续。\r\n\r\n二。\r\n".encode())

    assert texts_of(lines) == ["一。", "二。"]
    assert texts_of(plain) == ["一。\n续。", "二。"]


def test_text_of_another_type_is_a_reject(tmp_path: Path) -> None:
    data = '{"text":null}\n{"text":5}\n{"text":["a"]}\n{"text":"好。"}\n'.encode()

    records = read_file(tmp_path, "a.jsonl", data)

    assert texts_of(records) == ["好。"]
    assert [r.cause for r in rejects_of(records)] == [RejectCause.TYPE] * 3
    assert [r.message.rsplit(" ", 1)[-1] for r in rejects_of(records)] == [
        "null",
        "number",
        "array",
    ]


def test_a_missing_field_is_named_with_what_is_there(tmp_path: Path) -> None:
    [reject] = read_file(tmp_path, "a.jsonl", b'{"body":"a","id":1}\n')

    assert not isinstance(reject, Document)
    assert (reject.cause, reject.line) == (RejectCause.MISSING_FIELD, 1)
    assert "'text'" in reject.message
    assert "body, id" in reject.message


def test_the_field_of_the_text_can_be_chosen(tmp_path: Path) -> None:
    records = read_file(tmp_path, "a.jsonl", b'{"body":"a"}\n', text_field="body")

    assert texts_of(records) == ["a"]


def test_a_json_array_is_read_element_by_element(tmp_path: Path) -> None:
    data = json.dumps([{"text": "一"}, 5, {"text": None}, {"x": 1.5}, {"text": "二"}]).encode()

    records = read_file(tmp_path, "a.json", b" \n" + data)

    assert texts_of(records) == ["一", "二"]
    assert [r.cause for r in rejects_of(records)] == [
        RejectCause.NOT_OBJECT,
        RejectCause.TYPE,
        RejectCause.MISSING_FIELD,
    ]
    assert "element 2" in rejects_of(records)[0].message


@pytest.mark.parametrize(
    ("tail", "cause"),
    [
        (b'{"text":"x', RejectCause.TRUNCATED),
        (b'{"text" "x"}]', RejectCause.JSON),
        (b'{"text":"\xff\xfe"}]', RejectCause.ENCODING),
    ],
)
def test_a_broken_json_array_keeps_what_came_before(
    tmp_path: Path, tail: bytes, cause: RejectCause
) -> None:
    records = read_file(tmp_path, "a.json", b'[{"text":"a"},{"text":"b"},' + tail)

    assert texts_of(records) == ["a", "b"]
    [reject] = rejects_of(records)
    assert reject.cause == cause
    assert "the rest is lost" in reject.message


def test_a_json_file_that_is_no_array_is_a_reject(tmp_path: Path) -> None:
    [reject] = read_file(tmp_path, "a.json", json_lines(["a", "b"]))

    assert not isinstance(reject, Document)
    assert "jsonl" in reject.message


def test_plain_text_parts_documents_at_blank_lines(tmp_path: Path) -> None:
    records = read_file(tmp_path, "a.txt", "\n\n一\n行\n\n \t\n二\n".encode())

    assert texts_of(records) == ["一\n行", "二"]
    assert [(r.line, r.offset) for r in records] == [(3, 2), (7, 14)]


def test_plain_text_parts_documents_at_a_line_of_choice(tmp_path: Path) -> None:
    data = "前句。\n]]这句以括号开头。\n\n后句。\n]]\n另一篇。\n".encode()

    records = read_file(tmp_path, "a.txt", data, document_separator="]]")

    assert texts_of(records) == ["前句。\n]]这句以括号开头。\n\n后句。", "另一篇。"]


def test_plain_text_that_is_not_utf8_refuses_its_document_only(tmp_path: Path) -> None:
    records = read_file(tmp_path, "a.txt", b"a\n\nb\xff\n\nc\n")

    assert texts_of(records) == ["a", "c"]
    assert [(r.cause, r.line, r.offset) for r in rejects_of(records)] == [
        (RejectCause.ENCODING, 3, 3)
    ]


@pytest.mark.parametrize("slice_bytes", [1 << 20, 30, 8])
def test_csv_keeps_quoted_line_breaks_and_quotes(tmp_path: Path, slice_bytes: int) -> None:
    data = 'id,text\n1,"一行\n两行 ""引号"""\n2,好\n'.encode()

    records = read_file(tmp_path, "a.csv", data, slice_bytes=slice_bytes)

    assert texts_of(records) == ['一行\n两行 "引号"', "好"]


def test_a_csv_field_may_be_of_any_length(tmp_path: Path) -> None:
    [document] = read_file(tmp_path, "a.csv", b"text\n" + "好".encode() * 200_000 + b"\n")

    assert isinstance(document, Document)
    assert len(document.text) == 200_000


def test_bad_csv_rows_are_rejects_and_the_others_stay(tmp_path: Path) -> None:
    data = b'id,text\n1,a\n2\n3,b\xff\n4,"c"d\n\n5,e\n'

    records = read_file(tmp_path, "a.csv", data)

    assert texts_of(records) == ["a", "e"]
    assert [(r.cause, r.line) for r in rejects_of(records)] == [
        (RejectCause.MISSING_FIELD, 3),
        (RejectCause.ENCODING, 4),
        (RejectCause.CSV, 5),
    ]


def test_a_csv_file_without_the_column_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'text' \(it has: id, body\)"):
        read_file(tmp_path, "a.csv", b"id,body\n1,a\n")


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_parquet_columns_of_any_text_type_are_read(tmp_path: Path, kind: pa.DataType) -> None:
    values = pa.array(["一", None, "二", None, "三"], pa.string()).cast(kind)
    table = pa.table({"id": [1, 2, 3, 4, 5], "text": values})
    pq.write_table(table, tmp_path / "made.parquet", row_group_size=2)

    records = read_file(tmp_path, "a.parquet", (tmp_path / "made.parquet").read_bytes())

    assert texts_of(records) == ["一", "二", "三"]
    assert [r.cause for r in rejects_of(records)] == [RejectCause.TYPE] * 2
    assert "row 2" in rejects_of(records)[0].message


@pytest.mark.parametrize(("column", "told"), [("body", "no column 'text'"), ("text", "int64")])
def test_parquet_without_a_text_column_is_refused(tmp_path: Path, column: str, told: str) -> None:
    pq.write_table(pa.table({column: [1, 2]}), tmp_path / "made.parquet")

    with pytest.raises(DataError, match=told):
        read_file(tmp_path, "a.parquet", (tmp_path / "made.parquet").read_bytes())


def test_a_parquet_file_that_is_cut_is_a_reject(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a"] * 1000}), tmp_path / "made.parquet")

    [reject] = read_file(tmp_path, "a.parquet", (tmp_path / "made.parquet").read_bytes()[:-50])

    assert not isinstance(reject, Document)
    assert reject.cause == RejectCause.PARQUET
