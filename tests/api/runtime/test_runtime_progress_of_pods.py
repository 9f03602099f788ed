"""Figures of running pods in status: asked for over HTTP, written seldom."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pretrain_api.reports import StageProgress, TrainingStatus
from pretrain_testing.operator_process import POLL_SECONDS, OperatorProcess
from pretrain_testing.played_pods import PlayedJob
from pretrain_testing.processes import wait_for

ADDRESS = "127.0.0.77"
PORT = 9400


class RankZero:
    """Serves the progress of one training attempt, which makes a step at every look."""

    def __init__(self) -> None:
        self.step = 0
        self.silent = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if outer.silent:
                    self.send_error(503)
                    return
                outer.step += 1
                training = TrainingStatus(step=outer.step, max_steps=1000, loss=2.5)
                body = StageProgress(stage="train", training=training).model_dump_json().encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer((ADDRESS, PORT), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def rank_zero() -> Iterator[RankZero]:
    serving = RankZero()
    yield serving
    serving.close()


def step_of(job: PlayedJob) -> int:
    return int((job.status().get("training") or {}).get("step", 0))


def test_training_figures_come_into_status_at_most_once_a_poll(
    operator: OperatorProcess, job: PlayedJob, rank_zero: RankZero
):
    job.create()
    job.train(ip=ADDRESS)
    wait_for("a step in status", lambda: step_of(job) > 0)
    writes = operator.metric("pretrain_operator_api_requests_total", resource="pretrainjobs/status")
    polls = operator.metric("pretrain_operator_progress_polls_total", outcome="ok")
    first = step_of(job)
    wait_for("more steps in status", lambda: step_of(job) > first + 4)
    written = (
        operator.metric("pretrain_operator_api_requests_total", resource="pretrainjobs/status")
        - writes
    )
    polled = operator.metric("pretrain_operator_progress_polls_total", outcome="ok") - polls
    assert job.status()["training"]["loss"] == 2.5
    assert written <= polled + 1
    assert POLL_SECONDS == 1


def test_a_pod_that_does_not_answer_has_not_failed_and_its_last_figures_stay(
    operator: OperatorProcess, job: PlayedJob, rank_zero: RankZero
):
    job.create()
    job.train(ip=ADDRESS)
    wait_for("a step in status", lambda: step_of(job) > 0)
    rank_zero.silent = True
    invalid = "pretrain_operator_progress_polls_total"
    wait_for("polls in vain", lambda: operator.metric(invalid, outcome="invalid") >= 5)
    status = job.status()
    assert status["training"]["step"] > 0
    assert status["phase"] == "Training"
    assert status["restarts"] == {}
