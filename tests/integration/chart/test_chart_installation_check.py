"""The check that `helm test` runs: what it asks for, and what it says of a Lease."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pretrain_operator.installation_check import NotInstalledError, check, holder

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ENVIRONMENT = {
    "PRETRAIN_OPERATOR_NAMESPACES": "",
    "PRETRAIN_OPERATOR_LEASE_NAME": "leader",
    "PRETRAIN_OPERATOR_POD_NAMESPACE": "system",
}


def lease(*, renewed: datetime, holder_identity: str = "operator-0") -> dict[str, Any]:
    return {
        "spec": {
            "holderIdentity": holder_identity,
            "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "leaseDurationSeconds": 15,
        }
    }


def test_a_renewed_lease_has_a_holder() -> None:
    assert holder(lease(renewed=NOW - timedelta(seconds=15)), now=NOW) == "operator-0"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, "no operator holds the Lease"),
        ({"spec": {"leaseDurationSeconds": 15}}, "no operator holds the Lease"),
        (lease(renewed=NOW, holder_identity=""), "no operator holds the Lease"),
        (lease(renewed=NOW - timedelta(seconds=16)), "operator-0 .* renewed it 16 s ago"),
    ],
)
def test_a_lease_without_a_live_holder_is_told(found: dict[str, Any], said: str) -> None:
    with pytest.raises(NotInstalledError, match=said):
        holder(found, now=NOW)


@pytest.mark.parametrize(
    ("namespaces", "lists"),
    [
        ("", ["/apis/pretrain.dev/v1alpha1/pretrainjobs?limit=1"]),
        (
            "a,b",
            [
                "/apis/pretrain.dev/v1alpha1/namespaces/a/pretrainjobs?limit=1",
                "/apis/pretrain.dev/v1alpha1/namespaces/b/pretrainjobs?limit=1",
            ],
        ),
    ],
)
def test_only_what_the_operator_may_read_is_asked_for(namespaces: str, lists: list[str]) -> None:
    asked: list[str] = []

    def get(path: str) -> dict[str, Any]:
        asked.append(path)
        return lease(renewed=datetime.now(UTC)) if "/leases/" in path else {}

    lines = check(get, {**ENVIRONMENT, "PRETRAIN_OPERATOR_NAMESPACES": namespaces})

    assert asked == [*lists, "/apis/coordination.k8s.io/v1/namespaces/system/leases/leader"]
    assert lines[-1] == "Lease system/leader is held by operator-0"
