"""Marks every test with the level of its folder and makes property tests repeatable."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

LEVELS = ("unit", "integration", "api", "cluster")
CLUSTER_SECONDS = 1800
"""For a test with all that it prepares: whole jobs run in it, on two busy cores."""

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m LEVEL` the other levels' folders are not even imported."""
    level, wanted = level_of(collection_path), config.getoption("markexpr")
    return True if level and wanted in LEVELS and level != wanted else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported here stays to the end, so that no collection of garbage looks at it.

    Torch and transformers alone make a million objects. Counting those of a test is not disturbed:
    what it makes is collected as ever, by `gc.collect` at once.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if level := level_of(item.path):
            item.add_marker(level)


def level_of(path: Path) -> str | None:
    """The level of a test file or folder; None for what lies elsewhere."""
    parts = path.relative_to(Path(__file__).parent).parts
    return parts[0] if parts and parts[0] in LEVELS else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files of tests/data anew instead of comparing with them",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written anew."""
    return bool(request.config.getoption("--update-golden"))
