"""The one fork server of a test run: processes that start in a moment, all imports done.

multiprocessing has a single server for a process, and its list of modules is what was set last.
So whoever starts processes adds its own modules here, when it is imported itself.
"""

from __future__ import annotations

import multiprocessing

CONTEXT = multiprocessing.get_context("forkserver")
"""Starts processes; the server comes up, and imports, with the first of them."""

_modules = ["__main__"]


def preload(*modules: str) -> None:
    """Have the server import these modules too."""
    _modules.extend(name for name in modules if name not in _modules)
    CONTEXT.set_forkserver_preload(_modules)
