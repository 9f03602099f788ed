"""The folders at the top hold packages and are none themselves."""

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.parametrize("folder", ["operator", "jobs", "crds", "tests"])
def test_no_package_file_lies_directly_in_a_top_folder(folder: str) -> None:
    # An operator/__init__.py would shadow the standard library's operator module.
    assert not (REPOSITORY / folder / "__init__.py").exists()
