"""Videos of greedy episodes, as mp4 by gymnasium's `RecordVideo`. Extra: `video`.

Apart from the evaluations, whose many episodes are played side by side: an episode that is filmed is played by
itself, in an environment that renders.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import RecordVideo

from pipeflow.rl.batches import Weights
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.seeding import derive_seed
from pipeflow.rl.single_environments import make_environment
from pipeflow.tracking.errors import TrackingError, first_line, require

_RENDERING: Mapping[str, object] = {"render_mode": "rgb_array"}


@dataclass(frozen=True)
class Camera:
    """Films episodes in an environment.

    env: the environment. play: plays greedy episodes in the environment that it is given, with the weights of each
    learner, so many, with a seed; as `evaluate` does. seed: from which those of the episodes are derived.
    Raises TrackingError if what makes mp4 is not installed, or the environment renders no pictures.
    """

    env: EnvSpec
    play: Callable[[EnvSpec, Sequence[Weights], int, int], EpisodeStats]
    seed: int

    def __post_init__(self) -> None:
        require("moviepy", "video", "a video")
        _check_renders(self.env)

    def film(self, weights: Sequence[Weights], folder: Path, name: str, number: int = 0) -> EpisodeStats:
        """Play an episode and write it to `NAME.mp4` in a folder, which is made if it is not there.

        number: of the episode; each number plays another one.
        Returns what it earned.
        """
        filmed = replace(self.env, env=_Filmed(self.env.env, folder, name))
        written = folder / f"{name}-episode-0.mp4"  # RecordVideo numbers what it films
        try:
            earned = self.play(filmed, weights, 1, derive_seed(self.seed, "video", number))
        except BaseException:
            written.unlink(missing_ok=True)  # a part of the episode
            raise
        written.replace(folder / f"{name}.mp4")
        return earned


@dataclass(frozen=True)
class _Filmed:
    """Makes environments whose first episode is filmed."""

    # gymnasium leaves the types of observations and actions to Any.
    env: str | Callable[..., gymnasium.Env[Any, Any]]
    folder: Path
    name: str

    def __call__(self, **kwargs: object) -> gymnasium.Env[Any, Any]:
        with warnings.catch_warnings():
            # gymnasium warns of a folder that has videos, which have other names.
            warnings.simplefilter("ignore", UserWarning)
            return RecordVideo(
                make_environment(self.env, {**kwargs, **_RENDERING}),
                str(self.folder),
                episode_trigger=lambda episode: episode == 0,
                name_prefix=self.name,
                gc_trigger=None,
            )


def _check_renders(env: EnvSpec) -> None:
    with warnings.catch_warnings():
        # gymnasium warns of a mode that the environment does not have; here it is refused.
        warnings.simplefilter("ignore")
        try:
            made = make_environment(env.env, {**env.kwargs, **_RENDERING})
            try:
                made.reset(seed=0)
                picture = made.render()
            finally:
                made.close()
        except Exception as error:  # an environment's own code may raise anything
            message = f"{env.name} cannot be filmed: {first_line(error)}; leave --video out"
            raise TrackingError(message) from error
    if not isinstance(picture, np.ndarray):
        message = (
            f"{env.name} cannot be filmed: its render mode rgb_array gives no picture; leave --video out"
        )
        raise TrackingError(message)
