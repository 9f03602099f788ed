"""Paths of the API and what a request is about."""

from __future__ import annotations

import pytest
from pretrain_operator.addresses import JOBS, PODS, PRETRAIN_JOBS, what_is_asked
from yarl import URL

SERVER = URL("https://10.96.0.1:443")


def test_paths_of_core_and_of_groups():
    assert PODS.path(None) == "/api/v1/pods"
    assert JOBS.path("team", "x") == "/apis/batch/v1/namespaces/team/jobs/x"
    assert (
        PRETRAIN_JOBS.path("team", "x", subresource="status")
        == "/apis/pretrain.dev/v1alpha1/namespaces/team/pretrainjobs/x/status"
    )


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods?watch=true", ("watch", "pods")),
        ("GET", "/api/v1/namespaces/team/pods?limit=500", ("list", "pods")),
        ("GET", "/apis/batch/v1/jobs", ("list", "jobs")),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/o/leases/x", ("get", "leases")),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/o/leases/x", ("update", "leases")),
        ("POST", "/api/v1/namespaces/team/events", ("create", "events")),
        ("PATCH", "/apis/batch/v1/namespaces/team/jobs/x", ("patch", "jobs")),
        (
            "PATCH",
            "/apis/pretrain.dev/v1alpha1/namespaces/team/pretrainjobs/x/status",
            ("patch", "pretrainjobs/status"),
        ),
        ("DELETE", "/api/v1/namespaces/team/services/x", ("delete", "services")),
        ("GET", "/apis", ("get", "discovery")),
        ("GET", "/apis/batch/v1", ("get", "discovery")),
        ("GET", "/api", ("get", "discovery")),
    ],
)
def test_a_request_is_called_what_rbac_calls_it(method, path, expected):
    assert what_is_asked(method, SERVER.join(URL(path))) == expected
