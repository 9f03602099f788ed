"""Runs the tests above the unit level: `python -m tools.test_levels`.

Those of a cluster wait most of their time, so the integration tests, which compute, run beside
them. Their output goes to a file and is printed when both are done. Exit code 1 if any failed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

OUTPUT = Path("build/integration.log")
BESIDE = "integration"
IN_TURN = ("api", "cluster")
SLOWEST = "--durations=15"


def main() -> int:
    """Run all levels, each whatever became of the others."""
    OUTPUT.parent.mkdir(exist_ok=True)
    _say(f"the {BESIDE} tests run beside the others, with their output in {OUTPUT}")
    with OUTPUT.open("wb") as output:
        beside = subprocess.Popen(_command(BESIDE), stdout=output, stderr=subprocess.STDOUT)
    try:
        codes = [subprocess.run(_command(level), check=False).returncode for level in IN_TURN]
        codes.append(beside.wait())
    finally:
        beside.terminate()
        beside.wait()
    _say(OUTPUT.read_text(encoding="utf-8", errors="replace"))
    return int(any(codes))


def _command(level: str) -> list[str]:
    return [str(Path(sys.executable).with_name("pytest")), "-m", level, SLOWEST]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
