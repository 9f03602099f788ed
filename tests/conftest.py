"""Marks every test with the level of its folder, and makes property tests repeatable."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

LEVELS = ("unit", "integration", "api", "cluster")

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        level = item.path.relative_to(root).parts[0]
        if level in LEVELS:
            item.add_marker(level)


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
