"""The files that define the images agree with each other."""

import re
from pathlib import Path

import pytest
from bed.images import ARGUMENTS
from pretrain_operator.children.security import USER

ROOT = Path(__file__).resolve().parents[3]
IMAGES = sorted(path.parent.name for path in (ROOT / "images").glob("*/Containerfile"))


@pytest.fixture(params=IMAGES)
def image(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def containerfile(image: str) -> str:
    return (ROOT / "images" / image / "Containerfile").read_text()


def test_the_bed_builds_every_image():
    assert sorted(ARGUMENTS) == IMAGES


def test_every_image_is_a_target_of_the_bake_file(image: str):
    bake = (ROOT / "docker-bake.hcl").read_text()
    target = re.search(rf'^target "{image}" {{$(.*?)^}}$', bake, re.MULTILINE | re.DOTALL)
    assert target
    assert f'"images/{image}/Containerfile"' in target[1]


def test_the_images_user_is_the_one_that_pods_run_as(containerfile: str):
    assert re.findall(r"^USER (.*)$", containerfile, re.MULTILINE) == [f"{USER}:{USER}"]


def test_images_are_built_with_the_uv_that_sets_up_the_checkout(containerfile: str):
    pinned = re.search(r"^UV_VERSION=(\S+)$", (ROOT / "tools/setup.sh").read_text(), re.MULTILINE)
    assert pinned
    assert f"ARG UV_IMAGE=ghcr.io/astral-sh/uv:{pinned[1]}\n" in containerfile


def test_the_uv_of_the_bake_file_is_that_of_the_containerfiles(containerfile: str):
    default = re.search(r"^ARG UV_IMAGE=(\S+)$", containerfile, re.MULTILINE)
    assert default
    assert f'default = "{default[1]}"' in (ROOT / "docker-bake.hcl").read_text()


def test_dependencies_are_installed_before_the_code_is_there(containerfile: str):
    last_stage = containerfile.rpartition("\nFROM ")[2]
    assert last_stage.index("dependencies.sh") < last_stage.index("COPY --from=code")


def test_the_base_of_the_bake_file_is_that_of_the_containerfiles(containerfile: str):
    default = re.search(r"^ARG BASE_IMAGE=(\S+)$", containerfile, re.MULTILINE)
    assert default
    assert f'default = "{default[1]}"' in (ROOT / "docker-bake.hcl").read_text()
