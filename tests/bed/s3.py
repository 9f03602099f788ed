"""Object storage of the full profile: SeaweedFS on the bridge, with one bucket."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bed.binaries import program
from bed.errors import BedError
from bed.health import answers
from bed.processes import Part
from bed.profile import BRIDGE_ADDRESS, LOOPBACK, Profile

PORT = 8333
ENDPOINT = f"http://{BRIDGE_ADDRESS}:{PORT}"
BUCKET = "pretrain"
_BUCKET_SECONDS = 120.0


@dataclass(frozen=True)
class Keys:
    """An identity of the server."""

    access_key: str
    secret_key: str = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """As the product's processes take it, and as a credentials Secret's data."""
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}


ADMIN = Keys("bed-admin", "bed-admin-secret-0000")
"""May do everything."""

READER = Keys("bed-reader", "bed-reader-secret-000")
"""May read and list, and write nothing."""


def seaweedfs(bed: Profile) -> Part:
    """The server."""
    data = bed.state / "s3"
    identities = bed.state / "s3.json"
    return Part(
        "seaweedfs",
        (str(program("weed")), "server", f"-dir={data}", f"-s3.config={identities}", *_flags()),
        healthy=answers(f"http://{LOOPBACK}:9388/"),
        files={
            identities: json.dumps({"identities": _identities()}),
            data / ".here": "",
        },
    )


def create_bucket() -> None:
    """Create the bucket, as soon as the server's parts have found each other."""
    client = s3_client()
    _insist(lambda: client.create_bucket(Bucket=BUCKET))
    _insist(lambda: client.put_object(Bucket=BUCKET, Key=".ready", Body=b""))


def _insist(request: Callable[[], object]) -> None:
    from botocore.exceptions import BotoCoreError, ClientError

    deadline = time.monotonic() + _BUCKET_SECONDS
    while True:
        try:
            request()
        except (BotoCoreError, ClientError) as error:
            if time.monotonic() > deadline:
                raise BedError(f"{ENDPOINT} does not serve: {error}") from error
            time.sleep(0.1)
        else:
            return


def s3_client(keys: Keys = ADMIN) -> Any:
    """A boto3 client of the server."""
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        endpoint_url=ENDPOINT,
        region_name="us-east-1",
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        config=Config(s3={"addressing_style": "path"}),
    )


def _identities() -> list[dict[str, object]]:
    everything = ["Admin", "Read", "Write", "List", "Tagging"]
    return [_identity("admin", ADMIN, everything), _identity("reader", READER, ["Read", "List"])]


def _identity(name: str, keys: Keys, actions: list[str]) -> dict[str, object]:
    credentials = {"accessKey": keys.access_key, "secretKey": keys.secret_key}
    return {"name": name, "credentials": [credentials], "actions": actions}


def _flags() -> tuple[str, ...]:
    """Only S3 is for pods; what the server is made of talks on loopback."""
    return (
        f"-ip={LOOPBACK}",
        f"-ip.bind={LOOPBACK}",
        "-filer",
        "-s3",
        f"-s3.ip.bind={BRIDGE_ADDRESS}",
        f"-s3.port={PORT}",
        "-s3.port.grpc=18333",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-s3.iam=false",
        "-master.port=9333",
        "-master.volumeSizeLimitMB=512",
        "-master.telemetry=false",
        "-volume.port=9340",
        "-volume.max=20",
        "-filer.port=9388",
    )
