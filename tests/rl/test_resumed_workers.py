"""What acts goes on from its state exactly as it would have gone on, and needs all of the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

from pipeflow.rl.action_values import ActionValueSpec
from pipeflow.rl.batches import Trajectories, Weights
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.exploration import EpsilonGreedyWorker, EpsilonLadder
from pipeflow.rl.fragments import Aggregator, ReplayMixing
from pipeflow.rl.image_tasks import GRID_BREAKOUT
from pipeflow.rl.learners.actor_critic import ActorCriticLoss, GradientWorker
from pipeflow.rl.meta.point_navigation import POINT_NAVIGATION
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.running_moments import Moments
from pipeflow.rl.schedules import Linear
from pipeflow.state.values import StateValue
from tests.rl.saved_states import identical, over_disk

CARTPOLE = EnvSpec("CartPole-v1")
MEMORY = PolicySpec.for_env(CARTPOLE, hidden=(8,), memory="gru", memory_size=4)
# Rates at which a step more or less shows in what is chosen.
FALLING = Linear(1.0, 0.0, 600)


class Saved(Protocol):
    """What has a state."""

    def state(self) -> Mapping[str, StateValue]: ...

    def load_state(self, state: Mapping[str, StateValue], /) -> None: ...


def remembering() -> RolloutWorker:
    return RolloutWorker(
        CARTPOLE, MEMORY, num_envs=8, fragment_length=10, seed=1, index=2,
        normalise_observations=True, normalise_rewards=True,
    )  # fmt: skip


def with_weights(worker: RolloutWorker) -> RolloutWorker:
    """The worker with weights and statistics that a new one does not have."""
    moments = Moments(9.0, np.full(4, 0.1), np.full(4, 0.3)), Moments(9.0, np.array(2.0), np.array(5.0))
    worker.set_weights(Weights(7, MEMORY.build(seed=99).parameters_numpy(), *moments))
    return worker


def samples(worker: RolloutWorker, count: int) -> list[Trajectories]:
    return [worker.sample() for _ in range(count)]


def greedy(epsilon: float | Linear | EpsilonLadder) -> Callable[[], RolloutWorker]:
    spec = ActionValueSpec.for_env(CARTPOLE, hidden=(8,))
    return lambda: EpsilonGreedyWorker(
        CARTPOLE, spec, epsilon=epsilon, num_envs=4, fragment_length=9, seed=1, index=1
    )


def on(env: EnvSpec) -> Callable[[], RolloutWorker]:
    policy = PolicySpec.for_env(env, hidden=(8,))
    return lambda: RolloutWorker(env, policy, num_envs=2, fragment_length=20, seed=1, index=0)


WORKERS: Mapping[str, Callable[[], RolloutWorker]] = {
    "memory and statistics": remembering,
    "no memory": on(CARTPOLE),
    "Gaussian actions": on(EnvSpec("Pendulum-v1")),
    "frame stack": on(EnvSpec("Acrobot-v1", frame_stack=2)),
    "images": on(EnvSpec(GRID_BREAKOUT)),
    "points": on(EnvSpec(POINT_NAVIGATION)),
    "epsilon falls": greedy(FALLING),
    "epsilon by sub-environment": greedy(EpsilonLadder(workers=2)),
}


@pytest.mark.parametrize("name", WORKERS)
@pytest.mark.parametrize("fragments", [0, 1, 4])
def test_a_loaded_worker_samples_what_the_saved_one_samples(
    name: str, fragments: int, tmp_path: Path
) -> None:
    one, other = WORKERS[name](), WORKERS[name]()
    samples(one, fragments)
    state = over_disk(one.state(), tmp_path)
    other.load_state(state)
    assert identical(dict(other.state()), dict(state))
    assert identical(samples(one, 6), samples(other, 6))


def test_a_state_does_not_change_while_its_worker_goes_on() -> None:
    worker = with_weights(remembering())
    samples(worker, 3)
    state = worker.state()
    before = {name: np.array(value) for name, value in state.items()}
    samples(worker, 3)
    assert identical(before, {name: np.array(value) for name, value in state.items()})


def test_a_state_may_be_read_only(tmp_path: Path) -> None:
    one, other = with_weights(remembering()), remembering()
    samples(one, 3)
    state = one.state()
    for value in state.values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    other.load_state(state)
    assert identical(samples(one, 6), samples(other, 6))


def in_the_middle(worker: RolloutWorker) -> dict[str, StateValue]:
    """The worker's state at an end of a fragment at which a sub-environment is to be reset."""
    for _ in range(100):
        worker.sample()
        state = worker.state()
        if np.any(state.get("environments_resetting", False)):
            return state
    raise AssertionError("no fragment ended with an episode")


@pytest.mark.parametrize(
    "group",
    [
        "parameters/", "version", "generator", "recurrent_state", "observations", "observation_moments/",
        "reward_scale", "episodes/running/", "returns/", "environments/", "environments_resetting",
    ],
)  # fmt: skip
def test_no_part_of_a_state_can_be_left_out(group: str) -> None:
    worker = with_weights(remembering())
    young = remembering()
    young.sample()
    state, fresh = in_the_middle(worker), young.state()
    expected = samples(worker, 8)
    whole, partial = remembering(), remembering()
    whole.load_state(state)
    assert identical(samples(whole, 8), expected)
    assert any(name.startswith(group) for name in state)
    mixed = {name: value for name, value in state.items() if not name.startswith(group)}
    partial.load_state(mixed | {name: value for name, value in fresh.items() if name.startswith(group)})
    assert not identical(samples(partial, 8), expected)


def test_the_place_in_the_schedule_of_epsilon_cannot_be_left_out() -> None:
    one, other = greedy(FALLING)(), greedy(FALLING)()
    samples(one, 5)
    other.load_state({**one.state(), "lifetime_steps": 0})
    assert not identical(samples(one, 6), samples(other, 6))


def test_a_gradient_worker_differentiates_at_the_weights_that_it_had(tmp_path: Path) -> None:
    policy = PolicySpec.for_env(CARTPOLE, hidden=(8,))

    def made() -> GradientWorker:
        loss = ActorCriticLoss(value_coef=0.5, entropy_coef=0.01)
        return GradientWorker(CARTPOLE, policy, loss=loss, num_envs=2, fragment_length=8, index=0)

    one, other = made(), made()
    one.set_weights(Weights(3, policy.build(seed=99).parameters_numpy()))
    batch = gae()(one.sample())
    other.load_state(over_disk(one.state(), tmp_path))
    assert identical(one.gradients(batch), other.gradients(batch))
    assert identical(samples(one, 3), samples(other, 3))


def test_where_environments_cannot_be_saved_new_episodes_begin_and_nothing_else_is_lost(
    tmp_path: Path,
) -> None:
    env = EnvSpec("LunarLander-v3")
    policy = PolicySpec.for_env(env, hidden=(8,))

    def made() -> RolloutWorker:
        return RolloutWorker(env, policy, num_envs=2, fragment_length=20, index=0, normalise_rewards=True)

    one, other, again = made(), made(), made()
    one.set_weights(Weights(3, policy.build(seed=99).parameters_numpy()))
    first = one.sample()
    samples(one, 4)
    state = over_disk(one.state(), tmp_path)
    assert state["environments_saved"] == 0
    other.load_state(state)
    again.load_state(state)
    found = samples(other, 8)
    assert identical(found, samples(again, 8))
    assert found[0].version == 3
    assert not identical(
        found[0].observations[0], first.observations[0]
    )  # not the run's first episodes again
    # The first episodes that end began with this worker, so their lengths are of its own steps.
    lengths = np.concatenate([fragment.episodes.lengths for fragment in found])
    ends = np.concatenate([fragment.terminated | fragment.truncated for fragment in found])
    firsts = [np.flatnonzero(column)[0] + 1 for column in ends.T if column.any()]
    assert set(firsts) <= set(lengths.tolist())
    assert firsts


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"generator": np.zeros(5, np.uint64)}, r"uint64\[5\] for 'generator'"),
        ({"recurrent_state": np.zeros((3, 4), np.float32)}, r"float32\[3, 4\] for 'recurrent_state'"),
        ({"observations": np.zeros((8, 4))}, r"float64\[8, 4\] for 'observations'"),
        ({"version": np.zeros(2)}, "no number 'version'"),
        ({"environments_saved": np.zeros(2)}, "no number 'environments_saved'"),
        ({"observation_moments/mean": 3}, "moments have a count, a mean and a variance"),
    ],
    ids=str,
)
def test_a_state_that_does_not_fit_is_refused(changed: Mapping[str, StateValue], message: str) -> None:
    worker = remembering()
    worker.sample()
    with pytest.raises(ValueError, match=message):
        remembering().load_state({**worker.state(), **changed})


def test_a_state_of_another_number_of_sub_environments_is_refused() -> None:
    one = RolloutWorker(CARTPOLE, MEMORY, num_envs=5, index=0, fragment_length=4)
    one.sample()
    with pytest.raises(ValueError, match="of another configuration"):
        remembering().load_state(one.state())


def mixed(mixing: ReplayMixing, fragments: Sequence[Trajectories]) -> list[list[Trajectories]]:
    return [list(mixing.push(fragment)) for fragment in fragments]


def test_mixing_goes_on_with_the_fragments_that_it_kept(tmp_path: Path) -> None:
    fragments = samples(with_weights(remembering()), 12)
    one, other = ReplayMixing(1.5, 4, seed=3), ReplayMixing(1.5, 4, seed=3)
    mixed(one, fragments[:5])
    other.load_state(over_disk(one.state(), tmp_path))
    assert identical(mixed(one, fragments[5:]), mixed(other, fragments[5:]))


@pytest.mark.parametrize("group", ["owed", "generator", "fragments/"])
def test_no_part_of_the_state_of_mixing_can_be_left_out(group: str) -> None:
    fragments = samples(remembering(), 12)
    one, other, fresh = (ReplayMixing(1.5, 4, seed=3) for _ in range(3))
    mixed(one, fragments[:5])
    mixed(fresh, fragments[6:10])
    parts = {name: value for name, value in fresh.state().items() if name.startswith(group)}
    if group == "owed":
        parts = {"owed": 0.0}
    if group == "generator":
        parts = {"generator": ReplayMixing(1.5, 4, seed=4).state()["generator"]}
    other.load_state({**one.state(), **parts})
    assert not identical(mixed(one, fragments[5:]), mixed(other, fragments[5:]))


def test_a_damaged_fragment_is_refused() -> None:
    mixing = ReplayMixing(1.0, 4, seed=3)
    mixed(mixing, samples(remembering(), 2))
    state = mixing.state()
    del state["fragments/1/rewards"]
    with pytest.raises(ValueError, match=r"the state of a fragment is damaged: .*'rewards'"):
        ReplayMixing(1.0, 4, seed=3).load_state(state)


def test_joining_has_no_state() -> None:
    aggregator: Saved = Aggregator()
    aggregator.load_state(aggregator.state())
    assert aggregator.state() == {}
