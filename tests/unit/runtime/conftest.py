"""A cluster in memory, in which an operator looks after one job."""

from __future__ import annotations

import pytest
from pretrain_testing.fake_cluster import World


@pytest.fixture
def world() -> World:
    return World()
