"""A state copied to host memory and written from there: torch reads back what it was then."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_jobs.checkpoint.buffers import HostBuffer, MappedBuffer
from pretrain_jobs.checkpoint.copying import Layout, lay_out
from pretrain_jobs.checkpoint.files import write_file
from pretrain_jobs.checkpoint.finite import all_finite
from torch import Tensor


@pytest.fixture
def buffer() -> Iterator[HostBuffer]:
    buffer = HostBuffer()
    yield buffer
    buffer.close()


def snapshot_of(buffer: HostBuffer, **files: Any) -> Layout:
    layout = lay_out(files)
    layout.copy(buffer)
    return layout


def test_what_is_written_is_the_state_at_the_copying_whatever_becomes_of_it(
    tmp_path: Path, buffer: HostBuffer
) -> None:
    weights = torch.arange(1000.0)
    state = {"weights": weights[10:], "again": weights, "step": torch.tensor(7), "half": None}
    layout = snapshot_of(buffer, state=state)

    weights.fill_(999.0)
    write_file(tmp_path / "state.pt", layout.archives["state"], buffer.memory)

    for mapped in (False, True):
        loaded = torch.load(tmp_path / "state.pt", mmap=mapped)
        assert torch.equal(loaded["weights"], torch.arange(10.0, 1000.0))
        assert loaded["again"].data_ptr() == loaded["weights"].data_ptr() - 40
        assert (loaded["step"].item(), loaded["half"]) == (7, None)


TENSORS = st.tuples(
    st.sampled_from([torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.uint8]),
    st.lists(st.integers(0, 5), max_size=3),
).map(lambda drawn: (torch.rand(drawn[1]) * 9).to(drawn[0]))


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.text(max_size=3), st.one_of(TENSORS, st.integers(), st.none())))
def test_every_type_and_shape_is_read_back_as_torch_itself_would_have_stored_it(
    tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any]
) -> None:
    directory, buffer = tmp_path_factory.mktemp("archive"), HostBuffer()
    layout = snapshot_of(buffer, state=state)

    write_file(directory / "ours.pt", layout.archives["state"], buffer.memory)
    torch.save(state, directory / "torch.pt")

    ours, theirs = torch.load(directory / "ours.pt"), torch.load(directory / "torch.pt")
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        if isinstance(value, Tensor):
            assert value.dtype == theirs[name].dtype
            assert torch.equal(value, theirs[name])
        else:
            assert value == theirs[name]
    buffer.close()


def test_an_archive_is_a_sound_zip_whose_storages_lie_aligned(
    tmp_path: Path, buffer: HostBuffer
) -> None:
    layout = snapshot_of(buffer, state=[torch.rand(3), torch.rand(100), torch.rand(1)])
    path = tmp_path / "state.pt"
    write_file(path, layout.archives["state"], buffer.memory)

    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    for tensor in torch.load(path, mmap=True):
        assert tensor.data_ptr() % 64 == 0


def test_memory_that_several_files_share_is_copied_once(buffer: HostBuffer) -> None:
    flat = torch.rand(100_000)

    layout = snapshot_of(buffer, model={"a": flat[:10], "b": flat[10:]}, optimizer=[flat])

    assert flat.nbytes <= layout.size < flat.nbytes + 1000
    assert buffer.size == layout.size


def test_a_buffer_is_used_again_and_only_grows(buffer: HostBuffer) -> None:
    snapshot_of(buffer, state=torch.ones(1000))
    first = buffer.address()
    reader = MappedBuffer(buffer.descriptor)
    before = reader.memory(4000)

    snapshot_of(buffer, state=torch.zeros(10))
    assert (buffer.address(), buffer.size) == (first, 4032)
    assert bytes(before[:8]) == bytes(4) + bytes(4)
    snapshot_of(buffer, state=torch.ones(100_000))
    assert buffer.size == 400_000
    assert bytes(reader.memory(400_000)[-4:]) == torch.ones(1).numpy().tobytes()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_single_bad_value_anywhere_makes_a_state_not_finite(
    buffer: HostBuffer, dtype: torch.dtype, bad: float
) -> None:
    values = torch.full((1 << 19,), torch.finfo(dtype).max, dtype=dtype)
    values[-1] = bad
    state = {"a": [torch.ones(2), {"b": (torch.tensor([-1]), values)}], "n": 3}

    layout = snapshot_of(buffer, state=state)
    assert not all_finite(buffer.memory, layout.floats)

    values[-1] = torch.finfo(dtype).min
    layout = snapshot_of(buffer, state=state)
    assert all_finite(buffer.memory, layout.floats)


def test_what_a_tensor_does_not_cover_need_not_be_finite(buffer: HostBuffer) -> None:
    padded = torch.full((10,), float("nan"))
    padded[2:8] = 1.0

    layout = snapshot_of(buffer, state=padded[2:8])

    assert all_finite(buffer.memory, layout.floats)


def test_the_writer_is_up_without_torch() -> None:
    code = "import pretrain_jobs.checkpoint.writer, sys; print('torch' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
