"""Real S3 servers for tests: SeaweedFS, and `rclone serve s3`, which has other habits.

Each runs on free loopback ports with its data in a directory of the test's own, and is gone once
its context ends.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import boto3
from bed.binaries import program
from botocore.config import Config
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.storage import ObjectStore
from pretrain_jobs.storage.s3 import S3Store

READY_SECONDS = 120
PORTS = (20_000, 32_000)
SMALL_PART_BYTES = 5 << 20
"""The smallest part that S3 allows (but for the last one)."""


@dataclass(frozen=True)
class S3Server:
    """A running server and an identity that may do everything on it."""

    endpoint_url: str
    access_key: str
    secret_key: str = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to use the server."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "4",
        }

    def storage(self, bucket: str, prefix: str = "") -> StorageSpec:
        """A job's storage in a bucket of the server."""
        uri = f"s3://{bucket}/{prefix}".rstrip("/")
        return StorageSpec(uri=uri, endpoint_url=self.endpoint_url, region="us-east-1")

    def create_bucket(self, name: str) -> None:
        """Create a bucket; the product itself never does."""
        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint_url,
            region_name="us-east-1",
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(s3={"addressing_style": "path"}),
        )
        client.create_bucket(Bucket=name)
        client.close()


@contextmanager
def weed_server(directory: Path) -> Iterator[S3Server]:
    """SeaweedFS: conditional writes, checksums and paging as on AWS; ready in 5 to 20 s."""
    server = S3Server(f"http://127.0.0.1:{free_port()}", "weed-key", "weed-secret-000000")
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "s3.json"
    config.write_text(json.dumps(_weed_identities(server)))
    command = [str(program("weed")), "server", "-dir", str(directory), "-s3.config", str(config)]
    with _running([*command, *_weed_flags(server)], log=directory / "weed.log", server=server):
        yield server


@contextmanager
def rclone_server(directory: Path) -> Iterator[S3Server]:
    """rclone over a local directory: ignores If-None-Match, lists in an order of its own."""
    server = S3Server(f"http://127.0.0.1:{free_port()}", "rclone-key", "rclone-secret-0000")
    data = directory / "data"
    data.mkdir(parents=True, exist_ok=True)
    binary = Path(sys.executable).with_name("rclone")
    command = [str(binary if binary.exists() else shutil.which("rclone")), "serve", "s3"]
    flags = [
        f"--addr={server.endpoint_url.removeprefix('http://')}",
        f"--auth-key={server.access_key},{server.secret_key}",
        "--vfs-cache-mode=off",
        f"--config={directory / 'rclone.conf'}",
        f"--cache-dir={directory / 'cache'}",
    ]
    with _running([*command, *flags, str(data)], log=directory / "rclone.log", server=server):
        yield server


def with_small_parts(store: ObjectStore, *, attempts: int = 4) -> S3Store:
    """The same store with parts of the smallest size that S3 allows."""
    assert isinstance(store, S3Store)
    bucket, _, prefix = store.uri.removeprefix("s3://").partition("/")
    options = replace(store.options, part_bytes=SMALL_PART_BYTES, attempts=attempts)
    return S3Store(bucket=bucket, prefix=prefix, uri=store.uri, options=options)


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Different free ports below the range from which outgoing connections take theirs."""
    with ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < count:
            port = random.SystemRandom().randrange(*PORTS)
            probe = stack.enter_context(socket.socket())
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                ports.append(port)
        return ports


def _weed_identities(server: S3Server) -> dict[str, object]:
    """One identity that may do everything and one that may only read."""
    return {
        "identities": [
            {
                "name": "all",
                "credentials": [{"accessKey": server.access_key, "secretKey": server.secret_key}],
                "actions": ["Admin", "Read", "Write", "List", "Tagging"],
            },
            {
                "name": "reader",
                "credentials": [{"accessKey": "reader", "secretKey": "reader-secret-0000"}],
                "actions": ["Read"],
            },
        ]
    }


def _weed_flags(server: S3Server) -> list[str]:
    """Every port is chosen here: the gRPC ports that SeaweedFS would derive may be taken."""
    names = ["master.port", "master.port.grpc", "volume.port", "volume.port.grpc"]
    names += ["filer.port", "filer.port.grpc", "s3.port.grpc"]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    flags = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
    flags += ["-s3.iam=false", "-master.telemetry=false"]
    flags += ["-volume.max=0", "-master.volumeSizeLimitMB=128"]
    flags += [f"-s3.port={server.endpoint_url.rpartition(':')[2]}"]
    return flags + [f"-{name}={port}" for name, port in ports.items()]


@contextmanager
def _running(command: list[str], *, log: Path, server: S3Server) -> Iterator[None]:
    """Run a server, wait until it answers HTTP, and wait for its end afterwards."""
    with ExitStack() as stack:
        output = stack.enter_context(log.open("wb"))
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env={**os.environ, "HOME": str(log.parent)},
        )
        stack.callback(_stop, process)
        _wait_until_it_answers(server, process, log)
        yield


def _wait_until_it_answers(server: S3Server, process: subprocess.Popen[bytes], log: Path) -> None:
    address = server.endpoint_url.removeprefix("http://")
    deadline = time.monotonic() + READY_SECONDS
    while not _answers(address):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"no S3 server came up: {log.read_text()[-4000:]}")
        time.sleep(0.05)


def _answers(address: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < 500
    except OSError:
        return False
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Kill: an orderly end takes SeaweedFS half a minute, and the data is not needed any more."""
    process.kill()
    process.wait()
