"""`python -m pretrain_operator`: run the operator as its environment says, without arguments."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from importlib.metadata import version

from pretrain_operator.errors import OperatorError
from pretrain_operator.log import configure
from pretrain_operator.settings import OperatorSettings

DISTRIBUTION = "pretrain-operator"
USAGE = """\
usage: python -m pretrain_operator

Run the operator until it is told to stop. It takes no arguments: PRETRAIN_* environment variables
configure it (pretrain_operator/settings.py), and KUBECONFIG is honoured outside a cluster. People
use pretrainctl instead."""
COLLECT_AFTER = (20_000, 20, 20)
"""New objects that may be there before cycles among them are looked for, and rounds of that."""

_log = logging.getLogger(__name__)


def main() -> int:
    """Run until told to stop; the exit code says what ended it."""
    if sys.argv[1:]:
        return _tell_usage(sys.argv[1:])
    from pretrain_operator.runtime import run  # with clients that take a second to load

    logging.basicConfig(stream=sys.stderr)
    try:
        settings = OperatorSettings.from_environment(os.environ)
        configure(level=settings.log_level, form=settings.log_format)
        _leave_modules_alone()
        asyncio.run(run(settings, version=version(DISTRIBUTION)))
    except Exception as error:  # noqa: BLE001 - the process's top
        return _end_with(error)
    return 0


def _tell_usage(arguments: list[str]) -> int:
    """An operator started by mistake, by somebody who wanted help, would write to a cluster."""
    wanted = arguments[0] in {"-h", "--help"}
    (sys.stdout if wanted else sys.stderr).write(f"{USAGE}\n")
    return 0 if wanted else 2


def _leave_modules_alone() -> None:
    """What is loaded by now stays, and looking through it for cycles takes a tenth of all CPU."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def _end_with(error: Exception) -> int:
    """One line for a failure that has a name, a traceback for any other."""
    for known in _leaves(error):
        if isinstance(known, OperatorError):
            _log.error("the operator ends: %s", known)
            return known.exit_code
    _log.critical("the operator ends", exc_info=error)
    return 1


def _leaves(error: BaseException) -> list[BaseException]:
    """The errors in a group of groups."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for inner in error.exceptions for leaf in _leaves(inner)]


if __name__ == "__main__":
    sys.exit(main())
