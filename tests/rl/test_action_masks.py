"""Action masks: where they lie, that an excluded action never happens, and that nothing becomes nan of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from typing_extensions import override

from pipeflow.rl import acting
from pipeflow.rl.batches import ObservationArray, Sequences
from pipeflow.rl.distributions import Categorical, MultiCategorical, masked
from pipeflow.rl.environments import EnvSpec, VectorEnvironment
from pipeflow.rl.evaluation import evaluate
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.modules import to_tensor
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.policy import StateArray
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.spaces import NoValidAction, UnsupportedSpace, action_codec, observation_codec
from tests.cases import Case, cases
from tests.rl.partial_environments import Forbidding
from tests.rl.read_only import read_only

VECTOR = spaces.Box(-1.0, 1.0, (2,), np.float32)
MODES = list(AutoresetMode)


def observed(*parts: spaces.Space[object], mask: spaces.Space[object]) -> spaces.Dict:
    named = {f"part{i}": part for i, part in enumerate(parts)}
    return spaces.Dict({**named, "action_mask": mask})


MASKED = observation_codec(observed(VECTOR, mask=spaces.MultiBinary(5)))
CHOICES: dict[str, PolicySpec] = {
    "one of five": PolicySpec(MASKED, action_codec(spaces.Discrete(5, start=2))),
    "one of two and one of three": PolicySpec(MASKED, action_codec(spaces.MultiDiscrete([2, 3]))),
    "with memory": PolicySpec(MASKED, action_codec(spaces.Discrete(5)), memory="gru"),
    "with an image": PolicySpec(
        observation_codec(
            observed(spaces.Box(0, 255, (8, 8, 3), np.uint8), VECTOR, mask=spaces.MultiBinary(5))
        ),
        action_codec(spaces.Discrete(5)),
    ),
}
each_choice = pytest.mark.parametrize("spec", CHOICES.values(), ids=CHOICES)

ALLOWED = np.array([1, 0, 0, 1, 1], np.float32)


def batch(
    spec: PolicySpec, rows: int, mask: np.ndarray[tuple[int], np.dtype[np.float32]]
) -> ObservationArray:
    """Random encoded observations that all have one mask."""
    encoded = np.random.default_rng(0).random((rows, *spec.observations.shape), dtype=np.float32)
    encoded[:, spec.observations.mask] = mask
    encoded.setflags(write=False)
    return encoded


def zeros(spec: PolicySpec, rows: int) -> StateArray:
    return np.zeros((rows, spec.state_width), np.float32)


def first_steps(states: StateArray) -> Sequences:
    """Every row an episode of its own."""
    return Sequences(np.ones(len(states), np.int64), states)


def test_a_mask_lies_behind_what_a_network_reads() -> None:
    assert MASKED.mask == slice(2, 7)
    assert (MASKED.shape, MASKED.feature_count) == ((7,), 2)
    encoded = MASKED.encode(
        {"action_mask": np.array([[1, 0, 0, 1, 1]], np.int8), "part0": np.array([[0.5, -0.5]], np.float32)}
    )
    assert encoded.tolist() == [[0.5, -0.5, 1, 0, 0, 1, 1]]


def test_observations_without_a_mask_have_none() -> None:
    codec = observation_codec(spaces.Dict({"a": VECTOR, "b": spaces.Discrete(3)}))
    assert codec.mask is None
    assert codec.feature_count == 5


def test_pettingzoos_masks_are_boxes_of_int8() -> None:
    codec = observation_codec(observed(VECTOR, mask=spaces.Box(0, 1, (3,), np.int8)))
    assert codec.mask == slice(2, 5)


@pytest.mark.parametrize(
    "mask", [spaces.Discrete(3), spaces.Box(0, 5, (3,), np.int8), spaces.MultiBinary((2, 2))], ids=str
)
def test_what_is_no_mask_must_not_be_called_one(mask: spaces.Space[object]) -> None:
    with pytest.raises(UnsupportedSpace, match=r"part action_mask of the observation.* is no action mask"):
        observation_codec(observed(VECTOR, mask=mask))


def test_two_masks_are_refused() -> None:
    inner = observed(VECTOR, mask=spaces.MultiBinary(2))
    with pytest.raises(UnsupportedSpace, match="several action masks"):
        observation_codec(observed(inner, mask=spaces.MultiBinary(2)))


def test_a_mask_alone_is_nothing_to_see() -> None:
    with pytest.raises(UnsupportedSpace, match="holds no numbers"):
        observation_codec(spaces.Dict({"action_mask": spaces.MultiBinary(2)}))


def test_a_mask_must_fit_the_actions() -> None:
    with pytest.raises(
        UnsupportedSpace, match=r"an action mask of 5 does not fit Discrete\(4\), which needs 4"
    ):
        PolicySpec(MASKED, action_codec(spaces.Discrete(4)))
    with pytest.raises(UnsupportedSpace, match="no categories that it could exclude"):
        PolicySpec(MASKED, action_codec(spaces.MultiBinary(5)))


@each_choice
def test_an_excluded_action_is_never_taken(spec: PolicySpec) -> None:
    policy, rows = spec.build(seed=0), 5000
    actions, log_probs, _, _ = policy.act(
        batch(spec, rows, ALLOWED), zeros(spec, rows), np.random.default_rng(0)
    )
    taken = {tuple(np.atleast_1d(action).tolist()) for action in actions}
    # Components stand one after the other in the mask: [1, 0] of two, [0, 1, 1] of three.
    joint = {(0, 1), (0, 2)}
    assert taken == (joint if spec.actions.kind == "multi_categorical" else {(0,), (3,), (4,)})
    np.testing.assert_allclose(
        np.exp(log_probs), 1 / len(taken), atol=0.02
    )  # the first policy is near uniform


@each_choice
def test_the_most_probable_action_is_an_allowed_one(spec: PolicySpec) -> None:
    policy = spec.build(seed=0)
    with torch.no_grad():
        policy.policy_head.bias[:] = torch.tensor([0.0, 9.0, 9.0, 1.0, 0.0])
    (action,), _ = policy.greedy(batch(spec, 1, ALLOWED), zeros(spec, 1))
    assert np.atleast_1d(action).tolist() == ([0, 1] if spec.actions.kind == "multi_categorical" else [3])


@each_choice
def test_acting_and_evaluating_agree_and_gradients_are_finite(spec: PolicySpec) -> None:
    policy, observations = spec.build(seed=0), batch(spec, 6, ALLOWED)
    state = zeros(spec, 6)
    acted = policy.act(observations, state, np.random.default_rng(0))
    log_probs, entropies, values = policy.evaluate(
        to_tensor(observations, "cpu"), torch.from_numpy(acted.actions), first_steps(state)
    )
    np.testing.assert_allclose(log_probs.detach(), acted.log_probs, atol=1e-5)
    np.testing.assert_allclose(values.detach(), acted.values, atol=1e-5)
    torch.autograd.backward((log_probs + entropies + values).sum())
    for name, parameter in policy.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    # Nothing is learnt about actions that could not be taken.
    assert policy.policy_head.bias.grad is not None
    assert policy.policy_head.bias.grad[1:3].tolist() == [0.0, 0.0]


@each_choice
def test_a_network_does_not_read_the_mask(spec: PolicySpec) -> None:
    policy = spec.build(seed=0)
    every = policy.value(batch(spec, 3, np.ones(5, np.float32)), zeros(spec, 3))
    np.testing.assert_array_equal(
        every, policy.value(batch(spec, 3, np.zeros(5, np.float32)), zeros(spec, 3))
    )


def test_entropy_and_divergence_of_masked_actions_are_finite() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, True, False]])
    one = Categorical(masked(logits, mask, (3,)))
    other = Categorical(masked(logits * 2.0, mask, (3,)))
    assert one.log_prob(torch.tensor([1, 0])).tolist() == [-torch.inf, -torch.inf]
    p = torch.softmax(torch.tensor([1.0, 3.0]), 0)
    torch.testing.assert_close(one.entropy(), torch.stack([-(p * p.log()).sum(), torch.tensor(0.0)]))
    assert one.kl(one).tolist() == [0.0, 0.0]
    (gradient,) = torch.autograd.grad((one.entropy() + one.kl(other)).sum(), logits)
    assert gradient.isfinite().all()
    assert gradient[0, 1] == 0.0
    joint = MultiCategorical(masked(logits[:1], mask[:1], (1, 2)), (1, 2))
    assert joint.entropy().tolist() == [0.0]


@pytest.mark.parametrize("case", cases("action_mask"))
def test_a_row_without_a_valid_action_is_an_error_with_a_name(case: Case) -> None:
    assert case["expected"]["raises"]
    logits, mask = (
        np.array([case["inputs"]["logits"]], np.float32),
        np.array([case["inputs"]["mask"]], np.bool_),
    )
    with pytest.raises(NoValidAction, match="row 0 allows no action"):
        acting.masked(logits, mask, (2,))
    with pytest.raises(NoValidAction, match="row 0 allows no action"):
        masked(torch.from_numpy(logits), torch.from_numpy(mask), (2,))


def test_every_component_needs_a_valid_action() -> None:
    logits, mask = np.zeros((2, 5), np.float32), np.array([[1, 0, 0, 0, 1], [1, 1, 0, 0, 0]], np.bool_)
    with pytest.raises(NoValidAction) as caught:
        acting.masked(logits, mask, (2, 3))
    assert caught.value.row == 1
    with pytest.raises(NoValidAction) as caught:
        masked(torch.from_numpy(logits), torch.from_numpy(mask), (2, 3))
    assert caught.value.row == 1


@each_choice
def test_policies_raise_it_in_acting_and_in_evaluating(spec: PolicySpec) -> None:
    policy, nothing = spec.build(seed=0), batch(spec, 2, np.zeros(5, np.float32))
    with pytest.raises(NoValidAction):
        policy.act(nothing, zeros(spec, 2), np.random.default_rng(0))
    with pytest.raises(NoValidAction):
        policy.greedy(nothing, zeros(spec, 2))
    with pytest.raises(NoValidAction):
        policy.evaluate(
            to_tensor(nothing, "cpu"),
            torch.zeros(2, *spec.actions.shape, dtype=torch.int64),
            first_steps(zeros(spec, 2)),
        )


@dataclass(frozen=True)
class ForbiddingSpec(EnvSpec):
    """`Forbidding`, which raises for an action that was not allowed, with a given way to reset."""

    mode: AutoresetMode = AutoresetMode.SAME_STEP

    @override
    def make(self, num_envs: int, seed: int) -> VectorEnvironment:
        vector = SyncVectorEnv([Forbidding] * num_envs, autoreset_mode=self.mode)
        return VectorEnvironment(vector, seed, self.name)


# The last state of an episode allows nothing: with NEXT_STEP it is acted on all the same, and ignored.
@pytest.mark.parametrize("mode", MODES)
def test_a_worker_and_a_learner_keep_to_the_masks(mode: AutoresetMode) -> None:
    env = ForbiddingSpec(Forbidding, mode=mode)
    spec = PolicySpec.for_env(env)
    worker = RolloutWorker(env, spec, num_envs=4, fragment_length=64, normalise_observations=True)
    learner = PPOLearner(spec, lr=1e-2, minibatch_size=64, entropy_coef=0.01)
    returns: list[float] = []
    for _ in range(12):
        fragment = read_only(worker.sample())
        report = learner.update(gae()(fragment))
        worker.set_weights(learner.weights())
        assert np.isin(fragment.observations[..., spec.observations.mask], (0.0, 1.0)).all()
        assert np.isfinite(report.metrics["entropy"])
        assert report.metrics["skipped_updates"] == 0
        returns.append(report.episodes.mean_return)
    # The best of two actions that are drawn from 0 to 3 is worth 1.875 in the mean, a random one 1.5.
    assert np.mean(returns[-3:]) / 5 > np.mean(returns[:3]) / 5 + 0.15
    assert evaluate(env, spec, learner.weights(), 20, seed=0).mean_return / 5 > 1.7
