"""Which versions of what are in use: for `--version`, and for whoever wants to repeat a run.

Apart from the rest because the package may run without being installed, from its source tree.
"""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

_RECORDED = ("pipeflow", "torch", "numpy", "gymnasium", "ray")


def pipeflow_version() -> str:
    """The installed version; "unknown" where pipeflow is not installed."""
    try:
        return version("pipeflow")
    except PackageNotFoundError:
        return "unknown"


def versions() -> dict[str, str]:
    """The versions that a run depends on, by package, with Python's."""
    found = {"python": platform.python_version()}
    for package in _RECORDED:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
