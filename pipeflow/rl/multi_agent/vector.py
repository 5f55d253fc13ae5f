"""Several copies of one environment with several agents, seen as arrays by policy.

Apart from `environments`, where one copy is dictionaries, and from the rollout worker, which sees arrays alone.
A policy's seats are its agents in all copies: seat c * A + a is the a-th of its A agents in copy c. An agent may
be absent from a seat, and a step says of each who was observed, who ended, and who begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import NDArray

from pipeflow.rl.batches import ActionArray, ObservationArray
from pipeflow.rl.multi_agent.environments import AgentsStep, CheckedMultiAgentEnvironment, MultiAgentEnvSpec
from pipeflow.rl.multi_agent.policy_map import PolicyMap
from pipeflow.rl.policy import PolicyDescription
from pipeflow.rl.seeding import derive_seed
from pipeflow.rl.single_environments import BadEnvironment
from pipeflow.rl.spaces import ActionCodec, ObservationCodec, SpaceBatch
from pipeflow.state.values import StateValue, prefixed, under


class Observed(NamedTuple):
    """Observations of some seats. indices: [K] int64, ascending. observations: [K, *obs], encoded."""

    indices: NDArray[np.int64]
    observations: ObservationArray


class Chosen(NamedTuple):
    """Actions of some seats. indices: [K] int64. actions: [K, *act], in the network's form."""

    indices: NDArray[np.int64]
    actions: ActionArray


class SeatsStep(NamedTuple):
    """What one step of all copies gave the N seats of one policy.

    rewards: [N] float32; zero where none was given. terminated, truncated: [N] bool, never both. observed:
    who was, with the last observations of those that ended. fresh: the first observations of the agents in
    copies whose episode was over and which were reset; they come after all that this step says of the same
    seats.
    """

    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    observed: Observed
    fresh: Observed


class MultiAgentVector:
    """`num_envs` copies that restart by themselves.

    env, policies: descriptions. seed: from which every copy gets a stream of its own.
    Raises ValueError as `PolicyMap.seats` does, UnsupportedSpace for a space that no policy is built for.

    num_seats, actions: number of seats N, and how actions are coded, by policy.
    """

    def __init__(self, env: MultiAgentEnvSpec, policies: PolicyMap, num_envs: int, seed: int) -> None:
        seats = policies.seats(env)
        self._copies = [
            CheckedMultiAgentEnvironment(
                env, derive_seed(seed, "environment", copy), f"{env.name}, copy {copy}"
            )
            for copy in range(num_envs)
        ]
        self._seats = {
            policy: _PolicySeats(env.name, its.agents, policies.policies[policy], its.actions, num_envs)
            for policy, its in seats.items()
        }
        self.num_seats: Mapping[str, int] = {policy: its.count for policy, its in self._seats.items()}
        self.actions: Mapping[str, ActionCodec] = {policy: its.actions for policy, its in seats.items()}

    def agent(self, policy: str, seat: int) -> str:
        """The name of the agent of a policy's seat."""
        return self._seats[policy].agent(seat)

    def reset(self) -> Mapping[str, Observed]:
        """Start an episode in every copy: by policy, the agents that act first.

        Raises BadEnvironment if an environment breaks the protocol, or an observation is not finite.
        """
        raw = {copy: env.reset() for copy, env in enumerate(self._copies)}
        return {policy: seats.observed(raw) for policy, seats in self._seats.items()}

    def step(self, chosen: Mapping[str, Chosen]) -> Mapping[str, SeatsStep]:
        """Take one step in every copy, and restart those in which nobody is left.

        chosen: by policy, the actions of all seats that act; not written to.
        Raises BadEnvironment if an environment breaks the protocol, or an observation is not finite.
        """
        actions: list[dict[str, Any]] = [{} for _ in self._copies]
        for policy, (indices, its_actions) in chosen.items():
            self._seats[policy].distribute(indices, its_actions, actions)
        steps = [env.step(its) for env, its in zip(self._copies, actions, strict=True)]
        # Encoded first: an environment may reuse its arrays when it is reset.
        observed = {
            policy: seats.observed({copy: step.observations for copy, step in enumerate(steps)})
            for policy, seats in self._seats.items()
        }
        fresh = {copy: self._copies[copy].reset() for copy, step in enumerate(steps) if step.over}
        return {
            policy: seats.step(steps, observed[policy], seats.observed(fresh))
            for policy, seats in self._seats.items()
        }

    def state(self) -> dict[str, StateValue]:
        """All that the next steps and resets depend on, under flat names.

        "environments_saved" is 0 if a copy cannot be saved.
        """
        copies = [env.state() for env in self._copies]
        state: dict[str, StateValue] = {"environments_saved": int(all(its["saved"] for its in copies))}
        for copy, its in enumerate(copies):
            state.update(prefixed(f"environments/{copy}/", its))
        return state

    def load_state(self, state: Mapping[str, StateValue], /) -> bool:
        """Go on where the copies that gave this state stood; these are new.

        Returns whether they were saved. If not, `reset` is to be called: it starts each one's next episode.
        Raises ValueError if the state is of other environments.
        """
        saved = [
            env.load_state(under(f"environments/{copy}/", state)) for copy, env in enumerate(self._copies)
        ]
        return all(saved)

    def close(self) -> None:
        """Release what the environments hold; they cannot be stepped after it."""
        for env in self._copies:
            env.close()


class _PolicySeats:
    """Between dictionaries by agent, one a copy, and the arrays of one policy."""

    def __init__(
        self,
        name: str,
        agents: tuple[str, ...],
        policy: PolicyDescription,
        actions: ActionCodec,
        num_envs: int,
    ) -> None:
        self._name = name
        self._agents = agents
        self._observations: ObservationCodec = policy.observations
        self._actions = actions
        self.count = num_envs * len(agents)
        self._nobody = Observed(
            np.zeros(0, np.int64), np.zeros((0, *self._observations.shape), self._observations.dtype)
        )

    def agent(self, seat: int) -> str:
        return self._agents[seat % len(self._agents)]

    def observed(self, copies: Mapping[int, Mapping[str, Any]]) -> Observed:
        indices: list[int] = []
        items: list[Any] = []
        for copy, observations in copies.items():
            for position, agent in enumerate(self._agents):
                if agent in observations:
                    indices.append(copy * len(self._agents) + position)
                    items.append(observations[agent])
        if not indices:
            return self._nobody
        space = self._observations.space
        empty = create_empty_array(space, n=len(items))
        assert (
            empty is not None
        )  # gymnasium's answer for a space without arrays, which no codec would have taken
        encoded = self._observations.encode(concatenate(space, items, empty))
        finite = np.isfinite(encoded).reshape(len(items), -1).all(axis=1)
        if not finite.all():
            row = int(np.flatnonzero(~finite)[0])
            copy = indices[row] // len(self._agents)
            raise BadEnvironment(
                f"{self._name}, copy {copy}: the observation of agent {self.agent(indices[row])!r} holds nan or "
                f"infinity: {encoded[row]}"
            )
        return Observed(np.array(indices, np.int64), encoded)

    def distribute(
        self, indices: NDArray[np.int64], actions: ActionArray, by_copy: list[dict[str, Any]]
    ) -> None:
        """Put each seat's action into the dictionary of its copy, in the environment's form."""
        if len(indices) == 0:
            return
        batch = self._actions.to_env(actions)
        for row, seat in enumerate(indices.tolist()):
            copy, position = divmod(seat, len(self._agents))
            by_copy[copy][self._agents[position]] = _row(batch, row)

    def step(self, steps: list[AgentsStep], observed: Observed, fresh: Observed) -> SeatsStep:
        rewards = [step.rewards.get(agent, 0.0) for step in steps for agent in self._agents]
        terminated = [agent in step.terminated for step in steps for agent in self._agents]
        truncated = [agent in step.truncated for step in steps for agent in self._agents]
        return SeatsStep(
            np.array(rewards, np.float32),
            np.array(terminated, np.bool_),
            np.array(truncated, np.bool_),
            observed,
            fresh,
        )


def _row(batch: SpaceBatch, row: int) -> Any:
    """One row of a batch of actions, in the structure of the action space."""
    if isinstance(batch, np.ndarray):
        return batch[row]
    if isinstance(batch, tuple):
        return tuple(_row(part, row) for part in batch)
    return {key: _row(part, row) for key, part in batch.items()}
