"""V-trace: value targets and advantages of a policy from the actions of an older one.

Apart from `returns`, whose targets are of the policy that acted, and which the workers compute: these need the
action probabilities of the policy that is trained, so its learner computes them. They are constants to the
loss, hence numpy. The rules are those of `returns`: a termination zeroes the bootstrap, either end of an
episode cuts the chain of sums, and the end of a fragment does neither.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeflow.rl.returns import backward_sums


def vtrace(
    log_rhos: NDArray[np.floating],
    rewards: NDArray[np.floating],
    values: NDArray[np.floating],
    next_values: NDArray[np.floating],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    gamma: float,
    *,
    lam: float = 1.0,
    rho_clip: float = 1.0,
    c_clip: float = 1.0,
    advantage_rho_clip: float = 1.0,
    valid: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Value targets v_s and policy gradient advantages of one fragment.

    log_rhos: [T] or [T, N], log pi(a|s) - log mu(a|s), of the trained policy pi and the acting policy mu.
    rewards, values, terminated, truncated: the same shape. next_values: the same, V of the true next
    observation; it may be anything where `terminated`. gamma: in [0, 1]. lam: in [0, 1], less trusts the values
    more and the sampled returns less. rho_clip, c_clip: the paper's rho-bar
    and c-bar; the first decides which policy's values are learnt, the second how far corrections reach.
    advantage_rho_clip: rho-bar of the advantages. valid: the same shape, False for reset rows, which get their
    own value as target and an advantage of zero, and reach no other row.
    Returns (value_targets, advantages), float64, shaped as the rewards. The advantages are weighted by the
    clipped importance ratios already.
    Source: Espeholt et al., "IMPALA: Scalable Distributed Deep-RL with Importance Weighted Actor-Learner
    Architectures" (2018), section 4.1, equation 1 and remarks 1 and 2, and section 4.2 for the advantages.
    """
    rhos = np.exp(log_rhos.astype(np.float64))
    baseline, immediate = values.astype(np.float64), rewards.astype(np.float64)
    # np.where and not a product: what stands in next_values at a termination may be nan.
    bootstrap = np.where(terminated, 0.0, next_values.astype(np.float64))
    deltas = np.minimum(rhos, rho_clip) * (immediate + gamma * bootstrap - baseline)
    cut = terminated | truncated
    decay = np.where(cut, 0.0, gamma * lam * np.minimum(rhos, c_clip))
    if valid is not None:
        deltas, decay = np.where(valid, deltas, 0.0), np.where(valid, decay, 0.0)
    corrections = backward_sums(deltas, decay)

    # Within an episode the next row's target stands for its value; at its end and the fragment's, the value does.
    following = np.zeros_like(corrections)
    following[:-1] = np.where(cut[:-1], 0.0, corrections[1:])
    advantages = np.minimum(rhos, advantage_rho_clip) * (
        immediate + gamma * (bootstrap + following) - baseline
    )
    if valid is not None:
        advantages = np.where(valid, advantages, 0.0)
    return baseline + corrections, advantages
