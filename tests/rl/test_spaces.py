"""Codecs: what a policy reads and writes for every space, and that nothing is lost on the way."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from pipeflow.rl.spaces import InvalidObservation, UnsupportedSpace, action_codec, observation_codec
from tests.cases import Case
from tests.rl.selected_cases import selected

BOX = spaces.Box(-1.0, 1.0, (2,))
IMAGE = spaces.Box(0, 255, (4, 6, 3), np.uint8)


def test_a_vector_keeps_its_shape_and_becomes_float32() -> None:
    codec = observation_codec(spaces.Box(-1.0, 1.0, (3,), np.float64))
    encoded = codec.encode(np.array([[0.5, 0.25, -1.0]]))
    assert (codec.shape, codec.is_image) == ((3,), False)
    assert encoded.dtype == codec.dtype == np.float32
    assert encoded.tolist() == [[0.5, 0.25, -1.0]]


@pytest.mark.parametrize(("shape", "width"), [((), 1), ((2, 3), 6)])
def test_a_box_of_other_rank_is_flattened(shape: tuple[int, ...], width: int) -> None:
    codec = observation_codec(spaces.Box(-9.0, 9.0, shape))
    batch = np.arange(2 * width, dtype=np.float32).reshape(2, *shape)
    assert codec.shape == (width,)
    assert codec.encode(batch).tolist() == batch.reshape(2, width).tolist()


def test_float64_data_under_a_float32_box_is_read() -> None:
    codec = observation_codec(spaces.Dict({"a": spaces.Box(-1.0, 1.0, (8, 10)), "b": spaces.Discrete(5)}))
    encoded = codec.encode({"a": np.zeros((2, 8, 10)), "b": np.array([0, 4])})
    assert encoded.shape == (2, 85)
    assert encoded.dtype == np.float32
    assert encoded[:, 80:].tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]


def test_an_image_stays_uint8_in_channel_first_order() -> None:
    codec = observation_codec(IMAGE)
    batch = np.random.default_rng(0).integers(0, 256, (2, 4, 6, 3), dtype=np.uint8)
    encoded = codec.encode(batch)
    assert (codec.shape, codec.is_image) == ((3, 4, 6), True)
    assert encoded.dtype == codec.dtype == np.uint8
    np.testing.assert_array_equal(encoded[1, 2], batch[1, :, :, 2])


@pytest.mark.parametrize("case", selected("spaces", "ACT-04"))
def test_a_discrete_space_counts_from_its_start(case: Case) -> None:
    inputs, expected = case["inputs"], case["expected"]
    space = spaces.Discrete(inputs["n"], start=inputs["start"])
    actions = action_codec(space)
    assert (actions.kind, actions.sizes, actions.shape) == ("categorical", (3,), ())
    sent = actions.to_env(np.array(inputs["network_indices"]))
    assert np.asarray(sent).tolist() == expected["env_actions"]
    stored = actions.from_env(np.array(inputs["stored_env_actions"]))
    gathered = [row[index] for row, index in zip(inputs["q"], stored.tolist(), strict=True)]
    assert gathered == expected["gathered_q"]
    one_hot = observation_codec(space).encode(np.array([-1]))
    assert one_hot.tolist() == [expected["one_hot_of_minus_1"]]


@pytest.mark.parametrize("case", selected("spaces", "SPC-01"))
def test_each_entry_of_a_multi_discrete_has_its_own_block(case: Case) -> None:
    space, obs = spaces.MultiDiscrete(case["inputs"]["nvec"]), np.array(case["inputs"]["obs"])
    alone, nested = observation_codec(space), observation_codec(spaces.Tuple((space,)))
    assert alone.shape == nested.shape == (case["expected"]["flat_dim"],)
    assert alone.encode(obs).tolist() == case["expected"]["one_hot"]
    assert nested.encode((obs,)).tolist() == case["expected"]["one_hot"]


@pytest.mark.parametrize("case", selected("spaces", "SPC-02"))
def test_a_multi_discrete_of_two_axes_keeps_all_its_entries(case: Case) -> None:
    codec = observation_codec(spaces.MultiDiscrete(np.array(case["inputs"]["nvec"])))
    assert codec.shape == (case["expected"]["flat_dim"],)
    assert codec.encode(np.array([case["inputs"]["obs"]])).tolist() == [case["expected"]["one_hot"]]


def test_a_multi_discrete_observation_counts_from_its_starts() -> None:
    codec = observation_codec(spaces.MultiDiscrete([2, 3], start=[5, -1]))
    assert codec.encode(np.array([[6, -1]])).tolist() == [[0, 1, 1, 0, 0]]


def test_a_composite_space_is_one_vector_of_its_parts_in_order() -> None:
    space = spaces.Dict(
        {
            "arm": spaces.Tuple((BOX, spaces.MultiBinary(2))),
            "camera": IMAGE,
            "mode": spaces.Discrete(3, start=1),
        }
    )
    image = np.random.default_rng(0).integers(0, 256, (1, 4, 6, 3), dtype=np.uint8)
    arm = (np.array([[0.5, -0.5]], np.float32), np.array([[1, 0]], np.int8))
    codec = observation_codec(space)
    encoded = codec.encode({"arm": arm, "camera": image, "mode": np.array([2])})
    assert codec.shape == (2 + 2 + 72 + 3,)
    assert not codec.is_image
    assert [(leaf.path, leaf.kind) for leaf in codec.leaves] == [
        (("arm", 0), "vector"),
        (("arm", 1), "vector"),
        (("camera",), "image"),
        (("mode",), "one_hot"),
    ]
    parts = [encoded[0, leaf.slice] for leaf in codec.leaves]
    assert parts[0].tolist() == [0.5, -0.5]
    assert parts[1].tolist() == [1, 0]
    assert parts[3].tolist() == [0, 1, 0]
    camera = codec.leaves[2]
    assert camera.shape == (3, 4, 6)
    np.testing.assert_array_equal(
        np.rint(parts[2].reshape(camera.shape) * 255), image[0].transpose(2, 0, 1).astype(np.float32)
    )


@pytest.mark.parametrize("space", [BOX, IMAGE, spaces.Tuple((BOX,))])
def test_an_encoded_batch_shares_no_memory_with_the_environment(space: gymnasium.Space[Any]) -> None:
    batch = batch_space(space, 3).sample()
    encoded = observation_codec(space).encode(batch)
    before = encoded.copy()
    for array in batch if isinstance(batch, tuple) else (batch,):
        array[...] = 0
    np.testing.assert_array_equal(encoded, before)


@pytest.mark.parametrize("value", [0, 4])
def test_a_category_outside_the_space_is_refused_with_its_row(value: int) -> None:
    codec = observation_codec(spaces.Discrete(3, start=1))
    with pytest.raises(InvalidObservation, match=f"{value} is not in the space") as caught:
        codec.encode(np.array([1, 2, value]))
    assert caught.value.row == 2


def test_a_wrong_shape_is_refused() -> None:
    with pytest.raises(InvalidObservation, match=r"shape \(3,\) where the space says \(2,\)"):
        observation_codec(BOX).encode(np.zeros((4, 3)))


def test_a_missing_part_is_refused_by_its_path() -> None:
    codec = observation_codec(spaces.Dict({"arm": spaces.Dict({"angle": BOX})}))
    with pytest.raises(
        InvalidObservation, match=r"no part arm\.angle, which the space has; found \['speed'\]"
    ):
        codec.encode({"arm": {"speed": np.zeros((1, 2))}})


def test_an_unsupported_part_is_refused_by_its_path() -> None:
    with pytest.raises(UnsupportedSpace, match=r"part talk\.1 of the observation"):
        observation_codec(spaces.Dict({"talk": spaces.Tuple((BOX, spaces.Text(3)))}))


def test_a_space_without_numbers_is_refused() -> None:
    with pytest.raises(UnsupportedSpace, match="holds no numbers"):
        observation_codec(spaces.Dict({}))


def test_a_gaussian_sample_is_clipped_for_the_environment_only() -> None:
    high = np.array([1.0, np.inf], np.float32)
    codec = action_codec(spaces.Box(-high, high))
    raw = np.array([[1.7, 50.0], [-3.0, -50.0]], dtype=np.float32)
    raw.flags.writeable = False
    sent = np.asarray(codec.to_env(raw))
    assert (codec.kind, codec.sizes, codec.shape) == ("gaussian", (2,), (2,))
    assert codec.dtype == np.float32
    assert sent.tolist() == [[1.0, 50.0], [-1.0, -50.0]]
    assert raw[0, 0] == np.float32(1.7)


def test_a_gaussian_action_takes_the_shape_of_its_space() -> None:
    codec = action_codec(spaces.Box(-1.0, 1.0, (2, 3), np.float64))
    sent = np.asarray(codec.to_env(np.zeros((4, 6), np.float32)))
    assert codec.shape == (6,)
    assert sent.shape == (4, 2, 3)
    assert sent.dtype == np.float64


ACTION_SPACES = [
    (spaces.Discrete(3), "categorical", (3,)),
    (spaces.Discrete(3, start=-1, dtype=np.int32), "categorical", (3,)),
    (spaces.MultiDiscrete([2, 3]), "multi_categorical", (2, 3)),
    (
        spaces.MultiDiscrete(np.array([[2, 3], [4, 5]]), start=np.array([[1, 0], [-2, 7]])),
        "multi_categorical",
        (2, 3, 4, 5),
    ),
    (spaces.MultiBinary(3), "bernoulli", (3,)),
    (spaces.MultiBinary([2, 2]), "bernoulli", (4,)),
    (spaces.Box(-2, 2, (2,), np.int16), "multi_categorical", (5, 5)),
    (spaces.Box(-1.0, 1.0, (2, 2)), "gaussian", (4,)),
    (
        spaces.Dict(
            {"gear": spaces.Discrete(3, start=1), "pads": spaces.Tuple((spaces.MultiDiscrete([2, 4]),))}
        ),
        "multi_categorical",
        (3, 2, 4),
    ),
]


def test_bounds_lie_as_the_network_s_actions_do() -> None:
    space = spaces.Box(np.array([[-2.0], [0.0]]), np.array([[2.0], [np.inf]]), dtype=np.float64)
    low, high = action_codec(space).bounds
    assert low.dtype == high.dtype == np.float32
    assert (low.tolist(), high.tolist()) == ([-2.0, 0.0], [2.0, np.inf])


def test_categories_have_no_bounds() -> None:
    with pytest.raises(UnsupportedSpace, match=r"the actions are Discrete\(2\)"):
        _ = action_codec(spaces.Discrete(2)).bounds


@pytest.mark.parametrize(("space", "kind", "sizes"), ACTION_SPACES)
def test_every_action_goes_to_the_environment_and_back(
    space: gymnasium.Space[Any], kind: str, sizes: tuple[int, ...]
) -> None:
    codec = action_codec(space)
    assert (codec.kind, codec.sizes) == (kind, sizes)
    batched = batch_space(space, 5)
    batched.seed(0)
    sampled = batched.sample()
    network = codec.from_env(sampled)
    assert (network.shape, network.dtype) == ((5, *codec.shape), codec.dtype)
    sent = codec.to_env(network)
    assert sent in batched
    np.testing.assert_array_equal(codec.from_env(sent), network)
    if codec.kind != "gaussian":
        assert (network >= 0).all()
        assert (network < (2 if codec.kind == "bernoulli" else np.array(sizes))).all()


def test_an_action_outside_the_space_is_refused() -> None:
    with pytest.raises(ValueError, match="4 in row 1 is not in the action space"):
        action_codec(spaces.Discrete(3, start=1)).from_env(np.array([1, 4]))


@pytest.mark.parametrize(
    ("space", "named"),
    [
        (spaces.Text(3), "the action, the space Text"),
        (spaces.Dict({"x": BOX, "y": spaces.Discrete(2)}), "part x of the action, the space Box"),
        (spaces.Tuple((spaces.MultiBinary(2),)), "part 0 of the action, the space MultiBinary"),
        (spaces.Box(-(2**40), 2**40, (1,), np.int64), "categories, and at most"),
        (spaces.Tuple(()), "nothing to choose"),
    ],
)
def test_an_action_space_without_a_policy_is_refused_by_name(space: gymnasium.Space[Any], named: str) -> None:
    with pytest.raises(UnsupportedSpace, match=named):
        action_codec(space)


@pytest.mark.parametrize("space", [BOX, IMAGE, spaces.Dict({"a": spaces.Discrete(2)})])
def test_codecs_travel_between_processes_and_compare_by_their_space(space: gymnasium.Space[Any]) -> None:
    codec = observation_codec(space)
    assert pickle.loads(pickle.dumps(codec)) == codec == observation_codec(space)
    assert codec != observation_codec(spaces.Discrete(7))
