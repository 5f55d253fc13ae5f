"""Memory: one result from acting and from rows of sequences, and nothing learnt from padding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from typing_extensions import override

from pipeflow.rl.batches import Advantages, Sequences, Trajectories
from pipeflow.rl.environments import EnvSpec, VectorEnvironment
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.modules import to_tensor
from pipeflow.rl.policies import ActorCritic, PolicySpec
from pipeflow.rl.recurrent import Memory, Padding, state_width
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.seeding import derive_seed
from pipeflow.rl.spaces import action_codec, observation_codec
from tests.cases import Case
from tests.rl.counting_environments import Counting
from tests.rl.read_only import read_only
from tests.rl.selected_cases import selected

Kind = Literal["lstm", "gru"]
KINDS: tuple[Kind, ...] = ("lstm", "gru")
MODES = list(AutoresetMode)

each_kind = pytest.mark.parametrize("kind", KINDS)


@dataclass(frozen=True)
class CountingSpec(EnvSpec):
    """Two `Counting` environments whose episodes end at different times, with a given way to reset."""

    mode: AutoresetMode = AutoresetMode.SAME_STEP

    @override
    def make(self, num_envs: int, seed: int) -> VectorEnvironment:
        makers = [lambda: Counting((3, 5), "truncated"), lambda: Counting((5, 2))]
        return VectorEnvironment(SyncVectorEnv(makers, autoreset_mode=self.mode), seed, self.name)


def policy_spec(kind: Kind) -> PolicySpec:
    return PolicySpec(
        observation_codec(spaces.Box(0.0, 1e6, (2,))),
        action_codec(spaces.Discrete(2)),
        hidden=(8,),
        memory=kind,
        memory_size=5,
    )


def shaken(policy: ActorCritic) -> ActorCritic:
    """The policy far from its initial near-uniform outputs, so that a mistake in them would show."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return policy


def fragments(kind: Kind, mode: AutoresetMode, steps: int = 7) -> tuple[ActorCritic, list[Trajectories]]:
    """Two consecutive fragments, and the policy that acted them out."""
    spec = policy_spec(kind)
    policy = shaken(spec.build(seed=0))
    worker = RolloutWorker(CountingSpec(Counting, mode=mode), spec, num_envs=2, fragment_length=steps)
    worker.set_weights(replace(PPOLearner(spec).weights(), parameters=policy.parameters_numpy()))
    return policy, [read_only(worker.sample()) for _ in range(2)]


def rows_of(fragment: Trajectories) -> tuple[Advantages, Sequences]:
    rows = gae()(fragment)
    assert rows.sequences is not None
    return rows, rows.sequences


def evaluated(
    policy: ActorCritic, rows: Advantages, sequences: Sequences
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return policy.evaluate(to_tensor(rows.observations, "cpu"), to_tensor(rows.actions, "cpu"), sequences)


def test_the_state_of_an_lstm_is_hidden_and_cell() -> None:
    assert (state_width("none", 5), state_width("gru", 5), state_width("lstm", 5)) == (0, 5, 10)
    assert policy_spec("lstm").state_width == 10


@each_kind
def test_one_step_in_numpy_is_one_step_in_torch(kind: Kind) -> None:
    policy = shaken(policy_spec(kind).build(seed=0))
    assert policy.memory is not None
    rng = np.random.default_rng(0)
    features = rng.normal(size=(6, 8)).astype(np.float32)
    state = rng.normal(size=(6, state_width(kind, 5))).astype(np.float32)
    state.setflags(write=False)
    output, following = policy.memory.cell()(features, state)
    with torch.no_grad():
        expected, expected_state = policy.memory(torch.tensor(features)[None], torch.tensor(state))
    np.testing.assert_allclose(output, expected[0].numpy(), atol=1e-6)
    np.testing.assert_allclose(following, expected_state.numpy(), atol=1e-6)


@each_kind
def test_a_gate_far_in_its_limits_does_not_overflow(kind: Kind) -> None:
    cell = Memory(kind, 1, 2).cell()
    with np.errstate(all="raise", under="ignore"):
        output, _ = cell(np.full((1, 1), 1e4, np.float32), np.zeros((1, state_width(kind, 2)), np.float32))
    assert np.isfinite(output).all()


@each_kind
@pytest.mark.parametrize("mode", MODES)
def test_rows_of_sequences_are_evaluated_as_they_were_acted_out(kind: Kind, mode: AutoresetMode) -> None:
    policy, both = fragments(kind, mode)
    assert both[1].initial_state.any()  # an episode goes on over the end of the first fragment
    for fragment in both:
        assert (fragment.terminated | fragment.truncated).any()
        rows, sequences = rows_of(fragment)
        assert rows.steps == sequences.lengths.sum() == fragment.steps
        log_probs, entropies, values = evaluated(policy, rows, sequences)
        assert log_probs.shape == entropies.shape == values.shape == (fragment.steps,)
        np.testing.assert_allclose(log_probs.detach(), rows.log_probs, atol=2e-6)
        np.testing.assert_allclose(values.detach(), rows.values, atol=2e-6)


@each_kind
def test_what_came_before_matters_until_the_episode_ends(kind: Kind) -> None:
    policy, (_, fragment) = fragments(kind, AutoresetMode.SAME_STEP, steps=4)
    rows, sequences = rows_of(fragment)
    # Both environments go on with an episode; that of the second ends at once, and two more begin.
    assert sequences.lengths.tolist() == [4, 1, 2, 1]
    assert sequences.states.any(axis=1).tolist() == [True, True, False, False]
    forgetful = replace(sequences, states=np.zeros_like(sequences.states))
    (_, _, values), (_, _, others) = (evaluated(policy, rows, each) for each in (sequences, forgetful))
    assert (values != others).tolist() == [True] * 5 + [False] * 3


@each_kind
def test_the_value_after_a_truncation_knows_the_episode(kind: Kind) -> None:
    policy, (fragment, _) = fragments(kind, AutoresetMode.SAME_STEP)
    # Column 0: the first episode is truncated after three steps.
    assert fragment.truncated[2, 0]
    state = np.zeros((1, policy.spec.state_width), np.float32)
    for t in range(3):
        state = policy.act(fragment.observations[t, :1], state, np.random.default_rng(0)).state
    final = fragment.final_observations[fragment.final_rows == 2 * 2 + 0]
    assert final.tolist() == [[0.0, 3.0]]
    np.testing.assert_allclose(fragment.next_values[2, 0], policy.value(final, state)[0], atol=2e-6)


@each_kind
def test_no_gradient_passes_the_end_of_an_episode(kind: Kind) -> None:
    policy = shaken(policy_spec(kind).build(seed=0))
    observations = torch.rand(4, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    episodes = Sequences(np.array([2, 2]), np.ones((2, policy.spec.state_width), np.float32))
    _, _, values = policy.evaluate(observations, torch.zeros(4, dtype=torch.int64), episodes)
    (gradient,) = torch.autograd.grad(values[3], observations)
    assert gradient.any(dim=1).tolist() == [False, False, True, True]


@each_kind
def test_a_policy_without_knowledge_of_sequences_is_refused(kind: Kind) -> None:
    policy = policy_spec(kind).build(seed=0)
    with pytest.raises(ValueError, match="evaluate it over sequences"):
        policy.evaluate(torch.zeros(3, 2), torch.zeros(3, dtype=torch.int64))


def test_a_policy_without_memory_does_not_look_at_sequences() -> None:
    policy = shaken(replace(policy_spec("gru"), memory="none").build(seed=0))
    observations, actions = torch.rand(12, 2), torch.zeros(12, dtype=torch.int64)
    sequences = Sequences(np.array([5, 7]), np.zeros((2, 0), np.float32))
    found = zip(
        policy.evaluate(observations, actions, sequences), policy.evaluate(observations, actions), strict=True
    )
    assert all(one.equal(other) for one, other in found)


@each_kind
def test_images_are_remembered(kind: Kind) -> None:
    spec = replace(policy_spec(kind), observations=observation_codec(spaces.Box(0, 255, (8, 8, 3), np.uint8)))
    policy = spec.build(seed=0)
    image = np.random.default_rng(0).integers(0, 256, (2, 3, 8, 8), dtype=np.uint8)
    zeros = np.zeros((2, spec.state_width), np.float32)
    acted = policy.act(image, zeros, np.random.default_rng(0))
    assert acted.state.any()
    np.testing.assert_allclose(policy.value(image, zeros), acted.values)
    again = policy.value(image, acted.state)
    assert not np.allclose(again, acted.values)


@each_kind
def test_recurrent_weights_are_orthogonal_gate_by_gate_and_biases_zero(kind: Kind) -> None:
    policy = policy_spec(kind).build(derive_seed(0, "policy"))
    assert policy.memory is not None
    tensors = dict(policy.memory.layer.named_parameters())
    recurrent = tensors["weight_hh_l0"].detach()
    torch.testing.assert_close(recurrent.T @ recurrent, torch.eye(5), rtol=0, atol=1e-5)
    assert not tensors["bias_ih_l0"].any()
    assert not tensors["bias_hh_l0"].any()


def test_padding_keeps_every_row_and_adds_none() -> None:
    padding = Padding(torch.tensor([2, 1, 3]))
    rows = torch.arange(1.0, 7.0)
    columns = padding.pad(rows)
    assert columns.tolist() == [[1, 3, 4], [2, 0, 5], [0, 0, 6]]
    assert padding.mask.tolist() == (columns > 0).tolist()
    assert padding.unpad(columns).equal(rows)
    assert padding.pad(torch.zeros(6, 4)).shape == (3, 3, 4)


@pytest.mark.parametrize("case", selected("sequence_mask", "MSK-02"))
def test_the_state_after_the_padding_is_never_used(case: Case) -> None:
    inputs = case["inputs"]
    lengths = torch.tensor(inputs["seq_lens"])
    padding = Padding(lengths)
    columns = torch.tensor(inputs["inputs"], dtype=torch.float64).T
    state = torch.full((2,), inputs["h0"], dtype=torch.float64)
    states: list[torch.Tensor] = []
    for x in padding.pad(padding.unpad(columns)):  # the cell of the case: h = 0.5 h + x
        state = 0.5 * state + x
        states.append(state)
    assert state.tolist() == pytest.approx(case["wrong_values"]["final_states"])
    last_rows = torch.cumsum(lengths, 0) - 1
    final = padding.unpad(torch.stack(states))[last_rows]
    assert final.tolist() == pytest.approx(case["expected"]["final_states"], abs=case["tolerance"])


def test_a_memory_without_units_is_refused() -> None:
    with pytest.raises(ValueError, match="memory_size must be at least 1, got 0"):
        replace(policy_spec("gru"), memory_size=0)
