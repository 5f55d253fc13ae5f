"""Where the processes of a run listen, as the kernel tells it."""

from __future__ import annotations

import ipaddress
import os
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_LISTENING = "0A"


def addresses() -> dict[str, set[Address]]:
    """The addresses on which this process and those below it listen for TCP, by the programs' names."""
    listening = _sockets()
    found: dict[str, set[Address]] = {}
    for pid in _family(os.getpid()):
        for inode in _inodes(pid) & set(listening):
            found.setdefault(_name(pid), set()).add(listening[inode])
    return found


def is_loopback(address: Address) -> bool:
    """Whether only this machine reaches it."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _sockets() -> dict[str, Address]:
    found: dict[str, Address] = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING:
                found[fields[9]] = _address(fields[1].partition(":")[0])
    return found


def _address(words: str) -> Address:
    """Of the kernel's notation: 32-bit words in hexadecimal, each with its bytes reversed."""
    parts = [bytes.fromhex(words[at : at + 8])[::-1] for at in range(0, len(words), 8)]
    return ipaddress.ip_address(b"".join(parts))


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for task in tasks for child in task.read_text().split()]
    return [pid, *(each for child in children for each in _family(child))]


def _inodes(pid: int) -> set[str]:
    found: set[str] = set()
    # Files close meanwhile, that of this very list among them, and processes end.
    with suppress(OSError):
        for file in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                link = os.readlink(f"/proc/{pid}/fd/{file}")
                if link.startswith("socket:["):
                    found.add(link[len("socket:[") : -1])
    return found


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()
