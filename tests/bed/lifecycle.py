"""Brings a bed up and down; both work over whatever an interrupted run has left."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bed import processes
from bed.binaries import build
from bed.cgroups import groups_of, remove_cgroup
from bed.chart import install_chart, restart_operator
from bed.commands import run
from bed.containerd import RUN, root_of
from bed.debian import install_packages
from bed.errors import BedError
from bed.image_store import own_archives, renew_nodes, store_images
from bed.images import build_images
from bed.leftovers import remove_leftovers
from bed.locks import exclusive
from bed.mounts import mounts_below, unmount_all
from bed.network import network_paths, remove_network
from bed.oci import ImageArchive
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
            prepare(bed)
        if was_down:
            _start_all(bed)
        if bed.has_nodes:
            _renew(bed, chart=chart)
        return was_down


def down(bed: Profile, *, force: bool = False) -> None:
    """End all processes of the bed, and remove all that it has on the machine but its cache.

    BedError names another checkout whose bed of this name is up; `force` ends that, too.
    """
    with _held(bed):
        if not force:
            _refuse_to_end_anothers(bed)
        _clean(bed)
        left = _left_behind(bed)
        if left:
            raise BedError(f"the {bed.name} bed left behind: {', '.join(left)}")


def is_up(bed: Profile) -> bool:
    """Whether the bed was brought up and all its parts still run."""
    complete = (bed.state / _COMPLETE).exists()
    return complete and all(processes.running(bed, name) for name in part_makers(bed))


def load(bed: Profile, image: ImageArchive) -> None:
    """Keep an image in the cache for all nodes to come, and give it to those that are up."""
    with _held(bed):
        store_images([image])
        if is_up(bed):
            renew_nodes(bed)


def prepare(bed: Profile) -> None:
    """Build, install and import what a profile needs and the cache lacks.

    Compilers and downloads take turns at being the slow part, so they run side by side.
    """
    programs = (*_API_PROGRAMS, *_NODE_PROGRAMS) if bed.has_nodes else _API_PROGRAMS
    run_steps(
        [Step("programs", lambda: build(programs)), *(_image_steps() if bed.has_nodes else ())]
    )


def _image_steps() -> list[Step]:
    built: list[ImageArchive] = []
    return [
        Step("Debian packages", install_packages),
        Step("root file system", base_rootfs, after=("Debian packages",)),
        Step(
            "product images",
            lambda: built.extend(build_images(cache_folder(), base_rootfs())),
            after=("root file system",),
        ),
        Step(
            "image store",
            lambda: store_images([*own_archives(), *built]),
            after=("product images", "programs"),
        ),
    ]


def _refuse_a_second_bed(bed: Profile) -> None:
    others = processes.other_states(bed)
    if others:
        raise BedError(f"the {bed.name} bed of {', '.join(others)} is up: take it down there")


def _refuse_to_end_anothers(bed: Profile) -> None:
    """What a checkout that was deleted has left is nobody's."""
    owners = [state for state in processes.other_states(bed) if Path(state).is_dir()]
    if owners:
        raise BedError(
            f"the {bed.name} bed is that of {', '.join(sorted(owners))}, and may be in use: take "
            "it down in that checkout, or here all the same by FORCE=1 (--force)"
        )


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
    if bed.has_nodes:
        remove_leftovers()


def _clean_nodes(bed: Profile) -> None:
    """Containers end with their groups; only then do their mounts come off."""
    for node in NODES:
        remove_cgroup(node)
    for node in NODES:
        for folder in (RUN / node, root_of(node)):
            unmount_all(folder)
        _remove(RUN / node)
    unmount_all(bed.state)


def _left_behind(bed: Profile) -> list[str]:
    """What ought to be gone from the machine and is not."""
    processes_left = [f"process {pid}" for pid in processes.all_of(bed)]
    if not bed.has_nodes:
        return processes_left
    folders = [bed.state, *(RUN / node for node in NODES), *(root_of(node) for node in NODES)]
    mounts = [point for folder in folders for point in mounts_below(folder)]
    paths = [*network_paths(), *(path for node in NODES for path in groups_of(node))]
    return processes_left + mounts + [str(path) for path in paths if path.exists()]


def _remove(path: Path) -> None:
    run("rm", "-rf", "--one-file-system", path)


@contextmanager
def _held(bed: Profile) -> Iterator[None]:
    """One command at a time brings a bed of this name up or down, in whichever checkout."""
    with exclusive(Path(tempfile.gettempdir()) / f"pretrain-bed-{bed.name}.lock"):
        yield
