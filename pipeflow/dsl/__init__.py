"""What a user writes a plan in: streams, stages, actors, unions, and the tree that they make.

This package describes; `pipeflow.lowering` runs. It imports nothing of ray, torch, numpy or gymnasium.
"""

from pipeflow.dsl.actors import Actors, Placed, Send, actors, group_of, groups_with
from pipeflow.dsl.errors import (
    ActorDiedError,
    CheckpointError,
    DeadlockError,
    EngineError,
    PipeflowError,
    PlanError,
    RunError,
    StageError,
)
from pipeflow.dsl.expressions import Operator
from pipeflow.dsl.gates import Gate, drain, every, once_per_steps, take, tap, until
from pipeflow.dsl.gathers import Gather, gather_async, gather_rounds, gather_sync, max_lag
from pipeflow.dsl.gating import HasSteps
from pipeflow.dsl.grouping import Concatenable, batch, concat, flatten, shuffle
from pipeflow.dsl.messages import (
    HasTarget,
    HasWeights,
    TakesWeights,
    reply,
    reply_weights,
    sync_weights,
    update_target,
)
from pipeflow.dsl.pacing import buffer, every_seconds, throttle
from pipeflow.dsl.sharding import Scatter, select_shards
from pipeflow.dsl.signals import Ended, NotReady, current_shard
from pipeflow.dsl.sourced import Source, Sourced
from pipeflow.dsl.sources import from_items, from_shards
from pipeflow.dsl.streams import Merged, ParallelStream, Stream
from pipeflow.dsl.transforms import Expand, ExpansionOf, Stage, expand, flat_map, stage

__all__ = [
    "ActorDiedError",
    "Actors",
    "CheckpointError",
    "Concatenable",
    "DeadlockError",
    "Ended",
    "EngineError",
    "Expand",
    "ExpansionOf",
    "Gate",
    "Gather",
    "HasSteps",
    "HasTarget",
    "HasWeights",
    "Merged",
    "NotReady",
    "Operator",
    "ParallelStream",
    "PipeflowError",
    "Placed",
    "PlanError",
    "RunError",
    "Scatter",
    "Send",
    "Source",
    "Sourced",
    "Stage",
    "StageError",
    "Stream",
    "TakesWeights",
    "actors",
    "batch",
    "buffer",
    "concat",
    "current_shard",
    "drain",
    "every",
    "every_seconds",
    "expand",
    "flat_map",
    "flatten",
    "from_items",
    "from_shards",
    "gather_async",
    "gather_rounds",
    "gather_sync",
    "group_of",
    "groups_with",
    "max_lag",
    "once_per_steps",
    "reply",
    "reply_weights",
    "select_shards",
    "shuffle",
    "stage",
    "sync_weights",
    "take",
    "tap",
    "throttle",
    "until",
    "update_target",
]
