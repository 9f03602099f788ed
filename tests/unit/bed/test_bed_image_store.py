"""Importing an image where one of its name lies already."""

from pathlib import Path

import pytest
from bed import image_store
from bed.oci import ImageArchive

NAME = "localhost/example:bed"


class Containerd:
    """Images by name; an import gives the name away before the new layers are unpacked."""

    def __init__(self, images: dict[str, str]) -> None:
        self.images = images
        self.collected: list[str] = []

    def __call__(self, _node: str, *arguments: str) -> str:
        match arguments:
            case ("images", "list", "--quiet"):
                return "\n".join(self.images)
            case ("images", "tag", "--force", old, new):
                self.images[new] = self.images[old]
            case ("images", "import", _):
                before, self.images[NAME] = self.images.get(NAME), "new"
                if before and before not in self.images.values():
                    self.collected.append(before)
            case ("images", "remove", name):
                del self.images[name]
        return ""


@pytest.mark.parametrize("images", [{NAME: "old"}, {NAME: "old", f"{NAME}-replaced": "older"}])
def test_an_image_that_is_replaced_keeps_its_layers_until_the_new_one_is_unpacked(
    monkeypatch: pytest.MonkeyPatch, images: dict[str, str]
) -> None:
    containerd = Containerd(images)
    monkeypatch.setattr(image_store, "ctr", containerd)

    image_store._import("store", ImageArchive(NAME, Path("archive.tar"), "key"))

    assert containerd.collected == []
    assert containerd.images == {NAME: "new"}


def test_an_image_of_a_new_name_is_imported_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    containerd = Containerd({})
    monkeypatch.setattr(image_store, "ctr", containerd)

    image_store._import("store", ImageArchive(NAME, Path("archive.tar"), "key"))

    assert containerd.images == {NAME: "new"}
