"""The processes below this one, their memory and their processor time, as Linux tells it in /proc.

Apart from those who decide what to make of it. Memory that processes share, such as Ray's object store, is not
counted here.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

_MIB = 1024.0


def descendants(of: int | None = None) -> dict[int, str]:
    """The living processes below one, by default below this one, with their command lines."""
    root = os.getpid() if of is None else of
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it ended meanwhile
            continue
        if state != "Z":
            parents[int(status.parent.name)] = int(parent)
    found: dict[int, str] = {}
    for pid in parents:
        ancestor = pid
        while ancestor in parents and ancestor != root:
            ancestor = parents[ancestor]
        if ancestor == root and pid != root:
            found[pid] = _command(pid)
    return found


def private_mib(pids: Collection[int]) -> float:
    """MiB of memory that these processes have to themselves; one that has ended has none."""
    return sum(map(_anonymous_kib, pids)) / _MIB


def cpu_seconds(pids: Collection[int]) -> float:
    """Seconds of processors that these processes have used so far; one that has ended has none."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _anonymous_kib(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    lines = [line.split() for line in status.splitlines() if line.startswith("RssAnon:")]
    return float(lines[0][1]) if lines else 0.0


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
