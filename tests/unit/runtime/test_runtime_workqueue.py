"""The queue of jobs to reconcile: nobody twice, nobody forgotten, nobody starved."""

from __future__ import annotations

import asyncio
import itertools

from hypothesis import given
from hypothesis import strategies as st
from pretrain_operator.observe import JobKey
from pretrain_operator.workqueue import LAST_RETRY_SECONDS, WorkQueue
from pretrain_testing.virtual_time import now, run_in_virtual_time

A, B = ("team", "a"), ("team", "b")


def queue_of_old_jobs() -> WorkQueue:
    return WorkQueue(is_new=lambda _: False)


async def take_all(queue: WorkQueue) -> list[JobKey]:
    taken = []
    while len(queue):
        key = await queue.get()
        assert key is not None
        queue.done(key)
        taken.append(key)
    return taken


def test_a_key_that_is_added_three_times_is_taken_once():
    async def scenario() -> list[JobKey]:
        queue = queue_of_old_jobs()
        for key in (A, B, A, A):
            queue.add(key)
        return await take_all(queue)

    assert run_in_virtual_time(scenario()) == [A, B]


def test_a_key_that_changes_while_it_is_at_work_is_taken_again_afterwards():
    async def scenario() -> tuple[int, int]:
        queue = queue_of_old_jobs()
        queue.add(A)
        await queue.get()
        queue.add(A)
        waiting_meanwhile = len(queue)
        queue.done(A)
        return waiting_meanwhile, len(queue)

    assert run_in_virtual_time(scenario()) == (0, 1)


def test_of_two_times_the_earlier_one_stands():
    async def scenario() -> float:
        queue = queue_of_old_jobs()
        queue.add_after(A, 30)
        queue.add_after(A, 5)
        queue.add_after(A, 60)
        await queue.get()
        return now()

    assert run_in_virtual_time(scenario()) == 5


def test_a_time_that_was_set_before_a_key_was_taken_is_void():
    async def scenario() -> int:
        queue = queue_of_old_jobs()
        queue.add_after(A, 30)
        queue.add(A)
        await queue.get()
        queue.done(A)
        await asyncio.sleep(60)
        return len(queue)

    assert run_in_virtual_time(scenario()) == 0


def test_a_key_that_keeps_failing_comes_more_and_more_seldom_and_never_goes():
    async def scenario() -> list[float]:
        queue = queue_of_old_jobs()
        queue.add(A)
        times = []
        for _ in range(10):
            key = await queue.get()
            assert key is not None
            times.append(now())
            queue.retry(key)
            queue.done(key)
        return [later - earlier for earlier, later in itertools.pairwise(times)]

    gaps = run_in_virtual_time(scenario())
    assert gaps == [1, 2, 4, 8, 16, 32, *[LAST_RETRY_SECONDS] * 3]


def test_a_success_makes_the_next_failure_the_first():
    async def scenario() -> float:
        queue = queue_of_old_jobs()
        for _ in range(5):
            queue.retry(A)
        queue.succeeded(A)
        return queue.retry(A)

    assert run_in_virtual_time(scenario()) == 1


def test_a_server_that_asks_for_patience_gets_it():
    async def scenario() -> float:
        return queue_of_old_jobs().retry(A, at_least=17)

    assert run_in_virtual_time(scenario()) == 17


def test_running_jobs_go_before_a_flood_of_new_ones_and_do_not_keep_it_out():
    async def scenario() -> list[str]:
        queue = WorkQueue(is_new=lambda key: key[1].startswith("new"))
        for number in range(20):
            queue.add(("team", f"new{number}"))
        for number in range(20):
            queue.add(("team", f"old{number}"))
        return [name for _, name in await take_all(queue)]

    order = run_in_virtual_time(scenario())
    assert order[:5] == ["old0", "old1", "old2", "old3", "new0"]
    assert len(set(order)) == 40


def test_a_closed_queue_gives_out_nothing_to_any_worker():
    async def scenario() -> list[JobKey | None]:
        queue = queue_of_old_jobs()
        queue.add(A)
        queue.close()
        return [await queue.get() for _ in range(3)]

    assert run_in_virtual_time(scenario()) == [None, None, None]


keys = st.sampled_from([("team", name) for name in "abc"])
steps = st.one_of(
    st.tuples(st.just("add"), keys, st.just(0.0)),
    st.tuples(st.just("after"), keys, st.floats(0, 10)),
    st.tuples(st.just("take"), keys, st.just(0.0)),
    st.tuples(st.just("done"), keys, st.just(0.0)),
)


@given(st.lists(steps, max_size=40))
def test_a_key_is_never_at_work_twice_and_everything_added_is_taken_in_the_end(script):
    async def scenario() -> None:
        queue = queue_of_old_jobs()
        at_work: set[JobKey] = set()
        owed: set[JobKey] = set()
        for step, key, seconds in script:
            if step == "add":
                queue.add(key)
                owed.add(key)
            elif step == "after":
                queue.add_after(key, seconds)
                owed.add(key)
            elif step == "take" and len(queue):
                taken = await queue.get()
                assert taken is not None
                assert taken not in at_work
                at_work.add(taken)
                owed.discard(taken)
            elif step == "done" and key in at_work:
                at_work.remove(key)
                queue.done(key)
        for key in at_work:
            queue.done(key)
        await asyncio.sleep(20)
        assert owed <= set(await take_all(queue))

    run_in_virtual_time(scenario())
