"""`pretrainctl crd`: the CustomResourceDefinition that this version works with."""

from __future__ import annotations

from pretrainctl.output import print_text


def crd() -> None:
    """Print the CustomResourceDefinition of PretrainJob."""
    from pretrain_api.__main__ import crd_text

    print_text(crd_text().rstrip("\n"))
