"""Batches, schedule, metrics and summaries of an evaluation."""

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_api.spec.evaluation import FineTuningSpec, TaskSpec
from pretrain_jobs.evaluate.encode import epoch_batches, pad
from pretrain_jobs.evaluate.finetune import count_steps, learning_rate
from pretrain_jobs.evaluate.metrics import measure
from pretrain_jobs.evaluate.results import Results, RunResult, summarise

TASK = TaskSpec.model_validate(
    {"name": "sentiment", "data": {"uri": "x.csv"}, "metrics": ["accuracy"], "seeds": [1, 2]}
)


def run(initialisation, seed, accuracy) -> RunResult:
    return RunResult(
        task="sentiment",
        initialisation=initialisation,
        seed=seed,
        train_samples=10,
        test_samples=5,
        steps=3,
        metrics={"accuracy": accuracy},
    )


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(1, 9), st.integers(0, 5))
def test_an_epoch_has_every_example_once(lengths, batch_size, epoch):
    batches = epoch_batches(np.array(lengths), batch_size, seed=3, epoch=epoch)

    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert max(len(batch) for batch in batches) <= batch_size


def test_the_order_follows_from_seed_and_epoch():
    lengths = np.arange(100) % 7 + 1
    first, again, other_seed, other_epoch = (
        [batch.tolist() for batch in epoch_batches(lengths, 8, seed=seed, epoch=epoch)]
        for seed, epoch in ((1, 0), (1, 0), (2, 0), (1, 1))
    )

    assert first == again
    assert first != other_seed
    assert first != other_epoch


def test_batches_hold_texts_of_like_length():
    lengths = np.random.default_rng(0).integers(1, 128, 1_024)

    batches = epoch_batches(lengths, 16, seed=1, epoch=0)

    positions = sum(len(batch) * lengths[batch].max() for batch in batches)
    assert positions < 1.15 * lengths.sum()


def test_rows_are_padded_at_the_right_to_the_longest():
    ids, mask = pad([np.array([5, 6, 7]), np.array([8])], 9)

    np.testing.assert_array_equal(ids, [[5, 6, 7], [8, 9, 9]])
    np.testing.assert_array_equal(mask, [[1, 1, 1], [1, 0, 0]])


def test_the_learning_rate_rises_to_its_peak_and_falls_towards_nothing():
    tuning = FineTuningSpec(learning_rate=1e-3, warmup_ratio=0.2)

    rates = [learning_rate(step, steps=10, tuning=tuning) for step in range(10)]

    assert rates[:3] == [0.5e-3, 1e-3, 1e-3]
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert rates[-1] == pytest.approx(1e-3 / 8)


def test_the_learning_rate_may_warm_up_for_the_whole_run():
    tuning = FineTuningSpec(learning_rate=1e-3, warmup_ratio=1.0)

    assert learning_rate(9, steps=10, tuning=tuning) == 1e-3


def test_a_last_short_batch_is_a_step():
    assert count_steps(65, FineTuningSpec(batch_size=32, epochs=2)) == 6


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60))
def test_metrics_are_what_their_definitions_say_of_the_whole_set(pairs):
    truth, predicted = np.array(pairs).T
    f1s = []
    for label in {*truth, *predicted}:
        hits = sum(one == other == label for one, other in pairs)
        precision = hits / max(1, sum(predicted == label))
        recall = hits / max(1, sum(truth == label))
        f1s.append(2 * precision * recall / (precision + recall) if hits else 0.0)
    ones, others = np.eye(4)[truth], np.eye(4)[predicted]

    found = measure(truth, predicted, ["accuracy", "f1", "mcc"])

    assert found == {
        "accuracy": pytest.approx(sum(one == other for one, other in pairs) / len(pairs)),
        "f1": pytest.approx(np.mean(f1s)),
        "mcc": pytest.approx(correlation(ones, others)),
    }


def correlation(ones, others):
    """Matthews' coefficient by its definition: the correlation of indicators [n, K]."""
    ones, others = ones - ones.mean(axis=0), others - others.mean(axis=0)
    spread = (ones * ones).sum() * (others * others).sum()
    return (ones * others).sum() / np.sqrt(spread) if spread > 1e-9 else 0.0


def test_matthews_coefficient_of_two_classes_is_their_correlation():
    truth, predicted = np.array([1, 1, 1, 0, 0, 1, 0, 0]), np.array([1, 0, 1, 0, 0, 1, 1, 0])

    found = measure(truth, predicted, ["mcc"])

    assert found == {"mcc": pytest.approx(np.corrcoef(truth, predicted)[0, 1])}


def test_f1_of_two_classes_is_their_mean():
    truth, predicted = np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0])

    assert measure(truth, predicted, ["f1"]) == {"f1": pytest.approx((6 / 7 + 0) / 2)}


def test_a_summary_has_mean_spread_and_difference():
    runs = [
        run("pretrained", 1, 0.8),
        run("pretrained", 2, 0.9),
        run("random", 1, 0.5),
        run("random", 2, 0.6),
    ]

    result = summarise(TASK, labels=["a", "b"], runs=runs)

    assert result.figures["pretrained"]["accuracy"].mean == pytest.approx(0.85)
    assert result.figures["pretrained"]["accuracy"].stdev == statistics.stdev([0.8, 0.9])
    assert result.difference == {"accuracy": pytest.approx(0.3)}
    flat = Results(tasks=[result]).flat()
    assert set(flat) == {
        f"sentiment/{weights}/accuracy/{name}"
        for weights in ("pretrained", "random")
        for name in ("mean", "stdev")
    }


def test_without_a_comparison_there_is_no_difference():
    task = TASK.model_copy(update={"compare_with_random": False, "seeds": [1]})

    result = summarise(task, labels=["a", "b"], runs=[run("pretrained", 1, 0.8)])

    assert set(result.figures) == {"pretrained"}
    assert result.figures["pretrained"]["accuracy"].stdev == 0.0
    assert result.difference == {}
