"""Names of the programs that are built from source."""

from dataclasses import replace
from pathlib import Path

import pytest
from bed import binaries
from bed.errors import BedError


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> binaries.GoModule:
    """A module of our own making, and a cache of our own."""
    monkeypatch.setattr(binaries, "GO_MODULES", tmp_path / "go")
    monkeypatch.setenv("PRETRAIN_BED_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "go" / "example"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text("module m\n\ngo 1.24.0\n\nrequire example.org/x v1.34.4\n")
    return binaries.GoModule("example", {"x": "example.org/x"}, version="example.org/x")


def test_a_changed_dependency_gives_a_program_another_path(module: binaries.GoModule):
    before = module.path("x")

    (module.folder / "go.sum").write_text("example.org/x v1.34.4 h1:other=\n")

    assert module.path("x") != before
    assert module.path("x").name.startswith("x-")


def test_a_changed_program_of_our_own_gives_another_path_however_deep_it_lies(
    module: binaries.GoModule,
):
    before = module.path("x")

    (module.folder / "x").mkdir()
    (module.folder / "x" / "main.go").write_text("package main\n")

    assert module.path("x") != before


def test_a_program_reports_the_version_that_its_module_requires(module: binaries.GoModule):
    module = replace(module, variables=("a/version.gitVersion", "b.version"))

    flags = binaries._version_flags(module)

    assert "-X a/version.gitVersion=v1.34.4" in flags
    assert "-X b.version=v1.34.4" in flags
    assert "-X a/version.gitMajor=1" in flags
    assert "-X a/version.gitMinor=34" in flags


def test_a_program_that_is_not_built_is_missing_with_the_command_that_builds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PRETRAIN_BED_CACHE", str(tmp_path))

    with pytest.raises(BedError, match="python -m bed build etcd"):
        binaries.program("etcd")


def test_an_unknown_program_is_refused():
    with pytest.raises(BedError, match="nonsense"):
        binaries.build(["nonsense"])


def test_every_module_builds_what_it_names():
    for module in binaries.MODULES:
        assert (module.folder / "go.mod").is_file()
        for package in module.packages.values():
            own = package.startswith(".") and (module.folder / package / "main.go").is_file()
            assert own or package in (module.folder / "go.mod").read_text()
