"""pipeflow: distributed reinforcement learning as typed dataflow.

Layers, each importing only what is below it (import-linter holds this):

    cli          the command line
    algorithms   one file an algorithm: its configuration and its plan
    rl           batches, environments, policies, workers, learners  |  lowering   how a plan runs
                                                                     |  semantics  what it means
    dsl          what a user writes: streams, stages, actors, unions

Only the DSL is imported here, so that ``import pipeflow`` costs nothing.
"""

from pipeflow.dsl import *  # noqa: F403
from pipeflow.dsl import __all__ as __all__
