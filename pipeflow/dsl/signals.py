"""What a producing method returns when it has no item: `NotReady` for now, `Ended` for good.

Values of these classes stay inside the shard: they are stripped from the stream's type and no stage ever
sees one.
"""

from __future__ import annotations

import contextvars
from typing import final


@final
class NotReady:
    """Returned by a producing method that has nothing yet, such as a replay buffer before it is warm.

    The source is asked again once something else in the plan has moved; nothing spins on it.
    """


@final
class Ended:
    """Returned by a producing method that has nothing more: its shard ends (law 18)."""


_shard: contextvars.ContextVar[int] = contextvars.ContextVar("pipeflow_shard", default=0)


def current_shard() -> int:
    """The index of the actor that is running within its group, from 0; 0 outside a run.

    All actors of a group get the same constructor arguments; this tells them apart, so that each derives a
    seed, an exploration rate or a part of the data of its own.
    """
    return _shard.get()


def enter_shard(index: int) -> contextvars.Token[int]:
    """Let `current_shard` answer `index` from here on; for the lowering."""
    return _shard.set(index)


def leave_shard(token: contextvars.Token[int]) -> None:
    """Undo `enter_shard`."""
    _shard.reset(token)
