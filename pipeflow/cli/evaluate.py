"""`pipeflow eval`: what the policy of a checkpoint earns when it takes its most probable actions.

Apart from the evaluations of a training run, which decide when to stop: this one plays other episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import tyro

from pipeflow.algorithms.catalogue import entry_of
from pipeflow.cli.configuration import from_json
from pipeflow.cli.filming import camera_for
from pipeflow.cli.flags import parse
from pipeflow.cli.learners import Learners
from pipeflow.cli.plans import build_plan
from pipeflow.cli.resumption import newest_checkpoint, trained
from pipeflow.dsl import CheckpointError
from pipeflow.rl.episodes import EpisodeStats


@dataclass(frozen=True)
class EvalOptions:
    """What is evaluated, and how."""

    path: tyro.conf.Positional[Path]
    """A run's folder, for its newest checkpoint, or a checkpoint's folder."""
    episodes: int = 20
    """How many episodes are played."""
    seed: int = 0
    """Of the episodes; the same seed plays the same ones, but others where they are filmed."""
    video: Path | None = None
    """Folder for a video of every episode; they are played one after the other for it."""

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ValueError(f"--episodes must be at least 1, got {self.episodes}")
        if self.seed < 0:
            raise ValueError(f"--seed must not be negative, got {self.seed}")


def evaluate_checkpoint(words: Sequence[str]) -> int:
    """Print returns and lengths of greedy episodes.

    Raises UsageError for words that do not fit, CheckpointError for a checkpoint that is none, TrackingError for
    an environment that cannot be filmed.
    """
    options = parse(EvalOptions, words, "pipeflow eval", "Play greedy episodes with a checkpoint's policy.")
    path = newest_checkpoint(options.path)
    saved = trained(path)
    try:
        algorithm = entry_of(saved.algorithm).load()
        config = from_json(algorithm.configuration, saved.config)
    except ValueError as error:
        raise CheckpointError(f"{path} is of no use here: {error}") from error
    try:
        weights = Learners(build_plan(algorithm, config)).loaded(saved.checkpoint)
    except ValueError as error:
        raise CheckpointError(f"{path} does not fit its own configuration: {error}") from error
    if options.video is None:
        stats = algorithm.play(config, weights, options.episodes, options.seed)
    else:
        camera = camera_for(algorithm, config, options.seed)
        names = [f"{saved.steps:012}-{number:04}" for number in range(options.episodes)]
        filmed = [camera.film(weights, options.video, name, number) for number, name in enumerate(names)]
        stats = reduce(EpisodeStats.merged, filmed)
    print(f"{config.env.name}, {options.episodes} greedy episodes with {path} ({saved.steps:,} steps)")
    low, high = stats.returns.min(), stats.returns.max()
    print(
        f"return  mean {stats.mean_return:.2f}  std {stats.returns.std():.2f}  min {low:.2f}  max {high:.2f}"
    )
    print(f"length  mean {stats.mean_length:.2f}")
    if options.video is not None:
        print(f"videos  {options.video}")
    return 0
