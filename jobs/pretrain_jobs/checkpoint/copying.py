"""A rank's live state to host memory: which bytes go where, and the copying itself.

Both may go on while the next step computes its gradients, for only the optimizer's update changes
what is copied. What the copies become is the writer's business.
"""

from __future__ import annotations

import ctypes
import io
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.serialization import location_tag

from pretrain_jobs.checkpoint.archive import ALIGNMENT, Archive, Extent
from pretrain_jobs.checkpoint.buffers import HostBuffer
from pretrain_jobs.checkpoint.finite import FloatExtent

_PICKLE_PROTOCOL = 2
_FLOATS = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
}


@dataclass
class Layout:
    """Where each storage of a snapshot goes; one that several files share is copied once.

    `archives` are the files' contents by name, `floats` what must be finite, `size` in bytes.
    """

    archives: dict[str, Archive] = field(default_factory=dict)
    floats: list[FloatExtent] = field(default_factory=list)
    size: int = 0
    _places: dict[tuple[torch.device, int, int], Extent] = field(default_factory=dict)
    _storages: list[tuple[torch.UntypedStorage, Extent]] = field(default_factory=list)

    def place(self, storage: torch.UntypedStorage) -> Extent:
        """The extent of a storage, the same for all that share its memory."""
        identity = (storage.device, storage.data_ptr(), storage.nbytes())
        if identity not in self._places:
            extent = Extent(self.size, storage.nbytes())
            self._places[identity] = extent
            self._storages.append((storage, extent))
            self.size += -(-extent.length // ALIGNMENT) * ALIGNMENT
        return self._places[identity]

    def copy(self, buffer: HostBuffer) -> None:
        """Copy every storage; StorageFullError when there is no room for them.

        Other threads run meanwhile. The storages must not change until it returns.
        """
        buffer.reserve(self.size)
        start = buffer.address()
        for storage, extent in self._storages:
            if extent.length:
                _copy(storage, start + extent.offset, extent.length)
        self._storages.clear()


def lay_out(contents: Mapping[str, Any]) -> Layout:
    """Lay out files of nested containers with tensors, by file name."""
    layout = Layout()
    for name in sorted(contents):
        layout.archives[name] = _archive(contents[name], layout)
        layout.floats.extend(
            FloatExtent(_FLOATS[tensor.dtype], _extent(tensor, layout))
            for tensor in _tensors(contents[name])
            if tensor.dtype in _FLOATS and tensor.numel()
        )
    return layout


class _Pickler(pickle.Pickler):
    """Names storages by number, as torch.save does, and keeps them aside."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, protocol=_PICKLE_PROTOCOL)
        self.storages: list[torch.UntypedStorage] = []
        self._numbers: dict[int, int] = {}

    def persistent_id(self, value: Any) -> Any:
        """A storage as `torch.serialization._save` names it; nothing for any other object."""
        if value.__class__ is not torch.storage.TypedStorage:
            return None
        typed: Any = value
        storage = typed._untyped_storage  # noqa: SLF001
        number = self._numbers.setdefault(storage._cdata, len(self.storages))  # noqa: SLF001
        if number == len(self.storages):
            self.storages.append(storage)
        kind = getattr(torch, typed._pickle_storage_type())  # noqa: SLF001
        return ("storage", kind, str(number), location_tag(storage), typed._size())  # noqa: SLF001


def _archive(content: Any, layout: Layout) -> Archive:
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.dump(content)
    places = tuple(layout.place(storage) for storage in pickler.storages)
    return Archive(stream.getvalue(), places)


def _extent(tensor: Tensor, layout: Layout) -> Extent:
    """The bytes that a tensor covers; all of its storage from its start if it has gaps."""
    storage = tensor.untyped_storage()
    place, start = layout.place(storage), int(tensor.storage_offset()) * tensor.itemsize
    length = tensor.nbytes if tensor.is_contiguous() else storage.nbytes() - start
    return Extent(place.offset + start, length)


def _tensors(state: Any) -> Iterator[Tensor]:
    """Every tensor in nested containers."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, Mapping):
        for value in state.values():
            yield from _tensors(value)
    elif isinstance(state, list | tuple):
        for value in state:
            yield from _tensors(value)


def _copy(storage: torch.UntypedStorage, address: int, length: int) -> None:
    if storage.device.type == "cpu":
        ctypes.memmove(address, storage.data_ptr(), length)
        return
    source = torch.empty(0, dtype=torch.uint8, device=storage.device)
    source.set_(storage)
    target = (ctypes.c_char * length).from_address(address)
    torch.frombuffer(target, dtype=torch.uint8).copy_(source)
