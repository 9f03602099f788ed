"""Rules of URIs and of the storage: where things may lie."""

from __future__ import annotations

from collections.abc import Iterator

from pretrain_api.problems import Path, Problem
from pretrain_api.spec import PretrainJobSpec

SCHEMES = ("s3", "file")


def uris_are_readable(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse URIs that no stage could open."""
    for path, uri in _uris(spec):
        message = _uri_problem(uri)
        if message:
            yield Problem(path, message)


def storage_is_absolute(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse a storage that has no scheme: everything relative is relative to it."""
    storage = spec.storage
    if storage is None:
        return
    if "://" not in storage.uri:
        yield Problem(
            ("storage", "uri"),
            f'"{storage.uri}" has no scheme; write s3://bucket/prefix or file:///directory',
        )
    endpoint = storage.endpoint_url
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        yield Problem(
            ("storage", "endpointUrl"),
            f'"{endpoint}" is no URL of a server; it begins with https:// or http://',
        )


def storage_has_one_identity(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse keys and workload identity together: only one of them would be used."""
    storage = spec.storage
    if storage and storage.credentials_secret and storage.service_account_name:
        yield Problem(
            ("storage",),
            "credentialsSecret and serviceAccountName are both set; give the keys in a Secret "
            "or a service account with an identity of its own, not both",
        )


def local_volume_is_one(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse a place for local copies that is none, or two."""
    volume = spec.checkpoint.local_volume
    if volume is None:
        return
    if (volume.host_path is None) == (volume.persistent_volume_claim is None):
        yield Problem(
            ("checkpoint", "localVolume"),
            "give hostPath or persistentVolumeClaim, and not both; other volumes do not outlive "
            "their pod",
        )
    elif volume.host_path and ".." in volume.host_path.path.split("/"):
        yield Problem(
            ("checkpoint", "localVolume", "hostPath", "path"),
            f'"{volume.host_path.path}" climbs out of its place with ".."',
        )


RULES = (uris_are_readable, storage_is_absolute, storage_has_one_identity, local_volume_is_one)


def _uris(spec: PretrainJobSpec) -> Iterator[tuple[Path, str]]:
    corpus = spec.corpus
    for i, source in enumerate(corpus.sources):
        yield ("corpus", "sources", i, "uri"), source.uri
    for i, source in enumerate(corpus.validation.sources):
        yield ("corpus", "validation", "sources", i, "uri"), source.uri
    for i, task in enumerate(spec.evaluation.tasks):
        yield ("evaluation", "tasks", i, "data", "uri"), task.data.uri
        if task.data.test_uri is not None:
            yield ("evaluation", "tasks", i, "data", "testUri"), task.data.test_uri
    single: dict[Path, str | None] = {
        ("storage", "uri"): spec.storage.uri if spec.storage else None,
        ("corpus", "dataset", "uri"): corpus.dataset.uri if corpus.dataset else None,
        ("tokenizer", "uri"): spec.tokenizer.uri,
        ("preprocess", "userDictionary"): spec.preprocess.user_dictionary,
        ("model", "initFrom"): spec.model.init_from,
        ("checkpoint", "uri"): spec.checkpoint.uri,
        ("export", "uri"): spec.export.uri,
    }
    yield from ((path, uri) for path, uri in single.items() if uri is not None)


def _uri_problem(uri: str) -> str:
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return _relative_problem(uri)
    if scheme not in SCHEMES:
        return f'"{uri}" has the scheme {scheme}; s3:// and file:// are read'
    if scheme == "file" and not rest.startswith("/"):
        return f'"{uri}" is no absolute path; write file:///{rest}'
    if scheme == "s3" and not rest.partition("/")[0]:
        return f'"{uri}" names no bucket; write s3://bucket/key'
    return _climbs(uri, rest)


def _relative_problem(uri: str) -> str:
    if uri.startswith("/"):
        return (
            f'"{uri}" has no scheme; write file://{uri}, or a path without the leading / to mean '
            "one under the storage"
        )
    return _climbs(uri, uri)


def _climbs(uri: str, path: str) -> str:
    return f'"{uri}" climbs out of its place with ".."' if ".." in path.split("/") else ""
