"""What must hold inside a container of one of our images; needs nothing but the image's Python.

Fed to it on standard input or with -c: `docker run -i IMAGE python - operator < image_check.py`.
Prints every problem and ends 1, or prints one line with the code's digest and ends 0.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

USER = 65532
MODULES = {
    "operator": ("pretrain_operator.__main__",),
    "preprocess": ("pretrain_jobs.tokenizer.stage", "pretrain_jobs.corpus.stage"),
    "train": (
        "pretrain_jobs.train.main",
        "pretrain_jobs.evaluate.stage",
        "pretrain_jobs.export.stage",
    ),
}
"""What each image is for; importing it shows that its dependencies are whole."""

FOREIGN = {
    "operator": ("torch", "deepspeed", "transformers", "h5py", "pip"),
    "preprocess": ("torch", "deepspeed", "transformers", "kopf", "pip"),
    "train": ("kopf", "pip"),
}
PACKAGES = ("pretrain_api", "pretrain_jobs", "pretrain_operator")
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "tcc", "ld", "as", "make", "nvcc")


def problems(image: str) -> list[str]:
    """One sentence for each thing that is not as it must be."""
    return [*_of_user(), *_of_file_system(), *_of_programs(), *_of_modules(image)]


def code_digest() -> str:
    """Names the installed code: a hash of the paths and bytes of our packages' modules."""
    digest = hashlib.sha256()
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            for file in sorted(Path(place).rglob("*.py")):
                digest.update(f"{name}/{file.relative_to(place)} ".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _of_user() -> list[str]:
    user, group = os.getuid(), os.getgid()
    return [] if (user, group) == (USER, USER) else [f"it runs as {user}:{group}"]


def _of_file_system() -> list[str]:
    found = [f"{path} is writable" for path in ("/", "/etc", "/opt/venv") if _writable(path)]
    try:
        tempfile.TemporaryFile().close()
    except OSError as error:
        found.append(f"no temporary file can be made: {error}")
    if Path.home() != Path("/tmp"):  # noqa: S108 - the only writable folder of our pods
        found.append(f"the home folder is {Path.home()}")
    return found


def _writable(path: str) -> bool:
    return os.access(path, os.W_OK)


def _of_programs() -> list[str]:
    found = [f"there is a compiler's {name}" for name in COMPILERS if shutil.which(name)]
    if shutil.which("python") != "/opt/venv/bin/python":
        found.append(f"`python` is {shutil.which('python')}")
    return found


def _of_modules(image: str) -> list[str]:
    found = [f"{name} is installed" for name in FOREIGN[image] if importlib.util.find_spec(name)]
    for name in MODULES[image]:
        try:
            importlib.import_module(name)
        except ImportError as error:
            found.append(f"{name} cannot be imported: {error}")
    return found


if __name__ == "__main__":
    said = problems(sys.argv[1])
    sys.stdout.write("\n".join(said or [f"as it should be: {code_digest()}"]) + "\n")
    sys.exit(bool(said))
