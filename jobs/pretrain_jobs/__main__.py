"""`python -m pretrain_jobs`: the one command of every container.

Each stage is imported only when it runs, so that an image needs no more than its stages do.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pretrain_api.reports import EXIT_CODES, Cause, StageName

from pretrain_jobs.errors import UserError
from pretrain_jobs.process import run_stage, run_tool


@dataclass(frozen=True)
class Command:
    """A stage's process: its report's stage, where its `main` is, and what it does."""

    stage: StageName
    entry: str
    help: str


STAGES = {
    "tokenizer": Command(
        "tokenizer",
        "pretrain_jobs.tokenizer.stage:main",
        "resolve the sources, load or train the tokenizer, tell every later fingerprint",
    ),
    "preprocess": Command(
        "preprocess",
        "pretrain_jobs.corpus.stage:main",
        "turn one slice of the corpus into shards (the slice is $JOB_COMPLETION_INDEX)",
    ),
    "train": Command(
        "train",
        "pretrain_jobs.train.launcher:main",
        "start this node's training processes with torchrun and wait for them",
    ),
    "train-worker": Command(
        "train",
        "pretrain_jobs.train.main:main",
        "one training process; torchrun starts it, people use train",
    ),
    "evaluate": Command(
        "evaluate",
        "pretrain_jobs.evaluate.stage:main",
        "fine-tune the model on each task and measure it",
    ),
    "export": Command(
        "export",
        "pretrain_jobs.export.stage:main",
        "write the model as a Hugging Face directory and check that it loads",
    ),
}

TOOLS = {
    "pull": (
        "pretrain_jobs.storage.pull:main",
        "copy a committed artifact into a local directory and verify it",
    ),
    "push": (
        "pretrain_jobs.storage.push:main",
        "copy a local directory's files, such as a corpus, into storage",
    ),
    "checkpoints": (
        "pretrain_jobs.checkpoint.command:main",
        "list, verify, thin out or copy the checkpoints of a job",
    ),
    "fill-mask": (
        "pretrain_jobs.export.fill_mask:main",
        "show what an exported masked model predicts for hidden tokens",
    ),
}

_EPILOG = """\
A config is the JSON of the stage's model in pretrain_api/stages.py; the operator and
`pretrainctl local` write it. Credentials of S3 come from AWS_ACCESS_KEY_ID and its kin.

environment:
  PRETRAIN_TERMINATION_LOG  where the report goes (default /dev/termination-log, if it exists)
  PRETRAIN_PROGRESS_FILE    where progress goes while the stage runs (default: nowhere)
  PRETRAIN_PROGRESS_PORT    where /progress and /metrics are served meanwhile (default: nowhere)
  JOB_COMPLETION_INDEX      which slice (preprocess) or node (train) this process is

exit codes:
"""


class _Parser(argparse.ArgumentParser):
    """argparse with the exit code that a user's error has everywhere else."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_CODES[Cause.USER_ERROR], f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run one stage or tool, return its exit code."""
    options, rest = _parse(sys.argv[1:] if arguments is None else list(arguments))
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    if options.command in TOOLS:
        entry, _ = TOOLS[options.command]
        return run_tool(options.command, _lazily(entry), rest)
    command = STAGES[options.command]
    return run_stage(command.stage, _lazily(command.entry), options.config)


def _parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    if arguments[:1] and arguments[0] in TOOLS:
        return argparse.Namespace(command=arguments[0]), arguments[1:]
    return _parser().parse_args(arguments), []


def _parser() -> argparse.ArgumentParser:
    codes = "\n".join(f"  {code:<3} {cause}" for cause, code in EXIT_CODES.items())
    parser = _Parser(
        prog="python -m pretrain_jobs",
        description="Run one stage of a PretrainJob: tokenizer, preprocess, train, evaluate, "
        "export, in this order. Stages meet only through storage.",
        epilog=f"{_EPILOG}  0   done\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in STAGES.items():
        stage = commands.add_parser(name, help=command.help, description=command.help)
        stage.add_argument("--config", type=Path, required=True, help="the stage's config, JSON")
    for name, (_, text) in TOOLS.items():
        commands.add_parser(name, help=text, add_help=False)
    return parser


def _lazily(entry: str) -> Any:
    """A function that imports `module:name` when it is called, and calls it."""
    module, _, name = entry.partition(":")

    def call(argument: Any) -> Any:
        try:
            function = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            raise UserError(
                f"{error.name} is not installed here: this image or environment lacks what "
                f"{module} needs (extras: preprocess, train)"
            ) from error
        return function(argument)

    return call


if __name__ == "__main__":
    sys.exit(main())
