"""Every CEL rule, judged by a real API server on its own two examples."""

from typing import Any

import pytest
from pretrain_api.names import LONGEST_JOB_NAME, NAME_RULE
from pretrain_api.rules import MINIMAL_SPEC, CelRule
from pretrain_api.schema import all_rules
from pretrain_testing.stored_jobs import NotTakenError, StoredJobs

RULES = all_rules()
ON_CREATE = [rule for rule in RULES if rule.refused.before is None]
ON_UPDATE = [rule for rule in RULES if rule.refused.before is not None]


def rule_id(rule: CelRule) -> str:
    return f"{rule.path or 'metadata'}: {rule.message[:50]}"


def named(name: str) -> dict[str, Any]:
    return {"kind": "PretrainJob", "metadata": {"name": name}, "spec": dict(MINIMAL_SPEC)}


def test_the_table_has_every_rule_of_the_crd(jobs: StoredJobs) -> None:
    assert len(ON_CREATE) + len(ON_UPDATE) == len(RULES) >= 50
    assert len(ON_UPDATE) >= 20


@pytest.mark.parametrize("rule", ON_CREATE, ids=rule_id)
def test_a_rule_takes_its_good_example_and_refuses_its_bad_one_in_its_own_words(
    rule: CelRule, jobs: StoredJobs
) -> None:
    jobs.try_out(rule.accepted.document())

    with pytest.raises(NotTakenError) as refused:
        jobs.try_out(rule.refused.document())

    assert rule.words in str(refused.value)


@pytest.mark.parametrize("rule", ON_UPDATE, ids=rule_id)
def test_a_field_that_decides_what_is_made_keeps_its_value(rule: CelRule, jobs: StoredJobs) -> None:
    before = rule.refused.document_before()
    assert before is not None
    jobs.create(before)

    jobs.replace(rule.accepted.document(), dry_run=True)
    with pytest.raises(NotTakenError) as refused:
        jobs.replace(rule.refused.document(), dry_run=True)

    assert rule.words in str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        "a" * (LONGEST_JOB_NAME + 1),
        "a" * 63,
        "my.job",
        "9lives",
    ],
)
def test_a_name_whose_pods_would_have_no_host_name_is_refused_with_the_limit(
    name: str, jobs: StoredJobs
) -> None:
    with pytest.raises(NotTakenError) as refused:
        jobs.try_out(named(name))

    assert NAME_RULE in str(refused.value)
    assert str(LONGEST_JOB_NAME) in str(refused.value)


@pytest.mark.parametrize("name", ["a", "a" * LONGEST_JOB_NAME, "roberta-zh-2"])
def test_a_name_that_fits_is_taken(name: str, jobs: StoredJobs) -> None:
    assert jobs.try_out(named(name))["metadata"]["name"] == name


def test_a_count_of_zero_is_told_as_such_and_by_no_rule_that_divides_by_it(
    jobs: StoredJobs,
) -> None:
    document = named("no-workers")
    document["spec"] = {**MINIMAL_SPEC, "workers": {"replicas": 0}}

    with pytest.raises(NotTakenError) as refused:
        jobs.try_out(document)

    assert "spec.workers.replicas" in str(refused.value)
    assert "modulus" not in str(refused.value)


@pytest.mark.parametrize(
    ("batch", "micro", "told"),
    [
        (
            10,
            4,
            "10 is no multiple of 96 (3 replicas x 8 processes x microBatchSize 4); the "
            "nearest are 96",
        ),
        (
            1000,
            1,
            "1000 is no multiple of 24 (3 replicas x 8 processes); the nearest are 984 and 1008",
        ),
    ],
)
def test_a_batch_that_ranks_cannot_share_is_told_with_the_nearest_that_they_can(
    batch: int, micro: int, told: str, jobs: StoredJobs
) -> None:
    document = named("odd-batch")
    document["spec"] = {
        **MINIMAL_SPEC,
        "workers": {"replicas": 3, "processesPerWorker": 8},
        "training": {"globalBatchSize": batch, "microBatchSize": micro},
    }

    with pytest.raises(NotTakenError) as refused:
        jobs.try_out(document)

    assert f"training.globalBatchSize: {told}" in str(refused.value)


@pytest.mark.parametrize("name", ["Not A Name", "keys/mine"])
def test_a_name_that_no_secret_can_have_is_refused(name: str, jobs: StoredJobs) -> None:
    document = named("no-such-secret")
    storage = {"uri": "s3://bucket", "credentialsSecret": name}
    document["spec"] = {**MINIMAL_SPEC, "storage": storage}

    with pytest.raises(NotTakenError) as refused:
        jobs.try_out(document)

    assert "spec.storage.credentialsSecret" in str(refused.value)


def test_several_mistakes_are_all_told_at_once(jobs: StoredJobs) -> None:
    document = named("two-mistakes")
    document["spec"] = {
        **MINIMAL_SPEC,
        "storage": {"uri": "data/here"},
        "failurePolicy": {"backoff": {"initialSeconds": 6, "maximumSeconds": 5}},
    }

    with pytest.raises(NotTakenError) as refused:
        jobs.try_out(document)

    assert "spec.storage" in str(refused.value)
    assert "spec.failurePolicy.backoff" in str(refused.value)
