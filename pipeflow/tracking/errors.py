"""What is raised where a tracker cannot be used, and the check that its package is installed."""

from __future__ import annotations

from importlib.util import find_spec

from pipeflow.dsl.errors import PipeflowError


class TrackingError(PipeflowError):
    """A tracker cannot be used; the message says what to install or to change."""


def require(package: str, extra: str, what: str) -> None:
    """Refuse what needs a package that is not installed.

    Raises TrackingError: says which extra to install.
    """
    spec = find_spec(package)
    # W&B keeps its files in a folder `wandb`, which Python takes for a package without an origin.
    if spec is None or spec.origin is None:
        raise TrackingError(
            f"{what} needs {package}, which is not installed: pip install 'pipeflow[{extra}]'"
        )


def first_line(error: BaseException) -> str:
    """What a service says went wrong, in a line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
