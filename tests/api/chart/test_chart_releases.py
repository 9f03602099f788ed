"""Install, upgrade, uninstall and install again on a real API server; about 30 seconds."""

import shutil
from pathlib import Path
from typing import Any

import yaml
from bed.cluster import Bed
from bed.errors import BedError
from pretrain_testing.chart import CHART
from pretrain_testing.processes import wait_for

CRD = "pretrainjobs.pretrain.dev"
JOB: dict[str, Any] = {
    "apiVersion": "pretrain.dev/v1alpha1",
    "kind": "PretrainJob",
    "metadata": {"name": "kept"},
    "spec": {
        "suspend": True,
        "corpus": {"sources": [{"uri": "s3://corpora/wiki/"}]},
        "model": {"architecture": "bert"},
        "workers": {},
    },
}


def create(bed: Bed, namespace: str, job: dict[str, Any]) -> None:
    bed.kubectl("create", "--filename=-", "--namespace", namespace, stdin=yaml.safe_dump(job))


def chart_with_a_newer_crd(folder: Path) -> Path:
    """A copy of the chart whose PretrainJobs have `spec.novelty`."""
    copy = folder / "newer"
    shutil.copytree(CHART, copy)
    file = copy / "files/pretrainjobs.yaml"
    crd = yaml.load(file.read_text(), yaml.CSafeLoader)
    (version,) = crd["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["novelty"] = {"type": "string"}
    file.write_text(yaml.dump(crd, Dumper=yaml.CSafeDumper, sort_keys=False))
    return copy


def test_uninstalling_keeps_the_jobs_and_a_new_installation_adopts_them(
    bed: Bed, namespace: str, helm: Any, installed: str
) -> None:
    create(bed, namespace, JOB)
    crd = bed.kubectl_json("get", "crd", CRD)["metadata"]["uid"]

    helm("uninstall", installed)
    assert bed.kubectl_json("get", "crd", CRD)["metadata"]["uid"] == crd
    assert bed.kubectl_json("get", "ptj", "kept", "--namespace", namespace)["spec"]["suspend"]

    helm("install", installed, CHART)
    assert bed.kubectl_json("get", "crd", CRD)["metadata"]["uid"] == crd
    job = bed.kubectl_json("get", "ptj", "kept", "--namespace", namespace)
    assert "finalizers" not in job["metadata"]


def test_an_upgrade_brings_new_fields_and_keeps_what_is_stored(
    bed: Bed, namespace: str, helm: Any, installed: str, tmp_path: Path
) -> None:
    create(bed, namespace, JOB)
    newer = {**JOB, "metadata": {"name": "newer"}, "spec": {**JOB["spec"], "novelty": "yes"}}

    helm("upgrade", installed, chart_with_a_newer_crd(tmp_path), "--force-conflicts")

    def created() -> bool:
        try:
            create(bed, namespace, newer)
        except BedError:
            return False
        return True

    wait_for("the new field to be known", created)
    stored = bed.kubectl_json("get", "ptj", "newer", "--namespace", namespace)
    assert stored["spec"]["novelty"] == "yes"
    assert bed.kubectl_json("get", "ptj", "kept", "--namespace", namespace)["spec"]["suspend"]

    helm("upgrade", installed, CHART, "--force-conflicts")


def test_a_team_installs_with_rights_in_its_namespace_only(
    bed: Bed, namespace: str, helm: Any, installed: str
) -> None:
    values = (f"--set=watchNamespaces={{{namespace}}}", "--set=crds.enabled=false")

    helm("install", "team", CHART, *values)

    objects = bed.kubectl_json(
        "get", "clusterroles,clusterrolebindings", "--selector=app.kubernetes.io/instance=team"
    )
    assert objects["items"] == []
    assert "team" in helm("list", "--short").split()
