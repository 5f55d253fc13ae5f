"""The 26 laws of what a plan means, each as a checker over the trace of a run; docs/semantics.md explains them.

`order`, `stages`, `barriers`, `messages`, `concurrency`, `draining`, `sharing`, `demand`, `failure`, `engines`
and `ownership` hold the laws; `law` says what a law is, `facts` reads a trace for them, and `names` lets two
traces be compared.
"""

from __future__ import annotations

from collections.abc import Collection

from pipeflow.semantics.events import Trace
from pipeflow.semantics.laws.barriers import law_5, law_6, law_7, law_8
from pipeflow.semantics.laws.concurrency import law_10, law_11, law_12
from pipeflow.semantics.laws.demand import law_17, law_18
from pipeflow.semantics.laws.draining import law_13
from pipeflow.semantics.laws.engines import law_23
from pipeflow.semantics.laws.engines import law_23_same as law_23_same
from pipeflow.semantics.laws.failure import law_19, law_20, law_21, law_22
from pipeflow.semantics.laws.failure import law_22_resumed as law_22_resumed
from pipeflow.semantics.laws.law import Law as Law
from pipeflow.semantics.laws.law import Violation as Violation
from pipeflow.semantics.laws.law import law
from pipeflow.semantics.laws.messages import law_9
from pipeflow.semantics.laws.order import law_1, law_3, law_4
from pipeflow.semantics.laws.order import law_3_same as law_3_same
from pipeflow.semantics.laws.ownership import law_24, law_25, law_26
from pipeflow.semantics.laws.sharing import law_14, law_15, law_16
from pipeflow.semantics.laws.stages import law_2

LAWS: tuple[Law, ...] = (
    law(1, "Shard order", law_1),
    law(2, "Stage order", law_2),
    law(3, "Fusion", law_3),
    law(4, "Ordered placement", law_4),
    law(5, "Round", law_5),
    law(6, "Barrier", law_6),
    law(7, "Bounded asynchrony", law_7),
    law(8, "Progress", law_8),
    law(9, "Message order", law_9),
    law(10, "Merge", law_10),
    law(11, "Weighted round robin", law_11),
    law(12, "Asynchronous union", law_12),
    law(13, "Drain", law_13),
    law(14, "Fork", law_14),
    law(15, "Partition", law_15),
    law(16, "Buffer", law_16),
    law(17, "Laziness", law_17),
    law(18, "End", law_18),
    law(19, "Crash", law_19),
    law(20, "Error", law_20),
    law(21, "Closing", law_21),
    law(22, "Resume", law_22),
    law(23, "Engines", law_23),
    law(24, "Lag limit", law_24),
    law(25, "Type soundness", law_25),
    law(26, "Linearity", law_26),
)
"""All laws, by number."""


def check(trace: Trace, only: Collection[int] | None = None) -> list[Violation]:
    """Where a trace breaks the laws, in the order of its events.

    >>> from pipeflow import from_shards, gather_sync
    >>> run = (from_shards([[1, 2]]) | gather_sync()).run(record=True)
    >>> list(run), check(run.trace)
    ([1, 2], [])

    Args:
        trace: of a run, or its beginning.
        only: the numbers of the laws to check; None means all.

    Raises:
        ValueError: there is no law of a number in `only`.
    """
    unknown = set(only or ()) - {law.number for law in LAWS}
    if unknown:
        message = f"there are no laws {sorted(unknown)}; they are numbered from 1 to {len(LAWS)}"
        raise ValueError(message)
    found = [broken for law in LAWS if only is None or law.number in only for broken in law.check(trace)]
    return sorted(found, key=lambda broken: broken.event_index)
