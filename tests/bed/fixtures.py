"""Fixtures of the test levels that need a bed; each level's conftest says which profile."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bed.cluster import Bed
from bed.failures import dump_failure
from bed.lifecycle import down, up
from bed.namespaces import passing_namespace
from bed.profile import ProfileName, profile

_OURS = "brought-up-by-tests"
_NAME_CHARACTERS = 40


@contextmanager
def bed_for_session(name: ProfileName) -> Iterator[Bed]:
    """A bed that is up. Taken down by the last session that uses it, unless a person brought it up.

    BED_KEEP=1 leaves it up as well.
    """
    bed = profile(name)
    bed.state.parent.mkdir(parents=True, exist_ok=True)
    with (bed.state.parent / f".{bed.state.name}.users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        if up(bed):
            (bed.state / _OURS).touch()
        try:
            yield Bed(bed)
        finally:
            if (bed.state / _OURS).exists() and not os.environ.get("BED_KEEP"):
                _down_unless_used(bed.state, users.fileno(), lambda: down(bed))


@pytest.fixture
def namespace(bed: Bed, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace with Pod Security *restricted* and the storage's Secret in it."""
    with passing_namespace(bed.api, _slug(request.node.name)) as name:
        yield name


@pytest.fixture
def kubectl(bed: Bed) -> Callable[..., str]:
    """`kubectl("get", "pods", "-n", namespace)`: what it prints; `stdin=` is its input."""
    return bed.kubectl


@pytest.fixture(scope="session")
def kubernetes_client(bed: Bed) -> Iterator[Any]:
    """An `ApiClient` of the official client, as the administrator."""
    from kubernetes.config import new_client_from_config  # type: ignore[import-untyped]

    client = new_client_from_config(str(bed.kubeconfig))
    yield client
    client.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write down what a failed test leaves in the cluster, before it goes."""
    report = yield
    arguments = getattr(item, "funcargs", {})
    bed = arguments.get("bed")
    if report.failed and report.when != "teardown" and isinstance(bed, Bed):
        folder = dump_failure(bed, test=item.nodeid, namespace=arguments.get("namespace"))
        report.sections.append(("what is left in the cluster", str(folder)))
    return report


def _slug(test: str) -> str:
    """A test's name as the beginning of a namespace's."""
    words = re.sub(r"[^a-z0-9]+", "-", test.lower().removeprefix("test_"))
    return words[:_NAME_CHARACTERS].strip("-")


def _down_unless_used(state: Path, lock: int, down: Callable[[], None]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    down()
