"""YAML text into plain data, each value with the line and column of its field.

What JSON cannot hold (tags, keys that are no strings) and duplicate keys are problems, reported
all at once. Not a validator of Kubernetes objects: see `pretrainctl.manifest_file`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.tokens import Token

from pretrainctl.yaml_scalars import TAG_PREFIX, Loader

FieldPath = tuple[str | int, ...]

MAX_NODES = 100_000
"""Aliases included: a manifest that expands to more is refused, not read into memory."""

MAX_DEPTH = 100
"""Levels of nesting; a PretrainJob with a pod template has about 20."""

_MERGE = f"{TAG_PREFIX}merge"
_TOO_DEEP = f"the document is nested more than {MAX_DEPTH} levels deep"
_SCALAR_TAGS = frozenset(f"{TAG_PREFIX}{name}" for name in ("null", "bool", "int", "float", "str"))


@dataclass(frozen=True, order=True)
class Position:
    """A place in a text; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class YamlProblem:
    """What is wrong at one place."""

    position: Position
    path: FieldPath
    message: str


class NotYamlError(Exception):
    """The text is not YAML, or not even text, from this place on."""

    def __init__(self, position: Position, message: str) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True)
class YamlDocument:
    """One document: plain data, where each field stands, and what cannot be used."""

    data: Any
    positions: dict[FieldPath, Position]
    problems: tuple[YamlProblem, ...]

    def position(self, path: FieldPath) -> Position:
        """Where a field stands, or the nearest of its parents if it is not there."""
        while path and path not in self.positions:
            path = path[:-1]
        return self.positions[path]


def decode_text(data: bytes) -> str:
    """UTF-8, with or without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        position = Position(before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        message = f"not UTF-8 (byte 0x{data[error.start]:02x}): save the file as UTF-8"
        raise NotYamlError(position, message) from None


def read_documents(text: str) -> Iterator[YamlDocument]:
    """All documents that are not empty; raises NotYamlError at the first that cannot be parsed."""
    try:
        loader = _ShallowLoader(text)
        while loader.check_node():
            node = loader.get_node()
            if node is not None and not _is_empty(node):
                yield _Reader(loader).read(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = Position(1, 1) if mark is None else Position(mark.line + 1, mark.column + 1)
        message = ", ".join(part for part in (error.context, error.problem) if part)
        raise NotYamlError(position, f"not YAML: {message}") from error
    except yaml.reader.ReaderError as error:
        raise NotYamlError(
            _position_of_offset(text, error.position),
            f"not YAML: the character U+{error.character:04X} is not allowed",
        ) from error
    except RecursionError as error:
        raise NotYamlError(Position(1, 1), _TOO_DEEP) from error


class _ShallowLoader(Loader):
    """Loader that refuses deep brackets as it reads them, each of which would slow all others."""

    def fetch_flow_collection_start(self, token: type[Token]) -> None:
        if self.flow_level > MAX_DEPTH:
            mark = self.get_mark()
            raise NotYamlError(Position(mark.line + 1, mark.column + 1), _TOO_DEEP)
        super().fetch_flow_collection_start(token)


def _position_of_offset(text: str, offset: int) -> Position:
    before = text[:offset]
    return Position(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def _join_surrogates(text: str) -> str:
    """JSON may write a character as two escapes, which PyYAML leaves apart; ValueError for one."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == f"{TAG_PREFIX}null" and node.value == ""


def _start(node: Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


@dataclass
class _Reader:
    """Walks one document's nodes and notes positions and problems."""

    loader: Loader
    positions: dict[FieldPath, Position] = field(default_factory=dict)
    problems: list[YamlProblem] = field(default_factory=list)
    open_nodes: set[int] = field(default_factory=set)
    nodes: int = 0

    def read(self, node: Node) -> YamlDocument:
        self.positions[()] = _start(node)
        data = self._value(node, ())
        return YamlDocument(data, self.positions, tuple(self.problems))

    def _problem(self, node: Node, path: FieldPath, message: str) -> None:
        self.problems.append(YamlProblem(_start(node), path, message))

    def _value(self, node: Node, path: FieldPath) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise NotYamlError(_start(node), f"the document has more than {MAX_NODES:,} values")
        if len(self.open_nodes) > MAX_DEPTH:
            raise NotYamlError(_start(node), _TOO_DEEP)
        if id(node) in self.open_nodes:
            raise NotYamlError(_start(node), "an alias stands inside of what it refers to")
        self.open_nodes.add(id(node))
        try:
            if isinstance(node, MappingNode):
                return self._mapping(node, path)
            if isinstance(node, SequenceNode):
                return self._sequence(node, path)
            return self._scalar(node, path)
        finally:
            self.open_nodes.discard(id(node))

    def _scalar(self, node: Node, path: FieldPath) -> Any:
        if node.tag not in _SCALAR_TAGS:
            self._problem(
                node, path, f"the tag {node.tag.replace(TAG_PREFIX, '!!')} cannot be used here"
            )
            return None
        try:
            value = self.loader.construct_object(node)
            return _join_surrogates(value) if isinstance(value, str) else value
        except (ValueError, LookupError):
            kind = node.tag.removeprefix(TAG_PREFIX)
            self._problem(node, path, f"{node.value!r} is not a value of type {kind}")
            return None

    def _sequence(self, node: SequenceNode, path: FieldPath) -> list[Any]:
        items = []
        for index, child in enumerate(node.value):
            self.positions.setdefault((*path, index), _start(child))
            items.append(self._value(child, (*path, index)))
        return items

    def _mapping(self, node: MappingNode, path: FieldPath) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for value_node in (value for key, value in node.value if key.tag == _MERGE):
            merged |= self._merge(value_node, path)
        own: dict[str, Any] = {}
        first: dict[str, Position] = {}
        for key_node, value_node in node.value:
            key = None if key_node.tag == _MERGE else self._key(key_node, path)
            if key is None:
                continue
            if key in own:
                message = f"duplicate key; the first is in line {first[key].line}"
                self._problem(key_node, (*path, key), message)
                continue
            first[key] = self.positions[(*path, key)] = _start(key_node)
            own[key] = self._value(value_node, (*path, key))
        return merged | own

    def _key(self, node: Node, path: FieldPath) -> str | None:
        if isinstance(node, ScalarNode) and node.tag == f"{TAG_PREFIX}str":
            return str(node.value)
        shown = repr(node.value) if isinstance(node, ScalarNode) else "this one"
        self._problem(node, path, f"a key must be a string: put {shown} into quotation marks")
        return None

    def _merge(self, node: Node, path: FieldPath) -> dict[str, Any]:
        parts = node.value if isinstance(node, SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for part in reversed(parts):
            if not isinstance(part, MappingNode):
                self._problem(part, path, "<< takes a mapping or a list of mappings")
                continue
            merged |= self._value(part, path)
        return merged
