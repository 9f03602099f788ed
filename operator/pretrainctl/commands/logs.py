"""`pretrainctl logs`: what the pods of a job on a cluster print."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from pretrainctl.commands.describe import Context, Kubeconfig, Name, Namespace
from pretrainctl.errors import NotFoundError
from pretrainctl.exit_codes import ExitCode
from pretrainctl.output import print_note, print_text

if TYPE_CHECKING:
    from pretrainctl.cluster.log_choice import Choice
    from pretrainctl.cluster.log_reading import LogReader

KEPT = (
    "Pods of an attempt that has ended are removed; its last words are in the event AttemptFailed, "
    "for as long as the cluster keeps events (an hour, unless it is set up otherwise). What else "
    "they printed only a log collector of the cluster's keeps."
)

Stage = Annotated[
    str | None,
    typer.Option(metavar="STAGE", help="tokenizer, preprocess, train, evaluate or export."),
]
Attempt = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="An attempt; they count from 0.")
]
Index = Annotated[
    int | None, typer.Option(min=0, metavar="I", help="A worker, or a slice of preprocess.")
]
Rank = Annotated[
    int | None, typer.Option(min=0, metavar="R", help="The worker with this rank of train.")
]
AllPods = Annotated[
    bool, typer.Option("--all", help="All pods of the attempt, lines named by rank or slice.")
]
Follow = Annotated[
    bool,
    typer.Option("--follow", "-f", help="Wait for pods, and print as they do."),
]
Tail = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Only the last lines of each pod.")
]


def logs(
    name: Name,
    namespace: Namespace = None,
    *,
    stage: Stage = None,
    attempt: Attempt = None,
    index: Index = None,
    rank: Rank = None,
    all_pods: AllPods = False,
    follow: Follow = False,
    tail: Tail = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print the logs of a PretrainJob's pods on a cluster.

    Without options: of the stage that runs or ran last, the pod that failed first, else that of
    rank 0. Pods of an attempt that failed are removed once its cause is known; then this prints
    the last words that the job's status keeps, or the event of its end. --follow goes on with the
    next attempts and stages until the job ends, or the stage or attempt that was asked for.
    """
    from pretrainctl.cluster.access import open_cluster
    from pretrainctl.cluster.log_choice import Wanted, stage_named
    from pretrainctl.cluster.log_reading import LogReader

    _check(index=index, rank=rank, all_pods=all_pods, stage=stage)
    wanted = Wanted(
        stage=stage_named("train" if rank is not None else stage),
        attempt=attempt,
        index=index,
        rank=rank,
        all_pods=all_pods,
    )
    cluster = open_cluster(kubeconfig, context)
    reader = LogReader(
        cluster=cluster,
        namespace=namespace or cluster.namespace,
        name=name,
        wanted=wanted,
        tail=tail,
        print=_print_at_once,
        note=print_note,
    )
    try:
        _follow(reader) if follow else _show(reader)
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _check(*, index: int | None, rank: int | None, all_pods: bool, stage: str | None) -> None:
    """Refuse options that contradict each other."""
    if sum((index is not None, rank is not None, all_pods)) > 1:
        raise typer.BadParameter("choose one of --index, --rank and --all")
    if rank is not None and stage not in (None, "train"):
        raise typer.BadParameter("only train has ranks; choose by --index", param_hint="--rank")


def _show(reader: LogReader) -> None:
    _, choice = reader.look()
    if not reader.show(choice):
        _print_last_words(reader, choice)


def _follow(reader: LogReader) -> None:
    from pretrainctl.cluster.log_following import follow

    choice = follow(reader)
    if choice is not None:
        _print_last_words(reader, choice)


def _print_last_words(reader: LogReader, choice: Choice) -> None:
    """What status or an event keeps, where no pod has a log."""
    where = f"no pod of attempt {choice.attempt} of {choice.stage} has a log"
    words = reader.last_words(choice)
    if not words:
        raise NotFoundError(
            f"{where}, and neither the job's status nor an event tells of it. {KEPT}"
        )
    teller = "the job's status says" if words == choice.last_words else "the event of its end says"
    print_note(f"{where}; {teller}:")
    print_text(words)


def _print_at_once(line: str) -> None:
    print_text(line)
    sys.stdout.flush()
