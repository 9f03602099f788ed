"""One certificate authority for a bed, and the certificates and kubeconfigs that it signs.

Made anew at every start, with openssl: the keys are worthless outside the bed.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import yaml

from bed.commands import run
from bed.profile import API_SERVICE_ADDRESS, BRIDGE_ADDRESS, LOOPBACK, NODES, Profile

USERS = {
    "admin": "/O=system:masters/CN=admin",
    "kube-controller-manager": "/CN=system:kube-controller-manager",
    "kube-scheduler": "/CN=system:kube-scheduler",
    "kube-proxy": "/CN=system:kube-proxy",
}
"""Name of a certificate to its subject, as the API server's default bindings know it."""

_API_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_CONFIGURATION = "[req]\ndistinguished_name = subject\n[subject]\n"
_BOTH_USES = "serverAuth,clientAuth"


def make_certificates(bed: Profile) -> None:
    """Fill the profile's `pki` folder: NAME.crt and NAME.key each, sa.key and sa.pub."""
    bed.pki.mkdir(parents=True, exist_ok=True)
    (bed.pki / "openssl.cnf").write_text(_CONFIGURATION)
    _make_authority(bed.pki)
    addresses = (LOOPBACK, API_SERVICE_ADDRESS, BRIDGE_ADDRESS)
    _sign(bed.pki, "apiserver", "/CN=kube-apiserver", names=_API_NAMES, addresses=addresses)
    for name, subject in USERS.items():
        _sign(bed.pki, name, subject)
    for node, address in NODES.items():
        subject = f"/O=system:nodes/CN=system:node:{node}"
        _sign(bed.pki, node, subject, names=(node,), addresses=(address,))
    signing = bed.pki / "sa.key"
    run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", signing)
    run("openssl", "ec", "-in", signing, "-pubout", "-out", bed.pki / "sa.pub")


def make_kubeconfigs(bed: Profile) -> None:
    """Write the administrator's kubeconfig and, in `kubeconfigs`, those of the parts."""
    folder = bed.state / "kubeconfigs"
    folder.mkdir(exist_ok=True)
    for name in (*USERS, *NODES):
        write_kubeconfig(bed, folder / name, user=_certificate_of(bed.pki, name))
    write_kubeconfig(bed, bed.kubeconfig, user=_certificate_of(bed.pki, "admin"))


def write_kubeconfig(bed: Profile, path: Path, *, user: dict[str, str]) -> None:
    """A self-contained kubeconfig for the bed; `user` is a certificate with its key, or a token."""
    cluster = {
        "server": bed.api_url,
        "certificate-authority-data": _base64(bed.pki / "ca.crt"),
    }
    name = f"pretrain-bed-{bed.name}"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content))


def _certificate_of(pki: Path, name: str) -> dict[str, str]:
    return {
        "client-certificate-data": _base64(pki / f"{name}.crt"),
        "client-key-data": _base64(pki / f"{name}.key"),
    }


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _make_authority(pki: Path) -> None:
    _request(
        pki, "ca", "/CN=pretrain-bed", "basicConstraints=critical,CA:TRUE", "keyUsage=keyCertSign"
    )


def _sign(
    pki: Path,
    name: str,
    subject: str,
    *,
    names: Sequence[str] = (),
    addresses: Sequence[str] = (),
) -> None:
    alternatives = [f"DNS:{name}" for name in names] + [f"IP:{address}" for address in addresses]
    extensions = [f"extendedKeyUsage={_BOTH_USES}"]
    if alternatives:
        extensions.append(f"subjectAltName={','.join(alternatives)}")
    authority = ("-CA", pki / "ca.crt", "-CAkey", pki / "ca.key")
    _request(pki, name, subject, *extensions, signer=authority)


def _request(
    pki: Path, name: str, subject: str, *extensions: str, signer: Sequence[str | Path] = ()
) -> None:
    files = ("-keyout", pki / f"{name}.key", "-out", pki / f"{name}.crt")
    added = [word for extension in extensions for word in ("-addext", extension)]
    configuration = ("-config", pki / "openssl.cnf", "-days", "365", "-subj", subject)
    run("openssl", "req", "-x509", *_NEW_KEY, *configuration, *added, *signer, *files)
