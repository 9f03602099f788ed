"""What is known of the objects of one kind: the newest version of each, grouped by owner.

Watches feed a table, and so do the answers to our own writes, so that a plan sees what the one
before it did. An older version never replaces a newer one, and what we deleted does not come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pretrain_operator.changes import Weight
from pretrain_operator.observe import JobKey
from pretrain_operator.observed import Manifest

Value = TypeVar("Value")
Group = JobKey
"""Namespace and name of what the objects belong to."""


@dataclass(frozen=True, slots=True)
class Entry(Generic[Value]):
    """An object: its group, its resourceVersion and what is kept of it."""

    group: Group
    version: int
    value: Value


def _let_go(_group: object, _value: object) -> None:
    """Keep nothing of what is gone."""


def _all_of_it(_before: object, _value: object) -> Weight:
    """Every change matters."""
    return Weight.FULL


class Table(Generic[Value]):
    """Objects by uid.

    `read` gives the group of a raw object and what to keep of it, None for one that is not ours.
    `changed` is told the group of every object that came, went or looks different. Of what came
    or looks different `weigh` tells whether `changed_little` is told instead, or nobody. `gone`
    is given what is dropped, before anyone is told.
    """

    def __init__(
        self,
        *,
        read: Callable[[Manifest], tuple[Group, Value] | None],
        changed: Callable[[Group], None],
        weigh: Callable[[Value | None, Value], Weight] = _all_of_it,
        changed_little: Callable[[Group], None] | None = None,
        gone: Callable[[Group, Value], None] = _let_go,
    ) -> None:
        self._read = read
        self._changed = changed
        self._weigh = weigh
        self._changed_little = changed_little or changed
        self._gone = gone
        self._entries: dict[str, Entry[Value]] = {}
        self._groups: dict[Group, dict[str, Entry[Value]]] = {}
        self._deleted: set[str] = set()

    def __len__(self) -> int:
        """How many objects are known."""
        return len(self._entries)

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups that have an object."""
        return tuple(self._groups)

    def of(self, group: Group) -> tuple[Value, ...]:
        """What is kept of all objects of a group."""
        return tuple(entry.value for entry in self._groups.get(group, {}).values())

    def put(self, raw: Manifest, *, quietly: bool = False) -> None:
        """Take over an object that was listed, watched or, quietly, written by ourselves."""
        found = self._read(raw)
        uid, version = uid_of(raw), version_of(raw)
        before = self._entries.get(uid)
        if found is None or uid in self._deleted or (before and before.version >= version):
            return
        group, value = found
        entry = Entry(group, version, value)
        self._entries[uid] = entry
        self._groups.setdefault(group, {})[uid] = entry
        if not quietly:
            self._tell(group, before.value if before else None, value)

    def remove(self, raw: Manifest) -> None:
        """Forget an object that a watch tells is gone."""
        uid = uid_of(raw)
        self._deleted.discard(uid)
        self._drop(uid)

    def note_deleted(self, uid: str) -> None:
        """Forget an object that we deleted, whatever watches still tell of it."""
        self._deleted.add(uid)
        self._drop(uid, tell=self._changed_little)

    def known(self, namespace: str | None) -> frozenset[str]:
        """The uids of all objects in a namespace (None: in all)."""
        entries = self._entries.items()
        return frozenset(uid for uid, e in entries if namespace in (None, e.group[0]))

    def forget_missing(self, known: frozenset[str], listed: Iterable[str]) -> None:
        """Forget what was known before a complete list that does not have it."""
        listed = frozenset(listed)
        self._deleted &= listed
        for uid in known - listed:
            self._drop(uid)

    def _tell(self, group: Group, before: Value | None, value: Value) -> None:
        if before == value:
            return
        match self._weigh(before, value):
            case Weight.FULL:
                self._changed(group)
            case Weight.LITTLE:
                self._changed_little(group)
            case Weight.NONE:
                pass

    def _drop(self, uid: str, *, tell: Callable[[Group], None] | None = None) -> None:
        entry = self._entries.pop(uid, None)
        if entry is None:
            return
        group = self._groups[entry.group]
        del group[uid]
        if not group:
            del self._groups[entry.group]
        self._gone(entry.group, entry.value)
        (tell or self._changed)(entry.group)


def uid_of(raw: Manifest) -> str:
    """The uid of an object."""
    return str(raw["metadata"]["uid"])


def version_of(raw: Manifest) -> int:
    """The resourceVersion of an object, which grows with every write (KEP-5504)."""
    return int(raw["metadata"]["resourceVersion"])
