"""The chart's dashboards: as generated, laid out, and asking only for metrics that exist."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import promql_parser
import pytest

ROOT = Path(__file__).parents[3]
BOARDS = sorted((ROOT / "charts/pretrain-operator/dashboards").glob("*.json"))
REFERENCE = ROOT / "docs/reference/metrics.md"
ROW = re.compile(r"\| `(\w+)` \| (counter|gauge|histogram) \|(?: [\w ]+ \|)? ([^|]*)\|")

EVERYWHERE = {"namespace", "job", "attempt"}
"""Labels that the reference tells once for all families of the stages."""

OF_TARGETS = {"instance", "pod", "le"}
"""Labels that the scraper adds, and that of buckets."""

CLIENT: dict[str, set[str]] = {
    "process_resident_memory_bytes": set(),
    "process_cpu_seconds_total": set(),
}
"""Metrics of the Python client, which the reference does not list."""


def load(path: Path) -> dict[str, Any]:
    board: dict[str, Any] = json.loads(path.read_text())
    return board


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows and panels, those of closed rows too."""
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", [])


def expressions(board: dict[str, Any]) -> Iterator[str]:
    """Every query of a board, with what Grafana would put in."""
    asked = [target["expr"] for panel in panels(board) for target in panel.get("targets", [])]
    asked += [mark["expr"] for mark in board["annotations"]["list"]]
    for expr in asked:
        yield expr.replace("$__rate_interval", "1m")


def documented() -> dict[str, set[str]]:
    """Labels by the name of a series, from the reference."""
    found = dict(CLIENT)
    for name, kind, labels in ROW.findall(REFERENCE.read_text()):
        own = set(re.findall(r"`(\w+)`", labels))
        own |= set() if name.startswith("pretrain_operator_") else EVERYWHERE
        series = [name]
        if kind == "histogram":
            series = [f"{name}_{part}" for part in ("bucket", "sum", "count")]
        found |= dict.fromkeys(series, own)
    return found


def test_dashboards_and_reference_are_what_the_generator_writes() -> None:
    command = [sys.executable, "-m", "tools.telemetry", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_there_is_a_board_for_a_job_for_all_jobs_and_for_the_operator() -> None:
    assert [path.stem for path in BOARDS] == ["fleet", "job", "operator"]
    assert len({load(path)["uid"] for path in BOARDS}) == len(BOARDS)


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_panels_lie_side_by_side(path: Path) -> None:
    board = load(path)
    shown = list(panels(board))
    assert len({panel["id"] for panel in shown}) == len(shown)

    places = [panel["gridPos"] for panel in board["panels"]]
    for place in places:
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_every_panel_asks_something_of_the_chosen_data_source(path: Path) -> None:
    for panel in panels(load(path)):
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["targets"]
            assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_every_query_asks_for_metrics_and_labels_of_the_reference(path: Path) -> None:
    known = documented()
    for expr in expressions(load(path)):
        for name, matchers in selectors(expr):
            assert name in known, expr
            assert matchers.keys() <= known[name], expr


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_every_query_keeps_labels_that_its_metrics_have(path: Path) -> None:
    known = documented()
    for expr in expressions(load(path)):
        there = set.union(OF_TARGETS, *(known[name] for name, _ in selectors(expr)))
        assert set(kept_labels(expr)) <= there, expr


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_every_legend_names_labels_that_its_query_keeps(path: Path) -> None:
    for panel in panels(load(path)):
        for target in panel.get("targets", []):
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert named <= {*kept_labels(target["expr"].replace("$__rate_interval", "1m")), "pod"}


def test_the_board_of_a_job_shows_that_job_alone() -> None:
    for expr in expressions(load(ROOT / "charts/pretrain-operator/dashboards/job.json")):
        for _, matchers in selectors(expr):
            assert matchers["namespace"] == "$namespace"
            assert matchers["job"] == "$job"


def test_every_family_of_training_is_on_the_board_of_a_job() -> None:
    asked = {
        name
        for expr in expressions(load(ROOT / "charts/pretrain-operator/dashboards/job.json"))
        for name, _ in selectors(expr)
    }
    of_stages = REFERENCE.read_text().partition("## Operator, about jobs")[0]
    families = {name for name, _, _ in ROW.findall(of_stages)}

    missing = {name for name in families if not any(series.startswith(name) for series in asked)}

    assert missing == {
        "pretrain_last_step_timestamp_seconds",
        "pretrain_restore_seconds",
        "pretrain_samples_total",
    }


def selectors(expr: str) -> list[tuple[str, dict[str, str]]]:
    """Names and matchers of all that a query reads; ValueError if it is no PromQL."""
    found: list[tuple[str, dict[str, str]]] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            matchers = {matcher.name: matcher.value for matcher in node.matchers.matchers}
            found.append((node.name or "", matchers))

    promql_parser.walk(promql_parser.parse(expr), visit)
    return found


def kept_labels(expr: str) -> list[str]:
    """The labels that the aggregations of a query keep."""
    found: list[str] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier:
            found.extend(node.modifier.labels)

    promql_parser.walk(promql_parser.parse(expr), visit)
    return found
