"""The thread that writes beside training gives way to it, and asks for no more than it has."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

from pretrain_jobs.checkpoint.writer import NICENESS, yield_to_training

NICEST = 19


def niceness_of_a_writer(niceness: int) -> int:
    """That of a thread which yields to training in a process of some niceness."""
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, niceness)
    yield_to_training()
    return os.getpriority(os.PRIO_PROCESS, thread)


def test_a_writer_whose_training_is_nicer_already_stays_as_it_is() -> None:
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(niceness_of_a_writer, NICEST).result() == NICEST


def test_a_writer_is_nicer_than_training_where_that_is_not() -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(niceness_of_a_writer, own).result()
    assert found == max(own, NICENESS)
