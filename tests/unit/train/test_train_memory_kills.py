"""Telling a rank that the kernel killed for memory from one that anybody killed."""

from pathlib import Path

from pretrain_jobs.train.memory_kills import kills_by_memory

EVENTS = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n"
CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"


def test_the_count_of_control_groups_v2_is_read(tmp_path: Path) -> None:
    (tmp_path / "memory.events").write_text(EVENTS)

    assert kills_by_memory(tmp_path) == 2


def test_the_count_of_control_groups_v1_is_read(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/memory.oom_control").write_text(CONTROL)

    assert kills_by_memory(tmp_path) == 5


def test_where_nothing_can_be_read_nothing_was_killed(tmp_path: Path) -> None:
    assert kills_by_memory(tmp_path) == 0
