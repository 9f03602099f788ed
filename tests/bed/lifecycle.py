"""Brings a bed up and down; both work over whatever an interrupted run has left."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bed import processes
from bed.binaries import build
from bed.cgroups import remove_cgroup
from bed.chart import install_chart, restart_operator
from bed.containerd import RUN, root_of
from bed.debian import install_packages
from bed.errors import BedError
from bed.image_store import own_archives, renew_nodes, store_images
from bed.images import build_images
from bed.kubelet import cgroup_of, folder_of_links
from bed.locks import exclusive
from bed.mounts import unmount_all
from bed.network import remove_network
from bed.parts import part_makers, steps
from bed.paths import cache_folder
from bed.profile import NODES, Profile
from bed.rootfs import base_rootfs
from bed.steps import Step, run_steps

_COMPLETE = "complete"
"""File in the state folder that is there once a bed is up."""

_KEPT = "failures"
"""What tests leave in the state folder outlives the bed."""

_API_PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
_NODE_PROGRAMS = ("kube-scheduler", "kubelet", "kube-proxy", "coredns", "helm", "pause", "weed")


def up(bed: Profile, *, chart: bool = True) -> bool:
    """Bring the bed up unless it is; whether it was down.

    One with nodes has the product's images and chart as they are in the checkout afterwards, also
    when it was up; `chart=False` leaves the chart out.
    """
    with _held(bed):
        was_down = not is_up(bed)
        if was_down:
            _refuse_a_second_bed(bed)
        if was_down or bed.has_nodes:
            run_steps([Step("parts from the cache", lambda: prepare(bed))])
        if was_down:
            _start_all(bed)
        if bed.has_nodes:
            _renew(bed, chart=chart)
        return was_down


def down(bed: Profile) -> None:
    """End all processes of the bed, and remove all that it has on the machine but its cache."""
    with _held(bed):
        _clean(bed)


def is_up(bed: Profile) -> bool:
    """Whether the bed was brought up and all its parts still run."""
    complete = (bed.state / _COMPLETE).exists()
    return complete and all(processes.running(bed, name) for name in part_makers(bed))


def prepare(bed: Profile) -> None:
    """Build, install and import what a profile needs and the cache lacks."""
    build(_API_PROGRAMS)
    if not bed.has_nodes:
        return
    install_packages()
    build(_NODE_PROGRAMS)
    store_images([*own_archives(), *build_images(cache_folder(), base_rootfs())])


def _refuse_a_second_bed(bed: Profile) -> None:
    others = processes.other_states(bed)
    if others:
        raise BedError(f"the {bed.name} bed of {', '.join(others)} is up: take it down there")


def _start_all(bed: Profile) -> None:
    start = time.monotonic()
    _clean(bed)
    bed.state.mkdir(parents=True, exist_ok=True)
    run_steps(steps(bed))
    (bed.state / _COMPLETE).touch()
    seconds = time.monotonic() - start
    print(f"the {bed.name} bed is up after {seconds:.1f} s: {bed.kubeconfig}", file=sys.stderr)


def _renew(bed: Profile, *, chart: bool) -> None:
    """Give the nodes the store's images, and the cluster the checkout's chart."""
    new = renew_nodes(bed)
    if chart:
        run_steps([Step("chart", lambda: install_chart(bed))])
        if new:
            run_steps([Step("operator restarted", lambda: restart_operator(bed))])


def _clean(bed: Profile) -> None:
    processes.kill_all(bed)
    if bed.has_nodes:
        _clean_nodes(bed)
        remove_network()
    if bed.state.is_dir():
        for entry in bed.state.iterdir():
            if entry.name != _KEPT:
                _remove(entry)


def _clean_nodes(bed: Profile) -> None:
    """Containers end with their groups; only then do their mounts come off."""
    for node in NODES:
        remove_cgroup(cgroup_of(node))
    for node in NODES:
        for folder in (RUN / node, root_of(node)):
            unmount_all(folder)
            _remove(folder)
    unmount_all(bed.state)
    for link in folder_of_links().glob("*.log"):
        if link.is_symlink() and not link.exists():
            link.unlink()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _held(bed: Profile) -> Iterator[None]:
    """One command at a time brings a bed of this name up or down, in whichever checkout."""
    with exclusive(Path(tempfile.gettempdir()) / f"pretrain-bed-{bed.name}.lock"):
        yield
