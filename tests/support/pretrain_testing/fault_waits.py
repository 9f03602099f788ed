"""Faults that a job waits out: it goes on by itself when somebody mends them."""

from __future__ import annotations

from typing import Any

from bed.s3 import ADMIN

from pretrain_testing.cluster_signs import applied, failed, pod_refused, unschedulable, waiting
from pretrain_testing.fault import (
    QUICK,
    SCHEDULER_SECONDS,
    Fault,
    preprocess_container,
    preprocess_pod,
)
from pretrain_testing.fault_world import PLACE

ENV_FROM_SECRET = {"secretKeyRef": {"name": "hub", "key": "token"}}
NO_TEMPLATE: dict[str, Any] = {"preprocess": {"podTemplate": None}}

WAITS = (
    Fault(
        "image",
        "an image that cannot be pulled",
        "ImagePull",
        "Waits; another image in the spec begins the attempt anew at once. After 10 minutes the "
        "attempt ends, and after 2 restarts the job.",
        waiting("ErrImagePull", "ImagePullBackOff"),
        r"cannot get the image: .*127.0.0.1:1/none/preprocess:1",
        preprocess_container(image="127.0.0.1:1/none/preprocess:1", imagePullPolicy="IfNotPresent"),
        edit=NO_TEMPLATE,
    ),
    Fault(
        "secret",
        "a Secret that is not there",
        "",
        "Waits; goes on once the Secret is made.",
        waiting("CreateContainerConfigError"),
        r'waiting \(CreateContainerConfigError\): .*secret "keys-to-come" not found',
        {"storage": {"credentialsSecret": "keys-to-come"}},
        mend=lambda world: world.make_secret("keys-to-come", **ADMIN.environment),
    ),
    Fault(
        "secret-key",
        "a Secret without the key",
        "",
        "Waits; goes on once the Secret has the key.",
        waiting("CreateContainerConfigError"),
        r"couldn't find key token in Secret",
        preprocess_container(env=[{"name": "HF_TOKEN", "valueFrom": ENV_FROM_SECRET}]),
        mend=lambda world: world.make_secret("hub", user="nobody", token="any"),
    ),
    Fault(
        "quota",
        "a namespace's quota that is used up",
        "Quota",
        "Waits, for as long as it takes; goes on once there is room.",
        pod_refused(),
        r"has no pod for it: .*exceeded quota: small, requested: requests.memory=64Mi, "
        r"used: requests.memory=0, limited: requests.memory=1Mi",
        {},
        mend=lambda world: world.raise_quota("32Gi"),
        seconds=SCHEDULER_SECONDS,
        limited=True,
    ),
    Fault(
        "admission",
        "a child that the API server finds invalid",
        "AdmissionDenied",
        "Accepted=False; waits for an edit of the spec.",
        applied(),
        r"refuses the Job .*Limit must be set for non overcommitable resources",
        preprocess_container(resources={"requests": {"nvidia.com/gpu": "1"}}),
        edit=NO_TEMPLATE,
    ),
    Fault(
        "pod-security",
        "a pod that the namespace's Pod Security forbids",
        "AdmissionDenied",
        "Accepted=False; waits for an edit of the spec.",
        pod_refused(),
        r'refuses the pods .*violates PodSecurity "restricted:latest": .*runAsUser=0',
        preprocess_pod(securityContext={"runAsUser": 0}),
        edit=NO_TEMPLATE,
    ),
    Fault(
        "no-place",
        "no node that fits",
        "Quota",
        "Waits, until `pendingDeadlineSeconds` if that is set; goes on once there is a place.",
        unschedulable(),
        r"waiting \(Unschedulable\): 0/2 nodes are available: .*node affinity/selector",
        {"scheduling": {"nodeSelector": {PLACE: "$place"}}},
        mend=lambda world: world.make_place(),
        seconds=SCHEDULER_SECONDS,
    ),
    Fault(
        "bucket",
        "a bucket that is not there",
        "StorageUnavailable",
        "Tried again, 10 times; goes on once the bucket is made.",
        failed(),
        r"ended with StorageUnavailable: .*bucket .*create it",
        {"storage": {"uri": "s3://$bucket/job"}, "failurePolicy": QUICK},
        mend=lambda world: world.make_bucket(),
    ),
    Fault(
        "credentials",
        "credentials that the storage refuses",
        "StorageUnavailable",
        "Tried again, 10 times; goes on once the Secret is corrected.",
        failed(),
        r"ended with StorageUnavailable: .*refused \(403\); check the credentials",
        {"storage": {"credentialsSecret": "wrong-keys"}, "failurePolicy": QUICK},
        mend=lambda world: world.make_secret("wrong-keys", **ADMIN.environment),
    ),
)
