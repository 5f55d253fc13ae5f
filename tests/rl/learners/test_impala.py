"""IMPALA's learner: what it says of a fragment is what acting said, whatever ended, and it corrects for age."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from pipeflow.rl.batches import Trajectories
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.impala import EvaluatedFragment, IMPALALearner, VTraceSettings
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.recurrent import MemoryKind
from pipeflow.rl.returns import generalized_advantage_estimation
from pipeflow.rl.rollouts import RolloutWorker
from tests.rl.partial_environments import Forbidding
from tests.rl.read_only import read_only
from tests.rl.test_rollouts import CountingSpec

CPU = torch.device("cpu")
SETTINGS = VTraceSettings(gamma=0.9)
MODES = list(AutoresetMode)
MEMORIES: tuple[MemoryKind, ...] = ("none", "lstm", "gru")

each_memory = pytest.mark.parametrize("memory", MEMORIES)
each_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
