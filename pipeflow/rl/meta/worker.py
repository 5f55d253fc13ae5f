"""The worker of meta-learning: draws tasks, and collects rollouts of each while it adapts to it.

Apart from `pipeflow.rl.rollouts`, whose worker steps one environment for ever: this one makes such a worker for
every rollout of every task. Adapting is a stage of the plan, so how often it happens is read there.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from pipeflow.dsl import current_shard
from pipeflow.rl.batches import Weights
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.meta.adaptation import Rollout, adapted
from pipeflow.rl.meta.baseline import advantages_over_baseline
from pipeflow.rl.meta.rollouts import TaskRollouts
from pipeflow.rl.meta.tasks import TaskDistribution
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.seeding import derive_seed
from pipeflow.rl.threads import torch_threads
from pipeflow.state.values import StateValue, arrays_under, prefixed, saved_number


class MAMLWorker:
    """Collects `num_envs` x `fragment_length` steps of a task before adapting, and as many after each adaptation.

    tasks, policy: descriptions; the policy starts with the weights of a learner of the same seed. gamma:
    discount. step_size: of the gradient steps that adapt. seed: of the run; the worker's tasks, and what is
    random in each, come from it, the shard's index and the task's number alone. index: of this worker among its
    group; None asks the shard that it runs in. threads: that torch computes with.

    Nothing is kept between two calls but the weights and the number of tasks: the policy that a task's rollouts
    lead to is computed from them anew.
    """

    def __init__(
        self,
        tasks: TaskDistribution,
        policy: PolicySpec,
        *,
        num_envs: int = 20,
        fragment_length: int = 100,
        gamma: float = 0.99,
        step_size: float = 0.1,
        seed: int = 0,
        index: int | None = None,
        threads: int = 1,
    ) -> None:
        check_adaptable(policy)
        self._tasks = tasks
        self._spec = policy
        self._policy = policy.build(derive_seed(seed, "policy"))
        self._version = 0
        self._num_envs = num_envs
        self._fragment_length = fragment_length
        self._gamma = gamma
        self._step_size = step_size
        self._seed = derive_seed(seed, "worker", current_shard() if index is None else index)
        self._tasks_sampled = 0
        self._threads = threads

    def set_weights(self, weights: Weights, /) -> None:
        """Begin with these weights from the next task on."""
        self._policy.load_numpy(weights.parameters)
        self._version = weights.version

    def state(self) -> dict[str, StateValue]:
        """All that the next task depends on, under flat names: the weights and the number of tasks so far."""
        return {
            "version": self._version,
            "tasks_sampled": self._tasks_sampled,
            **prefixed("parameters/", {**self._policy.parameters_numpy()}),
        }

    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        """Go on where the worker that gave this state stood: the next tasks are, bit for bit, its next ones.

        Raises ValueError if the state is of another policy.
        """
        self._policy.load_numpy(arrays_under("parameters/", state))
        self._version = int(saved_number("version", state))
        self._tasks_sampled = int(saved_number("tasks_sampled", state))

    def sample_task(self) -> TaskRollouts:
        """The next task, with rollouts of the policy as it is."""
        seed = derive_seed(self._seed, "task", self._tasks_sampled)
        self._tasks_sampled += 1
        return self.explore(self._tasks.sample(seed), seed)

    def explore(self, task: EnvSpec, seed: int) -> TaskRollouts:
        """Rollouts of the policy as it is, in a task that was chosen already."""
        return self.adapt(TaskRollouts(task, seed, self._version))

    def adapt(self, found: TaskRollouts, /) -> TaskRollouts:
        """Take one gradient step on each of the rollouts, and collect one more with the policy that results."""
        rollouts = RolloutWorker(
            found.task,
            self._spec,
            num_envs=self._num_envs,
            fragment_length=self._fragment_length,
            seed=derive_seed(found.seed, "rollouts", len(found.rollouts)),
            index=0,
            threads=self._threads,
        )
        try:
            rollouts.set_weights(self.adapted(found))
            trajectories = rollouts.sample()
        finally:
            rollouts.close()
        return found.extended(advantages_over_baseline(trajectories, self._gamma))

    def adapted(self, found: TaskRollouts) -> Weights:
        """The weights after one gradient step on each of the rollouts.

        The version stays that of the weights that were adapted.
        """
        # What is adapted to is the newest weights, which the rollouts must be of.
        if found.version != self._version:
            raise ValueError(
                f"rollouts of weights {found.version} cannot be adapted on with weights {self._version}; send "
                "weights between the items of the plan, not within one"
            )
        with torch_threads(self._threads):
            start = dict(self._policy.named_parameters())
            batches = [Rollout.of(batch, torch.device("cpu")) for batch in found.rollouts]
            parameters = adapted(self._policy, start, batches, self._step_size, differentiable=False)
            arrays = self._policy.parameters_numpy()
            arrays.update({name: tensor.detach().numpy() for name, tensor in parameters.items()})
        return Weights(self._version, arrays)


def check_adaptable(policy: PolicySpec) -> None:
    """Refuse a policy that a linear baseline, or a step on rows in any order, is not made for.

    Raises ValueError naming what it is.
    """
    if any(leaf.kind == "image" for leaf in policy.observations.leaves):
        raise ValueError(
            "the linear baseline of meta-learning takes vectors, and these observations hold images"
        )
    if policy.state_width:
        raise ValueError("a policy with memory cannot be adapted on rows in any order; use one without")
