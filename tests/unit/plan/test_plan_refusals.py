"""What the API server does not take: a spec that must be edited, or a wait that may pass."""

from dataclasses import replace
from typing import Any

import pytest
from pretrain_api.reports import Cause
from pretrain_api.status import Phase
from pretrain_operator.observed import ChildRef, Manifest
from pretrain_operator.plan.admission import cause_of_refusal
from pretrain_operator.plan.refused import retry_gap
from pretrain_testing.plan_simulator import Simulation, make_job, tokenizer_result

LIMITS = (
    'Job.batch "roberta-zh-0a1b2-train-0" is invalid: '
    "spec.template.spec.containers[0].resources.limits: Required value: "
    "Limit must be set for non overcommitable resources"
)
QUOTA = (
    "exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, "
    "used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=8"
)
RESTRICTED = (
    'forbidden: violates PodSecurity "restricted:latest": '
    "runAsUser=0 (pod must not set runAsUser=0)"
)


def before_training(**spec: Any) -> Simulation:
    """A job whose gang is about to be created."""
    sim = Simulation(make_job(**spec))
    sim.settle()
    sim.run("tokenizer")
    sim.succeed("tokenizer", tokenizer_result(cached=frozenset({"preprocess"})))
    return sim


def refusing(message: str, *, code: int, kind: str = "Job") -> Simulation:
    """A job whose training has a child that the API server refuses."""

    def refuse(manifest: Manifest) -> tuple[int, str] | None:
        train = manifest["metadata"]["labels"]["pretrain.dev/stage"] == "train"
        return (code, message) if train and manifest["kind"] == kind else None

    sim = Simulation(make_job(), refuse=refuse)
    sim.settle()
    sim.run("tokenizer")
    sim.succeed("tokenizer", tokenizer_result(cached=frozenset({"preprocess"})))
    return sim


def correct(sim: Simulation) -> None:
    """Edit the spec into one that is taken."""
    sim.refuse = lambda _manifest: None
    sim.edit(workers=sim.job.spec.workers.model_copy(update={"image": "mine:2"}))
    sim.settle()


def test_a_job_that_the_api_server_finds_invalid_is_not_accepted_and_leaves_nothing() -> None:
    sim = refusing(LIMITS, code=422)

    accepted = sim.condition("Accepted")
    assert (accepted.status, accepted.reason) == ("False", "AdmissionDenied")
    assert "spec.template.spec.containers[0].resources.limits" in accepted.message
    assert accepted.observed_generation == sim.job.metadata.generation
    assert sim.services() == []
    assert not any("train" in name for name in sim.observed.config_maps)
    assert sim.phase() is Phase.PENDING
    assert sim.condition("Running").reason == "AdmissionDenied"
    assert "Correct the spec" in sim.job.status.blocked_by
    assert sim.job.status.restarts == {}


def test_a_denied_spec_waits_for_an_edit_and_is_told_once() -> None:
    sim = refusing(LIMITS, code=422)
    created, writes = list(sim.created), sim.writes

    for _ in range(5):
        sim.wait(3600)

    assert sim.created == created
    assert sim.writes == writes
    assert sim.event_reasons().count("AdmissionDenied") == 1
    assert sim.plan().requeue_after is None


def test_a_restarted_operator_remembers_a_denial_from_status() -> None:
    sim = refusing(LIMITS, code=422)
    created = list(sim.created)

    sim.observed = replace(sim.observed, refusals=())
    sim.refuse = lambda _manifest: None
    sim.wait(60)

    assert sim.created == created
    assert sim.condition("Accepted").reason == "AdmissionDenied"


def test_a_corrected_spec_is_accepted_without_being_created_anew() -> None:
    sim = refusing(LIMITS, code=422)

    correct(sim)

    accepted = sim.condition("Accepted")
    assert (accepted.status, accepted.observed_generation) == ("True", 2)
    assert sim.child("train").attempt == 1
    assert sim.services() == ["roberta-zh-0a1b2-train-1"]
    sim.run("train")
    assert sim.phase() is Phase.TRAINING
    assert sim.job.status.restarts == {}


def test_a_refused_config_map_keeps_its_job_from_being_created() -> None:
    sim = refusing("metadata.annotations: Too long", code=422, kind="ConfigMap")

    assert sim.condition("Accepted").reason == "AdmissionDenied"
    assert sim.child_names("train") == []


def test_an_edit_that_does_not_help_is_told_anew() -> None:
    sim = refusing(LIMITS, code=422)

    sim.edit(workers=sim.job.spec.workers.model_copy(update={"image": "mine:2"}))
    sim.settle()

    accepted = sim.condition("Accepted")
    assert (accepted.status, accepted.observed_generation) == ("False", 2)
    assert sim.event_reasons().count("AdmissionDenied") == 2
    assert sim.stage("train").attempt == 2


def test_pods_that_break_the_namespaces_rules_are_told_as_denied_though_their_job_was_taken() -> (
    None
):
    sim = before_training()
    sim.change("train", pods_refused=RESTRICTED)

    sim.settle()

    accepted = sim.condition("Accepted")
    assert (accepted.status, accepted.reason) == ("False", "AdmissionDenied")
    assert "runAsUser=0 (pod must not set runAsUser=0)" in accepted.message
    assert sim.child_names("train") == []
    assert sim.services() == []
    assert sim.stage("train").attempt == 1

    template = {"spec": {"securityContext": {"runAsUser": 1000}}}
    sim.edit(workers=sim.job.spec.workers.model_copy(update={"pod_template": template}))
    sim.settle()
    assert sim.condition("Accepted").status == "True"
    assert sim.child("train").attempt == 1


def test_a_slice_that_was_refused_for_a_moment_does_not_deny_slices_that_run() -> None:
    sim = Simulation(make_job())
    sim.until("preprocess")

    sim.change("preprocess", pods_refused=RESTRICTED)
    sim.settle()

    assert sim.phase() is Phase.PREPROCESSING
    assert sim.condition("Accepted").status == "True"


def test_denied_pods_of_a_suspended_job_are_no_matter_until_it_goes_on() -> None:
    sim = before_training()
    sim.change("train", pods_refused=RESTRICTED)
    sim.edit(suspend=True)

    sim.settle()

    assert sim.phase() is Phase.SUSPENDED
    assert sim.condition("Accepted").status == "True"


@pytest.mark.parametrize(
    ("message", "code", "cause"),
    [
        (LIMITS, 422, Cause.ADMISSION_DENIED),
        ("error decoding patch: json: cannot unmarshal", 400, Cause.ADMISSION_DENIED),
        (
            "failed to create typed patch object (a/x; batch/v1, Kind=Job): "
            ".spec.template.spec.nodeSelectr: field not declared in schema",
            500,
            Cause.ADMISSION_DENIED,
        ),
        (f'jobs.batch "x" is forbidden: {QUOTA}', 403, Cause.QUOTA),
        (f"forbidden: {QUOTA}", None, Cause.QUOTA),
        (RESTRICTED, None, Cause.ADMISSION_DENIED),
        (
            "forbidden: failed quota: q: must specify limits.cpu for: main",
            None,
            Cause.ADMISSION_DENIED,
        ),
        (
            "forbidden: [maximum memory usage per Container is 1Gi, but limit is 4Gi]",
            None,
            Cause.ADMISSION_DENIED,
        ),
        ('admission webhook "w" denied the request: no', 403, Cause.ADMISSION_DENIED),
        (
            "forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            None,
            Cause.ADMISSION_DENIED,
        ),
        (
            'forbidden: error looking up service account a/b: serviceaccount "b" not found',
            None,
            Cause.INFRASTRUCTURE,
        ),
        (
            'jobs.batch "x" is forbidden: unable to create new content in namespace a because it '
            "is being terminated",
            403,
            Cause.INFRASTRUCTURE,
        ),
        (
            'jobs.batch is forbidden: User "system:serviceaccount:a:b" cannot create resource '
            '"jobs" in API group "batch" in the namespace "c"',
            403,
            Cause.INFRASTRUCTURE,
        ),
        (
            'Internal error occurred: failed calling webhook "w": connection refused',
            None,
            Cause.INFRASTRUCTURE,
        ),
        ("etcdserver: request timed out", None, Cause.INFRASTRUCTURE),
        ('namespaces "a" not found', 404, Cause.INFRASTRUCTURE),
    ],
)
def test_a_refusal_is_about_the_spec_the_quota_or_neither(
    message: str, code: int | None, cause: Cause
) -> None:
    assert cause_of_refusal(message, code=code) is cause


def test_what_may_pass_by_itself_is_told_and_tried_again() -> None:
    text = 'jobs.batch is forbidden: User "u" cannot create resource "jobs"'
    sim = refusing(text, code=403)

    assert text in sim.job.status.blocked_by
    assert sim.condition("Accepted").status == "True"
    assert sim.condition("Running").reason == "Infrastructure"
    assert sim.plan().requeue_after == 10


def test_gaps_double_up_to_five_minutes() -> None:
    seconds = [retry_gap(count).total_seconds() for count in (1, 2, 5, 6, 7, 100_000)]

    assert seconds == [10, 20, 160, 300, 300, 300]


def test_children_of_a_denied_attempt_are_deleted_when_they_are_seen_late() -> None:
    sim = refusing(LIMITS, code=422)
    name = "roberta-zh-0a1b2-train-0"

    sim.observed = replace(sim.observed, services=(name,), config_maps=(name,))
    made = sim.plan()

    assert set(made.delete) == {ChildRef("Service", name), ChildRef("ConfigMap", name)}
