"""What is known of the cluster: the newest of each object, whoever told of it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pretrain_operator.observed import ChildRef
from pretrain_operator.store import Store
from pretrain_operator.tables import Table
from pretrain_testing.raw_children import failed_create, raw_job

KEY = ("team-a", "roberta-zh")
Raw = dict[str, Any]


def thing(uid: str, version: int, value: int = 0, group: str = "job") -> Raw:
    return {
        "metadata": {"uid": uid, "resourceVersion": str(version), "namespace": "team"},
        "group": group,
        "value": value,
    }


class Watched:
    """A table and the groups that it told of."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.table: Table[int] = Table(read=self._read, changed=self._note)

    def values(self, group: str = "job") -> list[int]:
        return sorted(self.table.of(("team", group)))

    def _read(self, raw: Raw) -> tuple[tuple[str, str], int] | None:
        return None if raw["group"] == "foreign" else (("team", raw["group"]), raw["value"])

    def _note(self, group: tuple[str, str]) -> None:
        self.told.append(group[1])


def test_an_older_version_does_not_replace_a_newer_one():
    watched = Watched()
    watched.table.put(thing("a", 7, value=7))
    watched.table.put(thing("a", 5, value=5))
    assert watched.values() == [7]


def test_only_a_change_that_shows_is_told():
    watched = Watched()
    watched.table.put(thing("a", 1, value=1))
    watched.table.put(thing("a", 2, value=1))
    watched.table.put(thing("a", 3, value=2))
    watched.table.put(thing("b", 4, value=2), quietly=True)
    assert watched.told == ["job", "job"]
    assert watched.values() == [2, 2]


def test_foreign_objects_are_left_out():
    watched = Watched()
    watched.table.put(thing("a", 1, group="foreign"))
    assert len(watched.table) == 0


def test_what_we_deleted_does_not_come_back_with_a_late_event():
    watched = Watched()
    watched.table.put(thing("a", 1))
    watched.table.note_deleted("a")
    watched.table.put(thing("a", 2))
    assert watched.values() == []
    watched.table.remove(thing("a", 3))
    assert watched.table.groups == ()


def test_a_complete_list_ends_what_it_does_not_have_but_not_what_came_meanwhile():
    watched = Watched()
    watched.table.put(thing("gone", 1, value=1))
    watched.table.put(thing("there", 2, value=2))
    known = watched.table.known("team")
    watched.table.put(thing("new", 3, value=3))
    watched.table.forget_missing(known, ["there"])
    assert watched.values() == [2, 3]


def test_a_list_of_one_namespace_ends_nothing_in_another():
    watched = Watched()
    watched.table.put(thing("a", 1))
    watched.table.forget_missing(watched.table.known("other"), [])
    assert watched.values() == [0]


changes = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.booleans()), max_size=30)


@given(changes)
def test_whatever_the_order_of_events_the_newest_version_of_each_is_known(script):
    watched = Watched()
    newest: dict[str, int] = {}
    for uid, version, removed in script:
        if removed:
            watched.table.remove(thing(uid, version))
            newest.pop(uid, None)
        else:
            watched.table.put(thing(uid, version, value=version))
            newest[uid] = max(version, newest.get(uid, 0))
    assert watched.values() == sorted(newest.values())


def store() -> tuple[Store, list[tuple[str, str]]]:
    woken: list[tuple[str, str]] = []
    return Store(job_changed=woken.append, children_changed=woken.append), woken


def stored(raw: Raw, version: int) -> Raw:
    metadata = {"uid": f"uid-{version}", **raw["metadata"], "resourceVersion": str(version)}
    return {**raw, "metadata": metadata}


def test_an_event_about_a_child_wakes_the_job_it_belongs_to_and_foreign_ones_nobody():
    known, woken = store()
    job = raw_job()
    known.child_jobs.put(stored(job, 1))
    woken.clear()
    known.failed_creates.put(stored(failed_create("quota", job=job), 2))
    foreign = {"metadata": {"name": "backup-1", "uid": "u"}}
    known.failed_creates.put(stored(failed_create("quota", job=foreign), 3))
    assert woken == [KEY]
    assert len(known.failed_creates) == 1


def test_pod_templates_are_not_kept():
    known, _ = store()
    raw = stored(raw_job(), 1)
    raw["spec"]["template"] = {"spec": {"containers": ["large"]}}
    known.child_jobs.put(raw)
    assert "template" not in known.child_jobs.of(KEY)[0]["spec"]


def test_a_child_is_found_by_kind_and_name():
    known, _ = store()
    raw = stored(raw_job(), 1)
    known.child_jobs.put(raw)
    name = raw["metadata"]["name"]
    assert known.uid_of_child(KEY, ChildRef("Job", name)) == raw["metadata"]["uid"]
    assert known.uid_of_child(KEY, ChildRef("Service", name)) is None
