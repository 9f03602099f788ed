"""Where each element of a parameter lies, by ZeRO stage and number of ranks."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretrain_jobs.checkpoint.partitions import Partitions, sources
from pretrain_testing.flat_engine import FlatEngine, Sizes, numbered

STAGES = st.sampled_from([1, 2, 3])
WORLD_SIZES = st.integers(1, 6)


@st.composite
def sizes(draw: st.DrawFn) -> Sizes:
    """One to three groups of one to four parameters of 1 to 25 elements."""
    counts = draw(st.lists(st.lists(st.integers(1, 25), min_size=1, max_size=4), max_size=3))
    return [
        {f"{group}.{number}": numel for number, numel in enumerate(numels)}
        for group, numels in enumerate(counts or [[1]])
    ]


@given(groups=sizes(), stage=STAGES, world_size=WORLD_SIZES)
def test_every_element_lies_where_padding_and_chunking_put_it(
    groups: Sizes, stage: int, world_size: int
) -> None:
    layout = Partitions(groups, stage=stage, world_size=world_size)
    weights = numbered(groups)["weights"]

    seen = dict.fromkeys(weights, 0)
    for rank in range(world_size):
        flat = FlatEngine(
            rank,
            world_size,
            stage,
            groups,
            {"exp_avg": weights, "exp_avg_sq": weights, "weights": weights},
        ).flat["weights"]
        assert [tensor.numel() for tensor in flat] == list(layout.sizes)
        for name, weight in weights.items():
            span = layout.span(name, rank)
            if span is not None:
                assert span.start == seen[name]
                seen[name] = span.stop
                there = flat[span.group][span.offset : span.offset + span.stop - span.start]
                assert torch.equal(there, weight[span.start : span.stop])
    assert seen == layout.elements


@given(groups=sizes(), stage=STAGES, world_size=WORLD_SIZES, data=st.data())
def test_owners_are_the_ranks_that_keep_some_of_the_elements(
    groups: Sizes, stage: int, world_size: int, data: st.DataObject
) -> None:
    layout = Partitions(groups, stage=stage, world_size=world_size)
    name = data.draw(st.sampled_from(sorted(layout.elements)))
    start = data.draw(st.integers(0, layout.elements[name] - 1))
    stop = data.draw(st.integers(start + 1, layout.elements[name]))

    spans = {rank: layout.span(name, rank) for rank in range(world_size)}
    keeping = [r for r, span in spans.items() if span and span.start < stop and start < span.stop]

    assert list(layout.owners(name, start, stop)) == keeping


@pytest.mark.parametrize("stage", [1, 3])
def test_half_as_many_ranks_need_two_files_each(stage: int) -> None:
    groups = [{"embeddings": 64_000, "layer": 6_400}]
    saved = Partitions(groups, stage=stage, world_size=64)
    wanted = Partitions(groups, stage=stage, world_size=32)

    assert sources(saved, wanted, 0) == {0, 1}
    assert sources(saved, wanted, 31) == {62, 63}


def test_a_rank_that_keeps_nothing_still_needs_a_file_for_what_all_have() -> None:
    groups = [{"bias": 1}]
    saved = Partitions(groups, stage=3, world_size=2)
    wanted = Partitions(groups, stage=3, world_size=4)

    assert sources(saved, wanted, 3) == {0}
