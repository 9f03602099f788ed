"""Special tokens, read from a tokenizer's own files."""

import json
from pathlib import Path

import pytest
from pretrain_api.spec.objective import ClmSpec, MlmSpec, ObjectiveSpec
from pretrain_jobs.errors import DataError, UserError
from pretrain_jobs.tokenizer.special import check_objective, load_special_tokens


def write_tokenizer(
    directory: Path,
    *,
    vocab: dict[str, int] | list[list],
    added: dict[str, int] | None = None,
    plain: dict[str, int] | None = None,
    config: dict | None = None,
    special_map: dict | None = None,
) -> Path:
    """tokenizer.json with special tokens `added` and ordinary added ones `plain`."""
    tokens = [
        {"id": number, "content": text, "special": special}
        for group, special in ((added or {}, True), (plain or {}, False))
        for text, number in group.items()
    ]
    data = {"model": {"vocab": vocab}, "added_tokens": tokens}
    (directory / "tokenizer.json").write_text(json.dumps(data))
    if config is not None:
        (directory / "tokenizer_config.json").write_text(json.dumps(config))
    if special_map is not None:
        (directory / "special_tokens_map.json").write_text(json.dumps(special_map))
    return directory


def ordinary(count: int) -> dict[str, int]:
    return {f"t{i}": i for i in range(count)}


def test_the_length_counts_added_tokens(tmp_path):
    directory = write_tokenizer(
        tmp_path, vocab=ordinary(65_530), plain={f"<extra{i}>": 65_530 + i for i in range(10)}
    )

    assert load_special_tokens(directory).length == 65_540


def test_roles_are_those_of_the_configuration(tmp_path):
    directory = write_tokenizer(
        tmp_path,
        vocab=ordinary(50_264),
        added={"<mask>": 50_264},
        config={"mask_token": {"content": "<mask>", "lstrip": True}, "eos_token": "t7"},
    )

    tokens = load_special_tokens(directory)

    assert (tokens.mask, tokens.eos, tokens.end_of_document) == (50_264, 7, 7)
    assert tokens.special == {50_264, 7}


def test_the_special_tokens_map_tells_what_the_configuration_does_not(tmp_path):
    directory = write_tokenizer(
        tmp_path,
        vocab=ordinary(9),
        config={"pad_token": "t1"},
        special_map={"pad_token": "t2", "sep_token": "t3"},
    )

    tokens = load_special_tokens(directory)

    assert (tokens.pad, tokens.sep) == (1, 3)


def test_usual_names_count_when_no_file_says_otherwise(tmp_path):
    directory = write_tokenizer(
        tmp_path, vocab=ordinary(9), added={"[MASK]": 4, "[CLS]": 2, "[PAD]": 0}
    )

    tokens = load_special_tokens(directory)

    assert (tokens.mask, tokens.cls, tokens.pad, tokens.sep) == (4, 2, 0, None)


def test_a_role_that_is_null_has_no_token(tmp_path):
    directory = write_tokenizer(
        tmp_path, vocab=ordinary(9), added={"<|endoftext|>": 8}, config={"bos_token": None}
    )

    tokens = load_special_tokens(directory)

    assert tokens.bos is None
    assert tokens.eos == 8


def test_a_usual_name_that_is_an_ordinary_token_is_none(tmp_path):
    directory = write_tokenizer(tmp_path, vocab={"[MASK]": 0, "a": 1})

    assert load_special_tokens(directory).mask is None


def test_the_last_token_is_never_the_end_of_a_document_by_itself(tmp_path):
    directory = write_tokenizer(tmp_path, vocab=ordinary(100))

    assert load_special_tokens(directory).end_of_document is None


def test_the_end_of_a_document_may_be_named(tmp_path):
    directory = write_tokenizer(tmp_path, vocab=ordinary(100), config={"eos_token": "t1"})

    assert load_special_tokens(directory, end_of_document="t5").end_of_document == 5


def test_an_end_of_document_that_the_tokenizer_lacks_is_refused(tmp_path):
    directory = write_tokenizer(tmp_path, vocab=ordinary(10))

    with pytest.raises(UserError, match=r"tokenizer\.endOfDocument is '<eod>'"):
        load_special_tokens(directory, end_of_document="<eod>")


def test_added_tokens_are_special_and_all_others_are_not(tmp_path):
    directory = write_tokenizer(
        tmp_path, vocab=ordinary(10), added={"[SEP]": 3}, plain={"word": 10}
    )

    assert load_special_tokens(directory).special == {3, 10}


def test_a_unigram_vocabulary_is_a_list_in_order_of_id(tmp_path):
    directory = write_tokenizer(
        tmp_path, vocab=[["<pad>", 0.0], ["</s>", 0.0], ["a", -1.5]], config={"eos_token": "</s>"}
    )

    tokens = load_special_tokens(directory)

    assert (tokens.length, tokens.eos) == (3, 1)


@pytest.mark.parametrize("content", ["", "[]", '{"model": {}}', '{"model": {"vocab": {}}}'])
def test_a_damaged_tokenizer_is_refused(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)

    with pytest.raises(DataError, match=r"tokenizer\.json"):
        load_special_tokens(tmp_path)


def test_a_directory_without_tokenizer_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"has no tokenizer\.json"):
        load_special_tokens(tmp_path)


@pytest.mark.parametrize(
    ("objective", "named"),
    [
        (ObjectiveSpec(mlm=MlmSpec()), "mask token"),
        (ObjectiveSpec(clm=ClmSpec()), r"end-of-document token.*tokenizer\.endOfDocument"),
    ],
)
def test_an_objective_without_its_token_is_refused(tmp_path, objective, named):
    tokens = load_special_tokens(write_tokenizer(tmp_path, vocab=ordinary(10)))

    with pytest.raises(UserError, match=named):
        check_objective(tokens, objective)


def test_next_sentence_needs_a_separator(tmp_path):
    directory = write_tokenizer(tmp_path, vocab=ordinary(10), added={"[MASK]": 4, "[CLS]": 2})
    objective = ObjectiveSpec(mlm=MlmSpec(next_sentence=True))

    with pytest.raises(UserError, match="nextSentence"):
        check_objective(load_special_tokens(directory), objective)


def test_an_objective_with_its_tokens_is_accepted(tmp_path):
    directory = write_tokenizer(tmp_path, vocab=ordinary(10), added={"[MASK]": 4, "</s>": 5})
    tokens = load_special_tokens(directory)

    check_objective(tokens, ObjectiveSpec(mlm=MlmSpec()))
    check_objective(tokens, ObjectiveSpec(clm=ClmSpec()))
