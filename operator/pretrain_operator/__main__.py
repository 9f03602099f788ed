"""`python -m pretrain_operator`: run the operator as its environment says, without arguments."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from importlib.metadata import version

from pretrain_operator.errors import OperatorError
from pretrain_operator.log import configure
from pretrain_operator.runtime import run
from pretrain_operator.settings import OperatorSettings

DISTRIBUTION = "pretrain-operator"

_log = logging.getLogger(__name__)


def main() -> int:
    """Run until told to stop; the exit code says what ended it."""
    logging.basicConfig(stream=sys.stderr)
    try:
        settings = OperatorSettings.from_environment(os.environ)
        configure(level=settings.log_level, form=settings.log_format)
        asyncio.run(run(settings, version=version(DISTRIBUTION)))
    except Exception as error:  # noqa: BLE001 - the process's top
        return _end_with(error)
    return 0


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
