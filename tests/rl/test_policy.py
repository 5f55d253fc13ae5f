"""What acting gives."""

from __future__ import annotations

import numpy as np

from pipeflow.rl.policy import Acted


def test_a_policy_without_a_distribution_gives_no_number_for_it() -> None:
    actions, state = np.zeros((3, 2), np.float32), np.zeros((3, 0), np.float32)
    acted = Acted.of_actions(actions, state)
    assert acted.actions is actions
    assert acted.state is state
    for unknown in (acted.log_probs, acted.values):
        assert unknown.shape == (3,)
        assert unknown.dtype == np.float32
        assert np.isnan(unknown).all()
