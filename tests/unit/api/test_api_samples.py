"""The samples are jobs that this version runs."""

from pathlib import Path

import pytest
import yaml
from pretrain_api.documents import validate_object
from pretrain_api.presets import ARCHITECTURES
from pretrain_api.resolve import resolve

SAMPLES = sorted((Path(__file__).parents[3] / "crds" / "samples").glob("*.yaml"))


def read(path: Path) -> dict[str, object]:
    data: dict[str, object] = yaml.safe_load(path.read_text())
    return data


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_has_no_problem(path: Path) -> None:
    assert validate_object(read(path)).metadata.name


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_says_what_it_is_for(path: Path) -> None:
    assert path.read_text().startswith("# ")


def test_the_samples_show_every_architecture_that_runs_but_those_with_the_same_recipe() -> None:
    shown = {resolve(validate_object(read(path)).spec).model.architecture for path in SAMPLES}
    running = {name for name, each in ARCHITECTURES.items() if each.runs}
    assert running - shown == {"roberta"}


def test_the_quickstart_needs_no_storage_and_no_cluster() -> None:
    spec = validate_object(read(SAMPLES[[path.stem for path in SAMPLES].index("quickstart")])).spec
    assert spec.storage is None
    assert resolve(spec).workers.device == "cpu"
    assert [source.uri for source in spec.corpus.sources] == ["corpus/reviews.jsonl"]
