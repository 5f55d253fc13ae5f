"""The page of a run: its plan as a graph with live figures, its curves, and what failed in it.

`serve` shows a run that a program drives, `Recording` and `PageServer` are its two halves. Nothing of a run knows
of its page; this package reads the run's counters and no more.
"""

from pipeflow.dashboard.encoding import NotARecording
from pipeflow.dashboard.live import LivePage, serve
from pipeflow.dashboard.recording import FILE, Recording, read
from pipeflow.dashboard.server import PageServer

__all__ = ["FILE", "LivePage", "NotARecording", "PageServer", "Recording", "read", "serve"]
