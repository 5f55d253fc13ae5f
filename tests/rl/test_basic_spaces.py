"""Arrays of single spaces: where channels stand, what is an image, what is refused."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from pipeflow.rl.basic_spaces import (
    Image,
    Numbers,
    Reals,
    UnsupportedSpace,
    category_indices,
    observation_encoder,
)
from tests.cases import Case
from tests.rl.selected_cases import selected


def pixels(*shape: int) -> spaces.Box:
    return spaces.Box(0, 255, shape, np.uint8)


@pytest.mark.parametrize("case", selected("spaces", "SPC-04"))
def test_channels_are_moved_to_the_front_by_a_transpose(case: Case) -> None:
    image = np.array(case["inputs"]["hwc"], dtype=np.uint8)
    encoder = observation_encoder(pixels(*image.shape), "the observation")
    assert isinstance(encoder, Image)
    frames = encoder.frames(image[None])
    assert frames[0].tolist() == case["expected"]["chw"] != case["wrong_values"]["reshaped"]
    assert frames.flags.c_contiguous


@pytest.mark.parametrize(
    ("shape", "network_shape"),
    [
        ((84, 84), (1, 84, 84)),  # a grey image
        ((96, 96, 3), (3, 96, 96)),  # channels last, as gymnasium has them
        ((3, 96, 96), (3, 96, 96)),  # channels first
        ((4, 84, 84), (4, 84, 84)),  # a stack of grey images
        ((2, 84, 84), (2, 84, 84)),  # no usual number of channels: the shorter end
        ((84, 84, 12), (12, 84, 84)),
        ((4, 4, 4), (4, 4, 4)),  # both ends qualify: the last
        ((5, 96, 64, 3), (15, 96, 64)),  # a stack of colour images
        ((2, 3, 96, 64), (6, 96, 64)),
    ],
)
def test_an_image_is_read_as_channels_height_width(
    shape: tuple[int, ...], network_shape: tuple[int, ...]
) -> None:
    encoder = observation_encoder(pixels(*shape), "the observation")
    assert isinstance(encoder, Image)
    assert encoder.shape == network_shape
    assert encoder.frames(np.zeros((2, *shape), np.uint8)).shape == (2, *network_shape)


def test_where_both_ends_could_be_channels_the_last_axis_is() -> None:
    image = np.arange(64, dtype=np.uint8).reshape(4, 4, 4)
    encoder = observation_encoder(pixels(4, 4, 4), "the observation")
    assert isinstance(encoder, Image)
    np.testing.assert_array_equal(encoder.frames(image[None])[0, 1], image[:, :, 1])


def test_the_frames_of_a_stack_of_colour_images_become_channels() -> None:
    stack = np.arange(2 * 5 * 6 * 3, dtype=np.uint8).reshape(2, 5, 6, 3)
    encoder = observation_encoder(pixels(2, 5, 6, 3), "the observation")
    assert isinstance(encoder, Image)
    frames = encoder.frames(stack[None])[0]
    np.testing.assert_array_equal(frames[3 + 1], stack[1, :, :, 1])  # the second frame's second channel


@pytest.mark.parametrize(
    "space",
    [
        pixels(128),  # a vector of bytes, such as a console's memory
        spaces.Box(0, 1, (8, 8, 3), np.uint8),  # a board: 1/255 would all but erase it
        spaces.Box(0, 255, (8, 8, 3), np.float32),
        pixels(2, 2, 2, 2, 2),
    ],
)
def test_what_is_not_an_image_is_a_vector_of_numbers(space: spaces.Box) -> None:
    assert isinstance(observation_encoder(space, "the observation"), Numbers)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(5),
        spaces.Graph(spaces.Box(0, 1, (2,)), None),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.OneOf((spaces.Discrete(2), spaces.Discrete(3))),
    ],
)
def test_other_spaces_are_refused_by_name(space: gymnasium.Space[object]) -> None:
    with pytest.raises(
        UnsupportedSpace, match=f"part x of the observation, the space {type(space).__name__}"
    ):
        observation_encoder(space, "part x of the observation")


def test_more_categories_than_a_vector_can_hold_are_refused() -> None:
    with pytest.raises(UnsupportedSpace, match=r"1000000000 categories, and at most 65536"):
        category_indices(spaces.Discrete(10**9), "the action")


def test_a_sample_is_clipped_in_the_precision_of_the_bounds() -> None:
    # The float32 next to 0.1 lies above it, so that a clip before the cast would leave the space.
    reals = Reals(np.array([-0.1]), np.array([0.1]))
    values = reals.to_env(np.array([[5.0], [-5.0]], dtype=np.float32))
    assert values.dtype == np.float64
    assert values.tolist() == [[0.1], [-0.1]]
