"""Which elements of a parameter each rank keeps under ZeRO, and where. Arithmetic, no tensors.

The layouts are DeepSpeed's (`runtime/zero/stage_1_and_2.py`, `runtime/zero/stage3.py`). A rank has
one flat tensor for each group of parameters:

    stages 1, 2   the group's parameters end to end, cut into equal parts of even length
    stage 3       each parameter cut into equal parts; a rank's parts end to end

Padding makes the last parts equal to the others; no element of a parameter lies in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Groups = Sequence[Mapping[str, int]]
"""Elements of every parameter by name, for each group, in the order of DeepSpeed's tensors."""

_EVEN = 2
"""DeepSpeed starts every part of stages 1 and 2 at an even element."""


@dataclass(frozen=True)
class Span:
    """Elements [start, stop) of a flattened parameter, at `offset` in a rank's flat tensor."""

    group: int
    start: int
    stop: int
    offset: int


@dataclass(frozen=True)
class _Cut:
    """How a parameter of `numel` elements is cut.

    It begins at `base` of what is cut into parts of `part` elements; a rank's part of that begins
    at `place` of its flat tensor.
    """

    group: int
    numel: int
    base: int
    part: int
    place: int


class Partitions:
    """The layout of one ZeRO stage (1 to 3) over a number of ranks."""

    def __init__(self, groups: Groups, *, stage: int, world_size: int) -> None:
        """Take the groups as DeepSpeed tells them (`param_shapes` of a model's states)."""
        cut = _cut_each if stage == 3 else _cut_end_to_end
        self._cuts: dict[str, _Cut] = {}
        sizes = []
        for number, group in enumerate(groups):
            cuts, size = cut(number, group, world_size)
            self._cuts |= cuts
            sizes.append(size)
        self.sizes = tuple(sizes)
        self.groups = tuple(tuple(group) for group in groups)

    @property
    def elements(self) -> dict[str, int]:
        """The number of elements of every parameter."""
        return {name: cut.numel for name, cut in self._cuts.items()}

    def group(self, name: str) -> int:
        """The group that a parameter belongs to."""
        return self._cuts[name].group

    def span(self, name: str, rank: int) -> Span | None:
        """What a rank keeps of a parameter; None if nothing."""
        cut = self._cuts[name]
        begin = rank * cut.part - cut.base
        start, stop = max(begin, 0), min(begin + cut.part, cut.numel)
        if start >= stop:
            return None
        return Span(cut.group, start, stop, cut.place + start - begin)

    def owners(self, name: str, start: int, stop: int) -> range:
        """The ranks that keep elements [start, stop) of a parameter."""
        cut = self._cuts[name]
        return range((cut.base + start) // cut.part, (cut.base + stop - 1) // cut.part + 1)


def sources(saved: Partitions, wanted: Partitions, rank: int) -> frozenset[int]:
    """The ranks of the saved layout that keep something of what a rank of the wanted one needs.

    Never empty: some of a state is the same on all ranks, and is taken from any of them.
    """
    spans = ((name, wanted.span(name, rank)) for name in wanted.elements)
    owners = frozenset(
        owner
        for name, span in spans
        if span is not None
        for owner in saved.owners(name, span.start, span.stop)
    )
    return owners or frozenset({0})


def _cut_end_to_end(
    number: int, group: Mapping[str, int], world_size: int
) -> tuple[dict[str, _Cut], int]:
    part = _EVEN * -(-sum(group.values()) // (_EVEN * world_size))
    cuts, base = {}, 0
    for name, numel in group.items():
        cuts[name] = _Cut(number, numel, base, part, place=0)
        base += numel
    return cuts, part


def _cut_each(
    number: int, group: Mapping[str, int], world_size: int
) -> tuple[dict[str, _Cut], int]:
    cuts, place = {}, 0
    for name, numel in group.items():
        part = -(-numel // world_size)
        cuts[name] = _Cut(number, numel, 0, part, place)
        place += part
    return cuts, place
