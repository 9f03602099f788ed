"""The generated files are what the models generate."""

from pathlib import Path

import pytest
from pretrain_api.__main__ import crd_text, main
from pretrain_api.reference import reference_page

REPOSITORY = Path(__file__).parents[3]
CRD = REPOSITORY / "crds" / "pretrainjobs.yaml"
PAGE = REPOSITORY / "docs" / "reference" / "pretrainjob.md"

LARGEST_ANNOTATION = 262_144


def test_the_crd_file_is_what_the_models_generate() -> None:
    assert CRD.read_text() == crd_text(), "run: python -m pretrain_api crd > crds/pretrainjobs.yaml"


def test_the_reference_page_is_what_the_models_generate() -> None:
    assert PAGE.read_text() == reference_page(), (
        "run: python -m pretrain_api docs > docs/reference/pretrainjob.md"
    )


def test_the_crd_fits_into_the_annotation_of_a_client_side_apply() -> None:
    assert len(crd_text().encode()) < 200_000 < LARGEST_ANNOTATION


def test_the_command_prints_the_crd(capsys: pytest.CaptureFixture[str]) -> None:
    main(["crd"])
    assert capsys.readouterr().out == crd_text()


def test_the_command_prints_the_reference_page(capsys: pytest.CaptureFixture[str]) -> None:
    main(["docs"])
    assert capsys.readouterr().out == reference_page()


def test_every_field_of_the_page_has_a_meaning() -> None:
    rows = [line for line in reference_page().splitlines() if line.startswith("| `")]
    assert rows
    assert [row for row in rows if row.split(" | ")[-1].strip(" |") == ""] == []
