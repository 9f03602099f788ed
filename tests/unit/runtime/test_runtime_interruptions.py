"""An operator that is killed, whose events are lost, or that is not alone in writing."""

from __future__ import annotations

import pytest
from pretrain_operator.errors import ApiError, ApiUnreachableError
from pretrain_testing.fake_cluster import World


def test_a_crash_between_any_two_requests_is_made_good_by_the_next_process():
    undisturbed = World()
    undisturbed.create()
    undisturbed.run_to_the_end()
    for crash_at in range(len(undisturbed.api.requests)):
        world = World()
        world.create()
        crash_before(world, crash_at)
        world.run_to_the_end()
        assert world.status["phase"] == "Complete", crash_at
        assert world.status["restarts"] == {}, crash_at
        assert world.requests("apply Job") <= undisturbed.requests("apply Job") + 1, crash_at


def crash_before(world: World, number: int) -> None:
    """The operator dies before its request of that number, and another process takes over."""
    note = world.api._note

    def note_or_die(request: str) -> None:
        if len(world.api.requests) == number and not died:
            died.append(number)
            raise ApiUnreachableError("killed")
        note(request)

    died: list[int] = []
    world.api._note = note_or_die  # type: ignore[method-assign]
    reconcile = world.reconcile

    def reconcile_or_restart() -> float | None:
        try:
            return reconcile()
        except ApiUnreachableError:
            world.restart()
            return reconcile()

    world.reconcile = reconcile_or_restart  # type: ignore[method-assign]


def test_a_status_that_somebody_else_wrote_meanwhile_is_not_overwritten(world: World):
    world.create()

    def edit_meanwhile() -> None:
        world.api.put(world.raw)
        world.api.before_write = lambda: None

    world.api.before_write = edit_meanwhile
    with pytest.raises(ApiError) as conflict:
        world.reconcile()
    assert conflict.value.is_conflict
    assert not world.raw["status"]


def test_events_are_lost_rather_than_repeated(world: World):
    async def fail(event):
        raise ApiUnreachableError("no answer")

    world.api.post_event = fail  # type: ignore[method-assign]
    world.create()
    world.run_to_the_end()
    assert world.status["phase"] == "Complete"
