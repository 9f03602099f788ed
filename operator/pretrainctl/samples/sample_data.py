"""Which samples come with data of their own."""

from __future__ import annotations

from pretrainctl.errors import NotFoundError
from pretrainctl.samples.demo_corpus import load_demo_corpus

SAMPLES_WITH_DATA = ("quickstart",)


def sample_data(name: str) -> dict[str, bytes]:
    """The files of a sample, by their keys under its storage."""
    if name not in SAMPLES_WITH_DATA:
        raise NotFoundError(
            f"sample {name!r} has no data of its own; these have: {', '.join(SAMPLES_WITH_DATA)}"
        )
    return load_demo_corpus().files()
