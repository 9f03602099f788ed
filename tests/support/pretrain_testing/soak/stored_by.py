"""Reads what a job has in the bed's object storage under its checkpoints."""

from __future__ import annotations

import json

from bed.s3 import BUCKET, s3_client
from pretrain_jobs.checkpoint.layout import COMMIT, LATEST
from pretrain_jobs.checkpoint.manifest import decode_abandonment

from pretrain_testing.disturbed_job import DisturbedJob, keys
from pretrain_testing.soak.stored import Stored


def stored_by(job: DisturbedJob) -> Stored:
    """All its objects there, by their keys below the job's own prefix."""
    client, prefix = s3_client(), job.checkpoint_prefix()

    def read(key: str) -> bytes:
        body: bytes = client.get_object(Bucket=BUCKET, Key=prefix + key)["Body"].read()
        return body

    found = sorted(key.removeprefix(prefix) for key in keys(prefix))
    commits = [key for key in found if key.endswith(f"/{COMMIT}")]
    uploads = client.list_multipart_uploads(Bucket=BUCKET, Prefix=prefix).get("Uploads", [])
    return Stored(
        keys=found,
        marks={key for key in commits if decode_abandonment(read(key))},
        latest=int(json.loads(read(LATEST))["step"]) if LATEST in found else None,
        uploads=[upload["Key"] for upload in uploads],
    )
