"""The sample PretrainJobs that come with the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pretrain_api

from pretrainctl.errors import NotFoundError

_SUFFIX = ".yaml"


@dataclass(frozen=True)
class Sample:
    """A sample file: its name and what its first comment line says of it."""

    name: str
    path: Path

    @property
    def text(self) -> str:
        """The manifest."""
        return self.path.read_text(encoding="utf-8")

    @property
    def summary(self) -> str:
        """The file's first line, if that is a comment."""
        first = self.text.partition("\n")[0]
        return first.lstrip("# ").rstrip() if first.startswith("#") else ""


def list_samples() -> list[Sample]:
    """All samples, by name."""
    files = sorted(_directory().glob(f"*{_SUFFIX}"))
    return [Sample(file.name.removesuffix(_SUFFIX), file) for file in files]


def find_sample(name: str) -> Sample:
    """One sample; NotFoundError names those that there are."""
    samples = {sample.name: sample for sample in list_samples()}
    if name not in samples:
        raise NotFoundError(f"no sample {name!r}; there are: {', '.join(samples)}")
    return samples[name]


def _directory() -> Path:
    """In a wheel the samples lie inside of pretrain_api, in a checkout beside it."""
    package = Path(pretrain_api.__file__).parent
    installed = package / "samples"
    return installed if installed.is_dir() else package.parent / "samples"
