"""A configuration comes back from JSON equal to what it was, or is refused with the field's name."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from pipeflow.algorithms.ppo import PPOConfig
from pipeflow.cli.configuration import from_json, to_json
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.single_environments import make_environment

CONFIG = PPOConfig(
    env=EnvSpec("CartPole-v1", {"sutton_barto_reward": True, "x": [1, None, "a"]}, frame_stack=2),
    hidden=(32, 16, 8),
    activation="relu",
    anneal_steps=1000,
    value_clip=0.2,
    max_grad_norm=None,
    shared_trunk=True,
    gamma=1.0,
)


@pytest.mark.parametrize("config", [PPOConfig(), CONFIG, replace(CONFIG, hidden=())])
def test_it_comes_back_equal_through_a_file(config: PPOConfig) -> None:
    values = json.loads(json.dumps(to_json(config)))
    assert values.keys() == {field.name for field in fields(config)}
    found = from_json(PPOConfig, values)
    assert found == config
    assert all(
        type(getattr(found, field.name)) is type(getattr(config, field.name)) for field in fields(config)
    )


def test_a_field_that_is_not_there_has_its_default() -> None:
    assert from_json(PPOConfig, {"gamma": 0.5}) == PPOConfig(gamma=0.5)


def test_a_whole_number_is_a_number_too() -> None:
    config = from_json(PPOConfig, {"gamma": 1})
    assert isinstance(config.gamma, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gama": 0.9}, "PPOConfig has no field gama"),
        ({"env": {"id": "CartPole-v1"}}, r"EnvSpec has no field env\.id"),
        ({"gamma": "high"}, "gamma is 'high', which is no float"),
        ({"workers": 1.5}, "workers is 1.5, which is no int"),
        ({"workers": True}, "workers is True, which is no int"),
        ({"hidden": [64, "x"]}, "hidden is 'x', which is no int"),
        ({"activation": "gelu"}, "activation is 'gelu'"),
        ({"value_clip": "no"}, "value_clip is 'no'"),
        ({"workers": 0}, "workers must be at least 1, got 0"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(PPOConfig, json.loads(json.dumps(values)))


def test_an_environment_that_is_no_name_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"env\.env is <function make_environment at .*>, which JSON cannot say"
    ):
        to_json(PPOConfig(env=EnvSpec(make_environment)))
