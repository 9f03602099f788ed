"""Descriptions of dashboards as the JSON that Grafana 10.4 and newer read (schema version 39)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from string import ascii_uppercase
from typing import Any

from tools.telemetry.panels import Dashboard, Mark, Panel, PanelKind, Query, Row, Variable
from tools.telemetry.promql import expand

SCHEMA_VERSION = 39
BOARD_WIDTH = 24
HEIGHTS: dict[PanelKind, int] = {"lines": 8, "areas": 8, "figure": 4, "word": 4, "table": 8}

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
TYPES: dict[PanelKind, str] = {
    "lines": "timeseries",
    "areas": "timeseries",
    "figure": "stat",
    "word": "stat",
    "table": "table",
}

Json = dict[str, Any]


def dashboard_json(board: Dashboard) -> str:
    """The text of a board's file."""
    content = {
        "uid": f"pretrain-{board.name}",
        "title": board.title,
        "description": board.about,
        "tags": ["pretrain"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": f"now-{board.hours}h", "to": "now"},
        "timezone": "browser",
        "links": [_links()],
        "templating": {"list": [_data_source(), *map(_variable, board.variables)]},
        "annotations": {"list": [_mark(mark, board.matchers) for mark in board.marks]},
        "panels": list(_panels(board)),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _links() -> Json:
    """A menu of the other boards, which keeps the time and the choices."""
    return {
        "title": "Pretrain",
        "type": "dashboards",
        "tags": ["pretrain"],
        "asDropdown": True,
        "includeVars": True,
        "keepTime": True,
    }


def _data_source() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
    }


def _variable(variable: Variable) -> Json:
    series = f"{variable.metric}{{{variable.matchers}}}" if variable.matchers else variable.metric
    query = f"label_values({series}, {variable.name})"
    return {
        "name": variable.name,
        "label": variable.name.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": variable.name},
        "refresh": 2,
        "sort": 1,
    }


def _mark(mark: Mark, matchers: str) -> Json:
    return {
        "name": mark.name,
        "datasource": SOURCE,
        "enable": True,
        "iconColor": "orange",
        "expr": expand(mark.expr, matchers),
        "step": "10s",
        "titleFormat": mark.text,
    }


def _panels(board: Dashboard) -> Iterator[Json]:
    """Rows and panels with their places; each panel's number is that of its place in the file."""
    number, top = 1, 0
    for row in board.rows:
        placed = list(_place(row.panels, top + 1))
        inside = [
            _panel(panel, board.matchers, number + 1 + index, place)
            for index, (panel, place) in enumerate(placed)
        ]
        yield _row(row, number, top, inside)
        if not row.closed:
            yield from inside
        number += 1 + len(inside)
        top = top + 1 if row.closed else max(place["y"] + place["h"] for _, place in placed)


def _row(row: Row, number: int, top: int, inside: list[Json]) -> Json:
    return {
        "id": number,
        "type": "row",
        "title": row.title,
        "collapsed": row.closed,
        "gridPos": {"x": 0, "y": top, "w": BOARD_WIDTH, "h": 1},
        "panels": inside if row.closed else [],
    }


def _place(panels: Sequence[Panel], top: int) -> Iterator[tuple[Panel, dict[str, int]]]:
    """From left to right; the next line begins below the highest of the one before."""
    left = highest = 0
    for panel in panels:
        if left + panel.width > BOARD_WIDTH:
            left, top, highest = 0, top + highest, 0
        height = HEIGHTS[panel.kind]
        yield panel, {"x": left, "y": top, "w": panel.width, "h": height}
        left, highest = left + panel.width, max(highest, height)


def _panel(panel: Panel, matchers: str, number: int, place: dict[str, int]) -> Json:
    return {
        "id": number,
        "type": TYPES[panel.kind],
        "title": panel.title,
        "description": panel.help,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": _field(panel), "overrides": []},
        "options": _options(panel),
        "targets": [
            _target(query, matchers, ref, newest=panel.kind == "table")
            for ref, query in zip(ascii_uppercase, panel.queries, strict=False)
        ],
        **_as_rows(panel),
    }


def _field(panel: Panel) -> Json:
    field: Json = {"unit": panel.unit}
    if panel.kind in ("lines", "areas"):
        stacked = panel.kind == "areas"
        field["custom"] = {
            "lineWidth": 1,
            "fillOpacity": 30 if stacked else 0,
            "showPoints": "auto",
            "spanNulls": False,
            "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        }
    return field


def _options(panel: Panel) -> Json:
    match panel.kind:
        case "lines" | "areas":
            return {
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }
        case "table":
            return {"showHeader": True, "sortBy": [{"displayName": "Value", "desc": True}]}
        case _:
            return {
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
                "textMode": "name" if panel.kind == "word" else "value",
                "colorMode": "none",
                "graphMode": "none",
            }


def _as_rows(panel: Panel) -> Json:
    """A table shows labels, not the time at which everything was asked."""
    if panel.kind != "table":
        return {}
    return {
        "transformations": [
            {"id": "organize", "options": {"excludeByName": {"Time": True, "__name__": True}}}
        ]
    }


def _target(query: Query, matchers: str, ref: str, *, newest: bool) -> Json:
    return {
        "refId": ref,
        "datasource": SOURCE,
        "expr": expand(query.expr, matchers),
        "legendFormat": query.legend or "__auto",
        "instant": newest,
        "range": not newest,
        **({"format": "table"} if newest else {}),
    }
