"""What is done to any network: a target that follows it, and parts of it that a loss leaves alone."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from pipeflow.rl.learners.learner import flatten_parameters
from pipeflow.rl.modules import frozen, polyak_update


def network() -> nn.Sequential:
    """A layer whose statistics are buffers, and an output, with numbers that can be counted with."""
    module = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1))
    for parameter in module.parameters():
        nn.init.constant_(parameter, 1.0)
    return module


def parameters(module: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])


def test_a_target_moves_a_share_of_the_way_and_takes_buffers_whole() -> None:
    online = network()
    target = copy.deepcopy(online).requires_grad_(False)
    for parameter in online.parameters():
        nn.init.constant_(parameter, 5.0)
    running = online.get_buffer("0.running_mean")
    running.fill_(3.0)
    polyak_update(target, online, 0.25)
    assert parameters(target).tolist() == [2.0] * 7
    assert target.get_buffer("0.running_mean").tolist() == [3.0, 3.0]
    polyak_update(target, online, 0.25)
    assert parameters(target).tolist() == [2.75] * 7
    assert parameters(online).tolist() == [5.0] * 7


def test_a_share_of_one_copies_and_nothing_is_shared() -> None:
    online, target = nn.Linear(2, 1), nn.Linear(2, 1)
    polyak_update(target, online, 1.0)
    assert parameters(target).equal(parameters(online))
    nn.init.constant_(online.weight, 9.0)
    assert not parameters(target).equal(parameters(online))


def test_networks_of_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        polyak_update(nn.Linear(2, 1), nn.Linear(2, 1, bias=False), 0.5)


def test_a_loss_through_a_frozen_part_trains_what_stands_before_it() -> None:
    first, second = nn.Linear(2, 3), nn.Linear(3, 1)
    whole = nn.Sequential(first, second)
    expected = copy.deepcopy(first)
    torch.autograd.backward((expected(torch.ones(4, 2)) @ second.weight.detach().T).sum())
    flat = flatten_parameters(whole)
    with frozen(second):
        loss = whole(torch.ones(4, 2)).sum()
    torch.autograd.backward(loss)
    assert flat.grad is not None
    assert expected.weight.grad is not None
    assert flat.grad[:6].equal(expected.weight.grad.reshape(-1))
    assert flat.grad[9:].tolist() == [0.0] * 4
    assert all(parameter.requires_grad for parameter in whole.parameters())


def test_what_was_frozen_before_stays_so() -> None:
    layer = nn.Linear(2, 1)
    layer.bias.requires_grad_(False)
    with frozen(layer):
        assert not layer.weight.requires_grad
    assert (layer.weight.requires_grad, layer.bias.requires_grad) == (True, False)


def test_an_error_inside_of_frozen_leaves_nothing_frozen() -> None:
    layer = nn.Linear(2, 1)
    with pytest.raises(RuntimeError), frozen(layer):
        layer(torch.ones(1, 3))
    assert layer.weight.requires_grad
