"""Object storage behind one small interface: `file://` directories and `s3://` buckets."""

from pretrain_jobs.storage.base import (
    AlreadyExistsError,
    NotFoundError,
    ObjectInfo,
    ObjectStore,
)
from pretrain_jobs.storage.uri import open_store

__all__ = ["AlreadyExistsError", "NotFoundError", "ObjectInfo", "ObjectStore", "open_store"]
