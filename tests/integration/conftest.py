"""S3 servers of both kinds, one of each for a whole run; a test keeps to a prefix or a bucket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pretrain_testing.s3 import S3Server, rclone_server, weed_server


@pytest.fixture(scope="session")
def weed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """SeaweedFS, with an empty bucket named `tests`."""
    with weed_server(tmp_path_factory.mktemp("weed")) as server:
        server.create_bucket("tests")
        yield server


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """`rclone serve s3`, with an empty bucket named `tests`."""
    with rclone_server(tmp_path_factory.mktemp("rclone")) as server:
        server.create_bucket("tests")
        yield server
