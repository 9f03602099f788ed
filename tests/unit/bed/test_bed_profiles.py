"""The two profiles and their parts."""

from dataclasses import fields
from pathlib import Path

import pytest
from bed.parts import part_makers, steps
from bed.profile import Profile, profile


def test_the_profiles_share_no_folder_and_no_port():
    api, full = profile("api"), profile("full")

    for field in fields(Profile):
        assert getattr(api, field.name) != getattr(full, field.name), field.name


@pytest.mark.parametrize("name", ["api", "full"])
def test_a_step_starts_every_part_and_waits_only_for_steps(name: str, tmp_path: Path):
    bed = profile(name, tmp_path)  # type: ignore[arg-type]

    planned = steps(bed)

    names = {step.name for step in planned}
    assert set(part_makers(bed)) <= names
    assert {needed for step in planned for needed in step.after} <= names


def test_only_the_full_profile_touches_the_machines_network(tmp_path: Path):
    assert "network" not in {step.name for step in steps(profile("api", tmp_path))}
    assert "network" in {step.name for step in steps(profile("full", tmp_path))}
