"""The rollout worker: what its trajectories hold, however the environment resets, and that it can learn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray
from typing_extensions import override

from pipeflow.dsl.signals import enter_shard, leave_shard
from pipeflow.rl.batches import Trajectories, Weights
from pipeflow.rl.environments import EnvSpec, VectorEnvironment
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.running_moments import Moments
from tests.rl.read_only import read_only


class Counting(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Observes how many steps the episode has had; ends at `length`; every step is worth a reward of 1."""

    def __init__(self, length: int = 3, truncate: bool = True) -> None:
        self.observation_space = spaces.Box(0.0, 100.0, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._length, self._truncate, self._count = length, truncate, 0

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self._count = 0
        return np.zeros(1, np.float32), {}

    @override
    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        self._count += 1
        end = self._count == self._length
        observation = np.full(1, self._count, np.float32)
        return observation, 1.0, end and not self._truncate, end and self._truncate, {}


@dataclass(frozen=True)
class CountingSpec(EnvSpec):
    """`Counting` in a vector environment that resets in a given way."""

    mode: AutoresetMode = AutoresetMode.SAME_STEP
    truncate: bool = True

    @override
    def make(self, num_envs: int, seed: int) -> VectorEnvironment:
        makers = [lambda: Counting(truncate=self.truncate)] * num_envs
        return VectorEnvironment(SyncVectorEnv(makers, autoreset_mode=self.mode), seed, self.name)


COUNTING = EnvSpec(Counting)
POLICY = PolicySpec.for_env(COUNTING)
CARTPOLE = EnvSpec("CartPole-v1")
CARTPOLE_POLICY = PolicySpec.for_env(CARTPOLE)
MODES = list(AutoresetMode)


def counted(mode: AutoresetMode, steps: int, truncate: bool = True) -> Trajectories:
    env = CountingSpec(Counting, mode=mode, truncate=truncate)
    return RolloutWorker(env, POLICY, num_envs=2, fragment_length=steps).sample()


def value_of(*counts: float) -> NDArray[np.float32]:
    """What the initial policy of seed 0 thinks of these observations."""
    policy = POLICY.build(seed=0)
    policy.load_numpy(PPOLearner(POLICY, seed=0).weights().parameters)
    return policy.value(np.array(counts, np.float32)[:, None], np.zeros((len(counts), 0), np.float32))


@pytest.mark.parametrize("mode", MODES)
def test_two_episodes_are_the_same_however_the_environment_resets(mode: AutoresetMode) -> None:
    # Two episodes of three steps; NEXT_STEP spends one more vector step on the reset between them.
    fragment = counted(mode, steps=7 if mode is AutoresetMode.NEXT_STEP else 6)
    assert fragment.steps == 12
    for column in range(2):
        real = fragment.valid[:, column]
        assert fragment.observations[real, column, 0].tolist() == [0, 1, 2, 0, 1, 2]
        assert fragment.rewards[real, column].tolist() == [1] * 6
        assert fragment.truncated[real, column].tolist() == [False, False, True] * 2
        assert not fragment.terminated.any()
        np.testing.assert_allclose(fragment.values[real, column], value_of(0, 1, 2, 0, 1, 2), atol=1e-6)
        # The value after the last step is of the final observation 3, never of the 0 that the reset gave.
        np.testing.assert_allclose(fragment.next_values[real, column], value_of(1, 2, 3, 1, 2, 3), atol=1e-6)
    assert fragment.episodes.returns.tolist() == [3.0] * 4
    assert fragment.episodes.lengths.tolist() == [3] * 4


@pytest.mark.parametrize("mode", MODES)
def test_next_observations_are_the_true_ones(mode: AutoresetMode) -> None:
    fragment = counted(mode, steps=5 if mode is AutoresetMode.NEXT_STEP else 4)
    following = fragment.next_observations()
    for column in range(2):
        real = fragment.valid[:, column]
        assert fragment.observations[real, column, 0].tolist() == [0, 1, 2, 0]
        assert following[real, column, 0].tolist() == [1, 2, 3, 1]
    assert fragment.last_observations[:, 0].tolist() == [1, 1]
    side_by_side = Trajectories.concatenate([fragment, fragment])
    np.testing.assert_array_equal(
        side_by_side.next_observations(), np.concatenate([following, following], axis=1)
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("truncate", [True, False])
def test_advantages_are_the_same_however_the_environment_resets(mode: AutoresetMode, truncate: bool) -> None:
    fragment = counted(mode, 7 if mode is AutoresetMode.NEXT_STEP else 6, truncate)
    rows = gae(0.9, 1.0)(read_only(fragment))
    v0, v1, v2, v3 = value_of(0, 1, 2, 3)
    last = v3 if truncate else 0.0
    targets = {0: 1 + 0.9 * (1 + 0.9 * (1 + 0.9 * last)), 1: 1 + 0.9 * (1 + 0.9 * last), 2: 1 + 0.9 * last}
    values = {0: v0, 1: v1, 2: v2}
    assert rows.steps == 12
    for observation, advantage in zip(rows.observations[:, 0].tolist(), rows.advantages, strict=True):
        assert advantage == pytest.approx(targets[observation] - values[observation], abs=1e-5)


def test_a_fragment_that_ends_in_an_episode_goes_on_in_the_next() -> None:
    worker = RolloutWorker(COUNTING, POLICY, num_envs=1, fragment_length=2)
    fragments = [worker.sample() for _ in range(3)]
    assert [f.observations[:, 0, 0].tolist() for f in fragments] == [[0, 1], [2, 0], [1, 2]]
    np.testing.assert_allclose(fragments[0].next_values[:, 0], value_of(1, 2), atol=1e-6)
    assert [f.episodes.count for f in fragments] == [0, 1, 1]


def test_fragments_own_their_arrays() -> None:
    worker = RolloutWorker(COUNTING, POLICY, num_envs=1, fragment_length=2)
    first = worker.sample()
    kept = first.observations.copy()
    second = worker.sample()
    assert not np.shares_memory(first.observations, second.observations)
    np.testing.assert_array_equal(first.observations, kept)


def test_equal_seeds_repeat_and_others_do_not() -> None:
    def sampled(seed: int, index: int) -> Trajectories:
        return RolloutWorker(
            CARTPOLE, CARTPOLE_POLICY, num_envs=2, fragment_length=30, seed=seed, index=index
        ).sample()

    one, same = sampled(0, 0), sampled(0, 0)
    for name in ("observations", "actions", "log_probs", "values", "rewards"):
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name), err_msg=name)
    for other in (sampled(1, 0), sampled(0, 1)):
        assert not np.array_equal(one.observations[0], other.observations[0])
        assert not np.array_equal(one.actions, other.actions)
    assert not np.array_equal(one.observations[0, 0], one.observations[0, 1])


def test_a_worker_takes_its_index_from_its_shard() -> None:
    token = enter_shard(3)
    try:
        in_shard = RolloutWorker(CARTPOLE, CARTPOLE_POLICY, num_envs=2, fragment_length=5).sample()
    finally:
        leave_shard(token)
    named = RolloutWorker(CARTPOLE, CARTPOLE_POLICY, num_envs=2, fragment_length=5, index=3).sample()
    np.testing.assert_array_equal(in_shard.observations, named.observations)


def test_a_worker_starts_with_the_weights_of_the_learner_of_its_seed() -> None:
    fragment = RolloutWorker(CARTPOLE, CARTPOLE_POLICY, fragment_length=4, seed=5).sample()
    policy = CARTPOLE_POLICY.build(seed=0)
    policy.load_numpy(PPOLearner(CARTPOLE_POLICY, seed=5).weights().parameters)
    np.testing.assert_allclose(
        policy.value(fragment.observations[0], fragment.initial_state), fragment.values[0], atol=1e-6
    )


def test_new_weights_act_from_the_next_fragment_on() -> None:
    worker = RolloutWorker(CARTPOLE, CARTPOLE_POLICY, fragment_length=32)
    learner = PPOLearner(CARTPOLE_POLICY, lr=1e-2, minibatch_size=64)
    learner.update(gae()(worker.sample()))
    worker.set_weights(learner.weights())
    fragment = worker.sample()
    assert fragment.version == 1
    twin = PPOLearner(CARTPOLE_POLICY, epochs=1, minibatch_size=fragment.steps)
    twin.load_state(learner.state())
    report = twin.update(gae()(fragment))
    assert report.metrics["approx_kl"] == pytest.approx(0.0, abs=1e-9)


def weights(observation_moments: Moments | None, return_moments: Moments | None = None) -> Weights:
    return replace(
        PPOLearner(POLICY, seed=0).weights(),
        observation_moments=observation_moments,
        return_moments=return_moments,
    )


def test_observations_are_normalised_by_the_statistics_that_came_with_the_weights() -> None:
    worker = RolloutWorker(COUNTING, POLICY, num_envs=2, fragment_length=3, normalise_observations=True)
    first = worker.sample()
    assert first.observations[:, 0, 0].tolist() == [0, 1, 2]
    assert first.observation_moments is not None
    assert first.observation_moments.count == 6
    np.testing.assert_allclose(first.observation_moments.mean, [1.0])

    worker.set_weights(weights(Moments(4.0, np.array([1.0]), np.array([4.0]))))
    second = worker.sample()
    np.testing.assert_allclose(second.observations[:, 0, 0], [-0.5, 0.0, 0.5], atol=1e-6)
    # What it reports is of raw observations, and of this fragment alone.
    assert second.observation_moments is not None
    assert second.observation_moments.count == 6
    np.testing.assert_allclose(second.observation_moments.mean, [1.0])
    # The final observation 3 is normalised as well before it is valued.
    np.testing.assert_allclose(second.next_values[:, 0], value_of(0.0, 0.5, 1.0), atol=1e-5)


def test_rewards_stay_raw_and_carry_their_scale() -> None:
    worker = RolloutWorker(COUNTING, POLICY, num_envs=2, fragment_length=3, gamma=0.5, normalise_rewards=True)
    first = worker.sample()
    assert first.reward_scale.tolist() == [1.0, 1.0]
    assert first.return_moments is not None
    assert (first.return_moments.count, float(first.return_moments.mean)) == (6, (1 + 1.5 + 1.75) / 3)
    worker.set_weights(weights(None, Moments(10.0, np.array(0.0), np.array(25.0))))
    second = worker.sample()
    np.testing.assert_allclose(second.reward_scale, [0.2, 0.2])
    assert second.rewards.tolist() == [[1.0, 1.0]] * 3


def test_statistics_are_not_collected_unless_asked_for() -> None:
    fragment = counted(AutoresetMode.SAME_STEP, steps=3)
    assert fragment.observation_moments is None
    assert fragment.return_moments is None


@pytest.mark.parametrize("mode", MODES)
def test_reset_rows_never_enter_the_statistics(mode: AutoresetMode) -> None:
    steps = 7 if mode is AutoresetMode.NEXT_STEP else 6
    env = CountingSpec(Counting, mode=mode)
    fragment = RolloutWorker(
        env, POLICY, num_envs=1, fragment_length=steps, normalise_observations=True, normalise_rewards=True
    ).sample()
    assert fragment.observation_moments is not None
    assert fragment.return_moments is not None
    assert fragment.observation_moments.count == fragment.return_moments.count == 6
    np.testing.assert_allclose(fragment.observation_moments.mean, [1.0])


def test_images_are_not_normalised_by_statistics() -> None:
    env = EnvSpec(Pixels)
    with pytest.raises(ValueError, match="the network scales them"):
        RolloutWorker(env, PolicySpec.for_env(env), normalise_observations=True)


class Pixels(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """Random 8x8 images, of which the action says nothing."""

    observation_space = spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = spaces.Discrete(2)

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        super().reset(seed=seed)
        return self._image(), {}

    @override
    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        return self._image(), 0.0, False, bool(self.np_random.random() < 0.3), {}

    def _image(self) -> NDArray[np.uint8]:
        return self.np_random.integers(0, 256, (8, 8, 3), dtype=np.uint8)


def test_images_stay_bytes_until_the_network() -> None:
    env = EnvSpec(Pixels)
    policy = PolicySpec.for_env(env)
    fragment = RolloutWorker(env, policy, num_envs=2, fragment_length=8).sample()
    assert fragment.observations.dtype == np.uint8
    assert fragment.observations.shape == (8, 2, 3, 8, 8)
    report = PPOLearner(policy, minibatch_size=16, epochs=1).update(gae()(read_only(fragment)))
    assert report.metrics["approx_kl"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("num_envs", "fragment_length"), [(0, 1), (1, 0)])
def test_a_worker_without_steps_is_refused(num_envs: int, fragment_length: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        RolloutWorker(COUNTING, POLICY, num_envs=num_envs, fragment_length=fragment_length)


def test_a_worker_and_a_learner_in_one_loop_solve_cartpole() -> None:
    worker = RolloutWorker(CARTPOLE, CARTPOLE_POLICY, num_envs=8, fragment_length=128, seed=1)
    learner = PPOLearner(CARTPOLE_POLICY, lr=1e-3, epochs=10, minibatch_size=256, seed=1)
    advantages = gae(0.98, 0.8)
    recent = EpisodeStats.none()
    while learner.lifetime_steps < 50_000:
        report = learner.update(advantages(worker.sample()))
        worker.set_weights(learner.weights())
        if learner.lifetime_steps > 35_000:
            recent = recent.merged(report.episodes)
    assert recent.count > 0
    assert recent.mean_return >= 300.0
