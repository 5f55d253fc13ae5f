"""`--video`: the camera for an algorithm's environment.

Apart from the camera, which knows no algorithms. Whatever cannot be filmed is refused before anything is trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pipeflow.algorithms.catalogue import Algorithm
from pipeflow.cli.errors import UsageError
from pipeflow.rl.batches import Weights
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.tracking.video import Camera


# `Any`: a configuration, of a class that a name typed by a user stands for.
def camera_for(algorithm: Algorithm[Any], config: Any, seed: int) -> Camera:
    """What films greedy episodes of an algorithm. seed: of the episodes.

    Raises UsageError for an environment with several agents and for episodes that are not played alone,
    TrackingError for an environment that renders no pictures.
    """
    env = config.env
    if not isinstance(env, EnvSpec):
        raise UsageError(f"{env.name} has several agents, and --video films one; leave --video out")
    if not algorithm.plays_alone:
        raise UsageError("what adapts to a task before it plays cannot be filmed; leave --video out")

    def play(filmed: EnvSpec, weights: Sequence[Weights], episodes: int, seed: int) -> EpisodeStats:
        return algorithm.play(replace(config, env=filmed), weights, episodes, seed)

    return Camera(env, play, seed)
