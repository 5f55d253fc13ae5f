"""Videos of episodes, read back; and what cannot be filmed, refused before anything is played."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from typing_extensions import override

from pipeflow.rl.batches import Weights
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.evaluation import evaluate
from pipeflow.rl.policies import PolicySpec
from pipeflow.tracking import TrackingError
from pipeflow.tracking.video import Camera

CARTPOLE = EnvSpec("CartPole-v1")
POLICY = PolicySpec.for_env(CARTPOLE, hidden=(8,))
WEIGHTS = Weights(0, POLICY.build(1).parameters_numpy())


def nothing(*words: str) -> None:
    """Finds no package, and requires none."""


def camera(env: EnvSpec) -> Camera:
    return Camera(
        env, lambda filmed, weights, count, seed: evaluate(filmed, POLICY, weights[0], count, seed), 3
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # moviepy's own
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_an_episode_is_in_its_file_from_the_first_frame_to_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "moviepy is not installed: pip install 'pipeflow[video]'"
    pytest.importorskip("moviepy", reason=why)
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason=why)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    folder = tmp_path / "videos"
    films = camera(CARTPOLE)
    played = [films.film([WEIGHTS], folder, f"episode-{number}", number) for number in (0, 1)]
    assert sorted(path.name for path in folder.iterdir()) == ["episode-0.mp4", "episode-1.mp4"]
    assert played[0].lengths[0] != played[1].lengths[0]
    for number, stats in enumerate(played):
        frames, _ = imageio_ffmpeg.count_frames_and_secs(str(folder / f"episode-{number}.mp4"))
        # The first observation has a frame too, and the encoder repeats the last one.
        assert 1 <= frames - stats.lengths[0] <= 2
    reader = imageio_ffmpeg.read_frames(str(folder / "episode-0.mp4"))
    assert next(reader)["size"] == (600, 400)
    picture = np.frombuffer(next(reader), np.uint8)
    reader.close()
    assert picture.min() < 50  # the cart is black
    assert picture.max() > 250  # on white


def test_without_what_makes_videos_there_is_no_camera(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeflow.tracking.errors.find_spec", nothing)
    with pytest.raises(TrackingError, match=r"a video needs moviepy.*pip install 'pipeflow\[video\]'"):
        camera(CARTPOLE)


class Blind(gymnasium.Env[Any, Any]):
    """Knows no pictures."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1, np.float32), {}


class Silent(Blind):
    """Takes a render mode, and shows nothing."""

    def __init__(self, render_mode: str) -> None:
        self.render_mode = render_mode

    @override
    def render(self) -> None:
        return None


@pytest.mark.parametrize(
    ("env", "why"), [(Blind, "takes no arguments"), (Silent, "its render mode rgb_array gives no picture")]
)
def test_an_environment_without_pictures_is_refused_in_one_line(
    env: Callable[..., Blind], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeflow.tracking.video.require", nothing)
    with pytest.raises(
        TrackingError, match=f"^{env.__name__} cannot be filmed: .*{why}.*; leave --video out$"
    ):
        camera(EnvSpec(env))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # moviepy's own
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_an_episode_that_is_cut_short_leaves_no_video(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("moviepy", reason="moviepy is not installed: pip install 'pipeflow[video]'")

    def interrupted(filmed: EnvSpec, weights: object, count: int, seed: int) -> EpisodeStats:
        environments = filmed.make(1, seed)
        try:
            environments.reset()
            environments.step(np.zeros(1, np.int64))
            raise KeyboardInterrupt
        finally:
            environments.close()

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with pytest.raises(KeyboardInterrupt):
        Camera(CARTPOLE, interrupted, 3).film([WEIGHTS], tmp_path, "cut")
    assert list(tmp_path.iterdir()) == []
