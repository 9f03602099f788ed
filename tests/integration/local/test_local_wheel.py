"""The wheel brings the samples and a working command line: about ten seconds, one build.

The build takes its backend from the package registry, unless it is in uv's cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
UV = ROOT / ".venv" / "bin" / "uv"


def test_samples_are_listed_and_shown_from_an_unpacked_wheel(tmp_path: Path) -> None:
    subprocess.run([UV, "build", "--quiet", "--wheel", "-o", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")

    def pretrainctl(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "pretrainctl", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    samples = [line.split()[0] for line in pretrainctl("samples", "list").splitlines()]
    assert samples == sorted(file.stem for file in (ROOT / "crds" / "samples").glob("*.yaml"))
    assert "kind: PretrainJob" in pretrainctl("samples", "show", "quickstart")
