"""pipeflow: distributed reinforcement learning as typed dataflow.

Layers, each importing only what is below it (import-linter holds this):

    cli          the command line
    dashboard    the page of a run
    algorithms   one file an algorithm: its configuration and its plan
    testing      laws and invariants for plans of one's own
    tracking     where reports go
    rl           batches, environments, policies, workers, learners
    lowering     how a plan runs; it and `rl` do not know each other
    semantics    what a plan means
    state        states as arrays and text, and the folders of checkpoints
    dsl          what a user writes: streams, stages, actors, unions

Only the DSL is imported here, so that ``import pipeflow`` costs nothing.
"""

from pipeflow.dsl import *  # noqa: F403
from pipeflow.dsl import __all__ as __all__
