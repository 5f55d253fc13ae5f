"""What a user writes a plan in: streams, stages, actors, unions, and the tree that they make.

This package describes; `pipeflow.lowering` runs. It imports nothing of ray, torch, numpy or gymnasium.
"""

from pipeflow.dsl.actors import Actors, Placed, Send, actors, group_of
from pipeflow.dsl.errors import (
    ActorDiedError,
    DeadlockError,
    EngineError,
    PipeflowError,
    PlanError,
    RunError,
    StageError,
)
from pipeflow.dsl.gates import Gate, drain, every, take, tap, until
from pipeflow.dsl.gathers import Gather, gather_async, gather_rounds, gather_sync, max_lag
from pipeflow.dsl.messages import HasWeights, TakesWeights, sync_weights
from pipeflow.dsl.signals import Ended, NotReady, current_shard
from pipeflow.dsl.sourced import Source, Sourced
from pipeflow.dsl.sources import from_items, from_shards
from pipeflow.dsl.streams import Merged, Operator, ParallelStream, Stream
from pipeflow.dsl.transforms import (
    Concatenable,
    Expand,
    ExpansionOf,
    Stage,
    batch,
    concat,
    expand,
    flat_map,
    flatten,
    stage,
)

__all__ = [
    "ActorDiedError",
    "Actors",
    "Concatenable",
    "DeadlockError",
    "Ended",
    "EngineError",
    "Expand",
    "ExpansionOf",
    "Gate",
    "Gather",
    "HasWeights",
    "Merged",
    "NotReady",
    "Operator",
    "ParallelStream",
    "PipeflowError",
    "Placed",
    "PlanError",
    "RunError",
    "Send",
    "Source",
    "Sourced",
    "Stage",
    "StageError",
    "Stream",
    "TakesWeights",
    "actors",
    "batch",
    "concat",
    "current_shard",
    "drain",
    "every",
    "expand",
    "flat_map",
    "flatten",
    "from_items",
    "from_shards",
    "gather_async",
    "gather_rounds",
    "gather_sync",
    "group_of",
    "max_lag",
    "stage",
    "sync_weights",
    "take",
    "tap",
    "until",
]
