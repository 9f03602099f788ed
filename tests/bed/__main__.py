"""`python -m bed`: brings the test bed up and down, and says how it is."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bed.binaries import MODULES, build, program
from bed.cluster import Bed
from bed.demo import run_demo
from bed.errors import BedError
from bed.lifecycle import down, load, prepare, up
from bed.oci import read_archive
from bed.profile import profile
from bed.status import status_lines


def main() -> int:
    arguments = _parser().parse_args()
    try:
        _COMMANDS[arguments.command](arguments)
    except BedError as error:
        print(f"bed: {error}", file=sys.stderr)
        return 1
    return 0


def _up(arguments: argparse.Namespace) -> None:
    bed = profile(arguments.profile)
    if not up(bed, chart=not arguments.no_chart):
        print(f"the {bed.name} bed is up already: {bed.kubeconfig}", file=sys.stderr)


def _down(arguments: argparse.Namespace) -> None:
    down(profile(arguments.profile), force=arguments.force)


def _status(arguments: argparse.Namespace) -> None:
    print("\n".join(status_lines(profile(arguments.profile))))


def _kubeconfig(arguments: argparse.Namespace) -> None:
    print(profile(arguments.profile).kubeconfig)


def _load(arguments: argparse.Namespace) -> None:
    load(profile("full"), read_archive(arguments.archive))


def _demo(arguments: argparse.Namespace) -> None:
    print(run_demo(Bed(profile("full"))))


def _build(arguments: argparse.Namespace) -> None:
    if not arguments.programs:
        prepare(profile("full"))
    names = arguments.programs or [name for module in MODULES for name in module.packages]
    build(names)
    for name in names:
        print(program(name))


_COMMANDS = {
    "up": _up,
    "down": _down,
    "status": _status,
    "kubeconfig": _kubeconfig,
    "build": _build,
    "demo": _demo,
    "load": _load,
}


_ON_PROFILES = {
    "up": "bring a bed up, or renew its images and chart",
    "down": "end it and clean up",
    "status": "tell each part's process and health",
    "kubeconfig": "print the administrator's kubeconfig's path",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bed", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, purpose in _ON_PROFILES.items():
        command = commands.add_parser(name, help=purpose)
        command.add_argument("--profile", choices=("api", "full"), default="full")
        if name == "up":
            command.add_argument("--no-chart", action="store_true", help="install no operator")
        if name == "down":
            command.add_argument("--force", action="store_true", help="another checkout's, too")
    commands.add_parser("demo", help="run the quickstart on the full bed")
    loader = commands.add_parser("load", help="give the nodes an image")
    loader.add_argument("archive", type=Path, help="a tar file in the OCI layout, of one image")
    builder = commands.add_parser("build", help="build what the cache lacks, print the paths")
    builder.add_argument("programs", nargs="*", help="programs to build (all when left out)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
