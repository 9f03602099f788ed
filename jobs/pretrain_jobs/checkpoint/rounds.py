"""Transfers of all ranks at once, in rounds, so that none waits in a collective for another's.

What is transferred, and what an outcome means, is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from pretrain_jobs.checkpoint.group import Group

TRANSFERS = 4
"""Files that one rank transfers at a time."""

ROUND_SECONDS = 10.0
"""How often ranks that are still at it meet; well below any collective's time-out."""

Transfer = Callable[[], str]
"""Does one thing; what is wrong with it, or nothing."""


def transfer(
    group: Group,
    transfers: Sequence[Transfer],
    *,
    transferred: Callable[[], int],
    tell: Callable[[int], None],
) -> list[str]:
    """Do this rank's share; by rank, the first thing that is wrong, or nothing. A collective.

    Ranks that are done go on meeting those that are not, so it may take longer than the group's
    time-out, and a rank that is lost meanwhile is noticed. `transferred` are this rank's bytes so
    far, of which `tell` is told the sum on rank 0. What a transfer raises is raised.
    """
    with ThreadPoolExecutor(TRANSFERS, thread_name_prefix="transfer") as pool:
        try:
            futures = [pool.submit(one) for one in transfers]
            while True:
                _, pending = wait(futures, ROUND_SECONDS, FIRST_EXCEPTION)
                doubt = _first_doubt(futures)
                told = group.gather((not pending, doubt, transferred()))
                if all(done for done, _, _ in told):
                    return [doubt for _, doubt, _ in told]
                if group.rank == 0:
                    tell(sum(size for _, _, size in told))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _first_doubt(futures: Sequence[Future[str]]) -> str:
    doubts = (future.result() for future in futures if future.done())
    return next((doubt for doubt in doubts if doubt), "")
