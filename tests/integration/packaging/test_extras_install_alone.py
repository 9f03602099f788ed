"""Each extra installs from the lock alone, without what its image must not carry.

Takes about ten seconds with a warm package cache.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UV = ROOT / ".venv/bin/uv"
IMPORT_ALL = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""


def clean_environment(directory: Path, extra: str) -> Path:
    """A new environment with one extra, as uv.lock pins it; returns its interpreter."""
    environment = {
        **os.environ,
        "UV_PROJECT_ENVIRONMENT": str(directory),
        "VIRTUAL_ENV": str(directory),
    }
    command = [UV, "sync", "--frozen", "--no-dev", "--extra", extra, "--python", sys.executable]
    run([str(word) for word in command], environment=environment)
    return directory / "bin/python"


def run(command: list[str], *, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def installed(python: Path) -> set[str]:
    listing = run([str(UV), "pip", "list", "--python", str(python), "--format", "freeze"])
    return {line.split("==")[0].lower() for line in listing.splitlines()}


@pytest.mark.parametrize(
    ("extra", "packages", "absent"),
    [
        ("operator", ["pretrain_api", "pretrain_operator"], {"torch", "transformers", "deepspeed"}),
        (
            "preprocess",
            [
                "pretrain_api",
                "pretrain_jobs.storage",
                "pretrain_jobs.tokenizer",
                "pretrain_jobs.corpus",
                "pretrain_jobs.dataset",
            ],
            {"torch", "transformers", "deepspeed"},
        ),
        (
            "cli",
            [
                "pretrain_api",
                "pretrain_operator.plan",
                "pretrain_operator.observe",
                "pretrain_operator.children",
                "pretrainctl",
            ],
            {"torch", "deepspeed", "kopf"},
        ),
    ],
)
def test_an_extra_imports_all_its_modules_without_the_heavy_packages(
    tmp_path: Path, extra: str, packages: list[str], absent: set[str]
) -> None:
    python = clean_environment(tmp_path / "environment", extra)

    run([str(python), "-c", IMPORT_ALL, *packages])

    assert not installed(python) & absent
