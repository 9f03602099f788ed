"""Masked language modelling: exact numbers, whole words, never a special token, keyed by sample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_jobs.dataset.counter_random import fold
from pretrain_jobs.objectives.batch import IGNORED
from pretrain_jobs.objectives.mlm import Masked, MaskingRule, MaskVocabulary, mask_tokens

PAD, UNK, CLS, SEP, MASK = 0, 1, 2, 3, 4
LENGTH = 60
"""Ids of the vocabulary; the last two are added special tokens."""
SPECIAL = np.isin(np.arange(LENGTH), [PAD, UNK, CLS, SEP, MASK, 58, 59])
DEFAULT = MaskingRule()
VOCABULARY = MaskVocabulary(MASK, np.flatnonzero(~SPECIAL), SPECIAL & (np.arange(LENGTH) != UNK))


def mask_rows(
    rows: list[list[int]],
    *,
    words: list[list[int]] | None = None,
    keys: list[int] | None = None,
    rule: MaskingRule = DEFAULT,
) -> Masked:
    """Mask rows of ids; CLS, SEP and PAD are no content; `words` has 1 where a word begins."""
    ids = np.array(rows, np.int64)
    content = ~np.isin(ids, [PAD, CLS, SEP])
    return mask_tokens(
        ids,
        content=content,
        word_starts=np.array(words, np.bool_) if words else content,
        real=np.count_nonzero(ids != PAD, axis=1),
        keys=fold(1, np.array(keys if keys is not None else range(len(rows)))),
        rule=rule,
        vocabulary=VOCABULARY,
    )


def labelled(masked: Masked) -> np.ndarray:
    return masked.labels != IGNORED


@pytest.mark.parametrize(
    ("length", "labels"), [(3, 1), (10, 2), (30, 4), (50, 8), (110, 16), (512, 77), (534, 80)]
)
def test_the_number_of_labels_is_rounded_half_to_even_at_least_one_and_capped(length, labels):
    row = [CLS, *[10] * (length - 2), SEP]

    masked = mask_rows([row], rule=MaskingRule(max_predictions=80))

    assert np.count_nonzero(labelled(masked)) == labels


def test_a_single_token_between_specials_is_the_one_that_is_predicted():
    masked = mask_rows([[CLS, 10, SEP]])

    assert masked.labels.tolist() == [[IGNORED, 10, IGNORED]]


def test_a_row_without_content_has_no_label_and_lacks_none():
    masked = mask_rows([[CLS, SEP, PAD], [PAD, PAD, PAD]])

    assert not labelled(masked).any()
    assert masked.unfilled.tolist() == [0, 0]


rows_of_words = st.lists(
    st.lists(st.integers(1, 5), min_size=1, max_size=12), min_size=1, max_size=4
)


@given(
    rows=rows_of_words,
    key=st.integers(0, 2**32),
    cap=st.none() | st.integers(1, 6),
    probability=st.sampled_from([0.05, 0.15, 0.4, 0.9]),
)
def test_words_are_whole_and_as_many_as_taking_them_in_random_order_gives(
    rows, key, cap, probability
):
    width = max(sum(words) for words in rows) + 2
    ids = [[CLS, *[10] * sum(words), SEP] for words in rows]
    starts = [[0, *[int(i == 0) for size in words for i in range(size)], 0] for words in rows]
    rule = MaskingRule(probability=probability, max_predictions=cap)

    masked = mask_rows(
        [row + [PAD] * (width - len(row)) for row in ids],
        words=[row + [0] * (width - len(row)) for row in starts],
        keys=[key + number for number in range(len(rows))],
        rule=rule,
    )

    for number, words in enumerate(rows):
        due = max(round(probability * (sum(words) + 2)), 1)
        due = min(due, cap or due, sum(words))
        chosen = labelled(masked)[number, 1 : sum(words) + 1]
        parts = np.split(chosen, np.cumsum(words)[:-1])
        assert all(part.all() or not part.any() for part in parts)
        assert chosen.sum() + masked.unfilled[number] == due
        left_out = [size for size, part in zip(words, parts, strict=True) if not part.any()]
        assert all(size > masked.unfilled[number] for size in left_out)


@pytest.mark.parametrize(("words", "due"), [([20] * 2, 3), ([7], 1)])
def test_words_that_exceed_what_is_due_stay_untouched_and_are_counted(words, due):
    ids = [CLS, *[10] * sum(words), SEP]
    starts = [0, *[int(i == 0) for size in words for i in range(size)], 0]

    masked = mask_rows([ids], words=[starts], rule=MaskingRule(max_predictions=due))

    assert not labelled(masked).any()
    assert masked.input_ids.tolist() == [ids]
    assert masked.unfilled.tolist() == [due]


def test_a_word_cut_by_the_sample_before_is_a_word_of_its_own():
    row = [CLS, 10, 11, 12, SEP, 13, 14, SEP]
    words = [[0, 0, 0, 1, 0, 0, 0, 0]] * 2000

    chosen = labelled(mask_rows([row] * 2000, words=words, rule=MaskingRule(probability=0.25)))

    groups = {tuple(np.flatnonzero(each).tolist()) for each in chosen}
    assert groups == {(1, 2), (3,), (5, 6)}


def test_without_whole_words_tokens_are_chosen_one_by_one():
    row = [CLS, *[10] * 18, SEP]
    words = [[0, 1, *[0] * 17, 0]] * 300

    chosen = labelled(mask_rows([row] * 300, words=words, rule=MaskingRule(whole_word=False)))

    assert (chosen.sum(axis=1) == 3).all()
    assert chosen[:, 1:-1].any(axis=0).all()


def test_special_tokens_and_padding_are_never_predicted_nor_changed():
    row = [CLS, 10, 11, SEP, 12, 59, 13, SEP, 14, SEP, PAD, PAD]
    special = np.isin(row, [CLS, SEP, PAD, 59])

    masked = mask_rows([row] * 10_000)

    assert not labelled(masked)[:, special].any()
    assert (masked.input_ids[:, special] == np.array(row)[special]).all()
    assert labelled(masked)[:, ~special].any(axis=0).all()


def test_an_unknown_token_may_be_predicted_under_its_own_id():
    masked = mask_rows([[CLS, UNK, SEP]])

    assert masked.labels[0, 1] == UNK


def test_of_the_predicted_80_percent_are_masked_10_random_and_10_kept():
    ids = np.full((2000, 128), 10)

    masked = mask_rows(ids.tolist())

    chosen = labelled(masked)
    now = masked.input_ids[chosen]
    assert (masked.input_ids[~chosen] == 10).all()
    assert (masked.labels[chosen] == 10).all()
    assert np.mean(now == MASK) == pytest.approx(0.8, abs=0.01)
    assert np.mean(now == 10) == pytest.approx(0.1 + 0.1 / 53, abs=0.01)


def test_random_replacements_are_all_ordinary_tokens_about_equally_often():
    ids = np.full((400, 512), 10)

    masked = mask_rows(
        ids.tolist(), rule=MaskingRule(probability=0.9, mask_ratio=0, random_ratio=1)
    )

    counts = np.bincount(masked.input_ids[labelled(masked)], minlength=LENGTH)
    assert not counts[SPECIAL].any()
    assert counts[~SPECIAL].min() > 0.9 * counts[~SPECIAL].mean()
    assert counts[~SPECIAL].max() < 1.1 * counts[~SPECIAL].mean()


def test_positions_are_predicted_equally_often():
    ids = np.full((20_000, 32), 10)

    chosen = labelled(mask_rows(ids.tolist()))

    share = chosen.mean(axis=0)
    assert share == pytest.approx(np.full(32, 5 / 32), abs=0.02)


@given(data=st.data())
def test_a_row_is_masked_the_same_alone_and_in_any_batch(data):
    rows = np.random.default_rng(0).integers(5, 58, (9, 40))
    starts = np.random.default_rng(1).random((9, 40)) < 0.6
    whole = mask_rows(rows.tolist(), words=starts.tolist())
    chosen = data.draw(st.lists(st.integers(0, 8), min_size=1, max_size=5))

    part = mask_rows(rows[chosen].tolist(), words=starts[chosen].tolist(), keys=chosen)

    assert part.input_ids.tolist() == whole.input_ids[chosen].tolist()
    assert part.labels.tolist() == whole.labels[chosen].tolist()


def test_rows_are_masked_the_same_on_both_sides_of_the_limit_of_one_chunk():
    rows = np.full((300, 512), 10).tolist()

    whole, last = mask_rows(rows), mask_rows(rows[-1:], keys=[299])

    assert last.labels.tolist() == whole.labels[-1:].tolist()


def test_a_long_row_is_masked_in_one_piece():
    masked = mask_rows([[10] * 100_000])

    assert np.count_nonzero(labelled(masked)) == 15_000
