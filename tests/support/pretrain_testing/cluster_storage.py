"""Object storage of the bed as one job uses it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bed.namespaces import STORAGE_SECRET
from bed.s3 import BUCKET, ENDPOINT, s3_client

from pretrain_testing.small_jobs import small_data


@dataclass(frozen=True)
class Prefix:
    """A part of the bucket that one job has for itself."""

    name: str

    @property
    def storage(self) -> dict[str, str]:
        """`spec.storage`."""
        return {
            "uri": f"s3://{BUCKET}/{self.name}",
            "endpointUrl": ENDPOINT,
            "credentialsSecret": STORAGE_SECRET,
        }

    def upload_data(self) -> None:
        """Put the small quickstart's files where the job looks for them."""
        client = s3_client()
        for key, content in small_data():
            client.put_object(Bucket=BUCKET, Key=f"{self.name}/{key}", Body=content)

    def read(self, uri: str) -> bytes:
        """An object's content."""
        key = uri.removeprefix(f"s3://{BUCKET}/")
        body: bytes = s3_client().get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return body

    def weights(self, export_uri: str) -> bytes:
        """The weights of an exported model."""
        return self.read(f"{export_uri.rstrip('/')}/model.safetensors")

    def download(self, uri: str, directory: Path) -> None:
        """Copy every object below a URI into a directory."""
        client = s3_client()
        prefix = uri.removeprefix(f"s3://{BUCKET}/").rstrip("/") + "/"
        for found in client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]:
            path = directory / found["Key"].removeprefix(prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            client.download_file(BUCKET, found["Key"], str(path))
