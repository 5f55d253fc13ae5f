"""Adam: bit for bit torch's own, also after it was saved and restored."""

from __future__ import annotations

import torch
from torch import nn

from pipeflow.rl.learners.adam import Adam


def test_steps_are_those_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    start, gradients = torch.randn(50, generator=generator), torch.randn(12, 50, generator=generator)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    optimizer = Adam(ours, 1e-2)
    reference = torch.optim.Adam([theirs], lr=1e-2, eps=1e-5, fused=True)
    for number, gradient in enumerate(gradients):
        if number == 4:
            optimizer.lr = reference.param_groups[0]["lr"] = 1e-3
        if number == 8:
            restored = Adam(ours, optimizer.lr)
            restored.load_state(optimizer.state())
            optimizer = restored
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        optimizer.step()
        reference.step()
        assert ours.equal(theirs)
    assert not ours.equal(start)


def test_a_saved_state_is_a_copy() -> None:
    parameter = nn.Parameter(torch.zeros(3))
    parameter.grad = torch.ones(3)
    optimizer = Adam(parameter, 1e-2)
    saved = optimizer.state()
    optimizer.step()
    assert saved["step"] == 0
    assert optimizer.state()["step"] == 1
    assert (saved["exp_avg"] == 0).all()
