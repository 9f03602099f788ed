"""The CRD in the cluster is of another version than the operator."""

from __future__ import annotations

from pretrain_testing.fake_cluster import World
from pretrain_testing.logged import logged
from pretrain_testing.plan_simulator import SPEC


def test_a_crd_without_a_newer_field_makes_no_endless_writes(world: World):
    keep = world.api.put

    def put_without_workers(raw):
        status = {k: v for k, v in (raw.get("status") or {}).items() if k != "workers"}
        return keep({**raw, "status": status} if raw["kind"] == "PretrainJob" else raw)

    world.api.put = put_without_workers  # type: ignore[method-assign]
    world.create()
    world.settle()
    before = world.requests("patch status")
    for _ in range(5):
        world.wait(60)
    assert world.requests("patch status") == before


def test_a_job_runs_without_the_fields_that_only_a_newer_crd_knows_which_is_told_once(
    world: World,
):
    world.create_raw({**SPEC, "reservation": {"hours": 0}})
    with logged() as records:
        world.run_to_the_end()
    told = [each.getMessage() for each in records if "CRD is newer" in each.getMessage()]
    assert world.status["phase"] == "Complete"
    assert len(told) == 1
    assert "spec.reservation" in told[0]
