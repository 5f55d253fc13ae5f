"""What a user writes a plan in: streams, stages, actors, unions, and the tree that they make.

This package describes; `pipeflow.lowering` runs. It imports nothing of ray, torch, numpy or gymnasium.
"""

from pipeflow.dsl.actors import Actors as Actors
from pipeflow.dsl.actors import Placed as Placed
from pipeflow.dsl.actors import Send as Send
from pipeflow.dsl.actors import actors as actors
from pipeflow.dsl.actors import group_of as group_of
from pipeflow.dsl.errors import ActorDiedError as ActorDiedError
from pipeflow.dsl.errors import DeadlockError as DeadlockError
from pipeflow.dsl.errors import EngineError as EngineError
from pipeflow.dsl.errors import PipeflowError as PipeflowError
from pipeflow.dsl.errors import PlanError as PlanError
from pipeflow.dsl.errors import RunError as RunError
from pipeflow.dsl.errors import StageError as StageError
from pipeflow.dsl.gates import Gate as Gate
from pipeflow.dsl.gates import every as every
from pipeflow.dsl.gates import take as take
from pipeflow.dsl.gates import tap as tap
from pipeflow.dsl.gates import until as until
from pipeflow.dsl.gathers import Gather as Gather
from pipeflow.dsl.gathers import gather_async as gather_async
from pipeflow.dsl.gathers import gather_rounds as gather_rounds
from pipeflow.dsl.gathers import gather_sync as gather_sync
from pipeflow.dsl.gathers import max_lag as max_lag
from pipeflow.dsl.messages import HasWeights as HasWeights
from pipeflow.dsl.messages import TakesWeights as TakesWeights
from pipeflow.dsl.messages import sync_weights as sync_weights
from pipeflow.dsl.signals import Ended as Ended
from pipeflow.dsl.signals import NotReady as NotReady
from pipeflow.dsl.signals import current_shard as current_shard
from pipeflow.dsl.sourced import Source as Source
from pipeflow.dsl.sourced import Sourced as Sourced
from pipeflow.dsl.sources import from_items as from_items
from pipeflow.dsl.sources import from_shards as from_shards
from pipeflow.dsl.streams import Merged as Merged
from pipeflow.dsl.streams import Operator as Operator
from pipeflow.dsl.streams import ParallelStream as ParallelStream
from pipeflow.dsl.streams import Stream as Stream
from pipeflow.dsl.streams import drain as drain
from pipeflow.dsl.transforms import Concatenable as Concatenable
from pipeflow.dsl.transforms import Expand as Expand
from pipeflow.dsl.transforms import ExpansionOf as ExpansionOf
from pipeflow.dsl.transforms import Stage as Stage
from pipeflow.dsl.transforms import batch as batch
from pipeflow.dsl.transforms import concat as concat
from pipeflow.dsl.transforms import expand as expand
from pipeflow.dsl.transforms import flat_map as flat_map
from pipeflow.dsl.transforms import flatten as flatten
from pipeflow.dsl.transforms import stage as stage
