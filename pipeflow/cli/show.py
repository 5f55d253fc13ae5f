"""`pipeflow show`: the page of a run from its folder, whether it has ended or is still trained elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tyro

from pipeflow.cli.errors import UsageError
from pipeflow.cli.flags import parse
from pipeflow.cli.progress import say
from pipeflow.dashboard.encoding import NotARecording
from pipeflow.dashboard.recording import FILE, read
from pipeflow.dashboard.server import PageServer
from pipeflow.dashboard.views import RunView

_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class ShowOptions:
    """Which run is shown, and where."""

    path: tyro.conf.Positional[Path]
    """A run's folder."""
    port: int = 0
    """The port on this machine to serve the page on; 0 takes a free one."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"--port must be from 0 to 65535, got {self.port}")


def show_run(words: Sequence[str]) -> int:
    """Serve the page until Ctrl-C, which is how it is meant to end: returns 0.

    Raises UsageError for words that do not fit and for a folder that is no run, OSError for a port that cannot be
    used.
    """
    options = parse(ShowOptions, words, "pipeflow show", "Show a run in the browser.")
    shown = _Shown(options.path / FILE)
    server = PageServer(lambda: shown.view, options.port)
    try:
        say(f"{shown.view.title}: {server.url}  (Ctrl-C ends)")
        while True:
            time.sleep(_LOOK_SECONDS)
            shown.look()
    except KeyboardInterrupt:
        return 0
    finally:
        server.close()


@dataclass
class _Shown:
    """A recording that may still grow. Raises UsageError if there is none."""

    file: Path
    view: RunView = field(init=False)

    def __post_init__(self) -> None:
        folder = self.file.parent
        try:
            self.view = read(self.file)
        except FileNotFoundError as error:
            what = f"has no {self.file.name} in it" if folder.exists() else "does not exist"
            raise UsageError(f"{folder} {what}; give the folder of a run, as train printed it") from error
        except OSError as error:
            raise UsageError(f"cannot read {self.file}: {error.strerror}") from error
        except NotARecording as error:
            raise UsageError(f"{self.file} is damaged: {error}; the run cannot be shown") from error

    def look(self) -> None:
        """Read the file again if it has changed; what cannot be read leaves the last view."""
        with contextlib.suppress(OSError, NotARecording):
            if self.file.stat().st_mtime != self.view.updated:
                self.view = read(self.file)
