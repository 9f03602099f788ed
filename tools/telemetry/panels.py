"""What a dashboard consists of, so that a description of one has a line for a panel.

Nothing here knows Grafana's JSON; `grafana` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["none", "short", "sci", "s", "bytes", "percentunit", "flops", "cps", "reqps", "Bps"]
"""Grafana's names: seconds, ratios from 0 to 1, operations a second, counts a second, ..."""

PanelKind = Literal["lines", "areas", "figure", "word", "table"]
"""Lines over time; areas stacked over time; the last value; the last value's legend; a table."""


@dataclass(frozen=True)
class Query:
    """PromQL, and how each series is called; `promql` makes them."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """A panel; `width` is in 24ths of the board."""

    title: str
    kind: PanelKind
    unit: Unit
    queries: tuple[Query, ...]
    width: int
    help: str = ""


@dataclass(frozen=True)
class Row:
    """Panels under a heading, laid out from left to right; those of a closed row are hidden."""

    title: str
    panels: tuple[Panel, ...]
    closed: bool = False


@dataclass(frozen=True)
class Variable:
    """A choice at the top of the board, from the values of a label."""

    name: str
    metric: str
    matchers: str = ""


@dataclass(frozen=True)
class Mark:
    """Vertical lines over every panel, where the query has a series; `text` may name labels."""

    name: str
    expr: str
    text: str


@dataclass(frozen=True)
class Dashboard:
    """A board; `name` is its file's and part of its address."""

    name: str
    title: str
    about: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()
    marks: tuple[Mark, ...] = ()
    matchers: str = ""
    hours: int = 6


def lines(title: str, unit: Unit, *queries: Query, width: int = 8, about: str = "") -> Panel:
    """Figures over time."""
    return Panel(title, "lines", unit, queries, width, about)


def areas(title: str, unit: Unit, *queries: Query, width: int = 8, about: str = "") -> Panel:
    """Parts of a whole over time, stacked."""
    return Panel(title, "areas", unit, queries, width, about)


def figure(title: str, unit: Unit, query: Query, *, width: int = 3, about: str = "") -> Panel:
    """The newest value, large."""
    return Panel(title, "figure", unit, (query,), width, about)


def word(title: str, query: Query, *, width: int = 3, about: str = "") -> Panel:
    """The legend of the newest series."""
    return Panel(title, "word", "none", (query,), width, about)


def table(title: str, unit: Unit, query: Query, *, width: int = 8, about: str = "") -> Panel:
    """The newest value of every series, with its labels as columns."""
    return Panel(title, "table", unit, (query,), width, about)
