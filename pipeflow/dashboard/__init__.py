"""The page of a run: its plan as a graph with live figures, its curves, and what failed in it.

`LivePage` is what `Run.serve` shows; `Recording` and `PageServer` are its two halves. This package reads a run's
counters and no more.
"""

from pipeflow.dashboard.encoding import NotARecording
from pipeflow.dashboard.live import LivePage
from pipeflow.dashboard.recording import FILE, Recording, read
from pipeflow.dashboard.server import PageServer

__all__ = ["FILE", "LivePage", "NotARecording", "PageServer", "Recording", "read"]
