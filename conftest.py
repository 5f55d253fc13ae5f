"""Which modules of the package have no doctests to run here, since a package that they need is not installed."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("envpool") else ["pipeflow/rl/envpool.py"]
