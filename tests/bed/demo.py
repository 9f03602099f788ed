"""The quickstart on the bed: its data in object storage, its job on both nodes, its model here."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pretrainctl.samples.manifests import find_sample

from bed.cluster import Bed
from bed.commands import run
from bed.errors import BedError
from bed.namespaces import create_namespace
from bed.s3 import ADMIN, BUCKET, ENDPOINT, s3_client

JOB = "quickstart"
STORAGE = f"s3://{BUCKET}/default"
"""The chart's default storage in the bed."""

_PATIENCE_SECONDS = 3600.0
_LOOK_SECONDS = 3.0


def run_demo(bed: Bed) -> Path:
    """Run the quickstart to its end, as a user does, and fetch the exported model."""
    environment = {**ADMIN.environment, "AWS_ENDPOINT_URL": ENDPOINT, "AWS_REGION": "us-east-1"}
    data = ("samples", "data", JOB, "--to", STORAGE)
    run(sys.executable, "-m", "pretrainctl", *data, environment=environment)
    create_namespace(bed.api, "default")
    bed.kubectl("delete", "ptj", JOB, "--ignore-not-found")
    bed.kubectl("apply", "--filename=-", stdin=find_sample(JOB).text)
    _follow(bed)
    return _fetch_export(bed)


def _follow(bed: Bed) -> None:
    """Print what `kubectl get ptj` says each time that more than the age has changed."""
    said: list[str] = []
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        header, row = bed.kubectl("get", "ptj", JOB).splitlines()
        *columns, _age = row.split()
        if columns != said:
            print(row if said else f"{header}\n{row}", flush=True)
        said = columns
        phase = bed.kubectl("get", "ptj", JOB, "--output=jsonpath={.status.phase}")
        if phase == "Complete":
            return
        if phase == "Failed":
            raise BedError(f"the job failed:\n{bed.kubectl('describe', 'ptj', JOB)}")
        time.sleep(_LOOK_SECONDS)
    raise BedError(f"the job is not complete after {_PATIENCE_SECONDS:g} s")


def _fetch_export(bed: Bed) -> Path:
    """The export's files, as its user has them."""
    uri = bed.kubectl("get", "ptj", JOB, "--output=jsonpath={.status.exportUri}")
    prefix = uri.removeprefix(f"s3://{BUCKET}/").rstrip("/") + "/"
    folder = bed.profile.state / "demo" / "export"
    folder.mkdir(parents=True, exist_ok=True)
    client = s3_client()
    for found in client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]:
        path = folder / found["Key"].removeprefix(prefix)
        path.parent.mkdir(parents=True, exist_ok=True)
        client.download_file(BUCKET, found["Key"], str(path))
    return folder
