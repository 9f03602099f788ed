"""Runs the tests above the unit level: `python -m tools.test_levels`.

Those of the cluster wait most of their time and take the longest; the other levels run beside them,
one after the other. What those print goes to files and is shown when all are done. Exit code 1 if
any test failed.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DIRECTORY = Path("build")
LONGEST = "cluster"
BESIDE = ("integration", "api")
SLOWEST = "--durations=15"


def main() -> int:
    """Run all levels, each whatever became of the others."""
    DIRECTORY.mkdir(exist_ok=True)
    places = ", ".join(str(_log_of(level)) for level in BESIDE)
    _say(f"beside the {LONGEST}'s tests run {' and '.join(BESIDE)}, with their output in {places}")
    with ThreadPoolExecutor(1) as beside:
        others = beside.submit(_run_beside)
        code = subprocess.run(_command(LONGEST), check=False).returncode
        codes = [code, *others.result()]
    for level in BESIDE:
        _say(f"=== {level}\n{_log_of(level).read_text(encoding='utf-8', errors='replace')}")
    return int(any(codes))


def _run_beside() -> list[int]:
    codes = []
    for level in BESIDE:
        with _log_of(level).open("wb") as log:
            command = _command(level)
            run = subprocess.run(command, check=False, stdout=log, stderr=subprocess.STDOUT)
        codes.append(run.returncode)
    return codes


def _log_of(level: str) -> Path:
    return DIRECTORY / f"{level}.log"


def _command(level: str) -> list[str]:
    return [str(Path(sys.executable).with_name("pytest")), "-m", level, SLOWEST]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
