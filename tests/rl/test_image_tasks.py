"""The grid game: its rules, by hand, and that it is an environment as gymnasium wants it."""

from __future__ import annotations

import numpy as np
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.image_tasks import GRID_BREAKOUT, GridBreakout
from pipeflow.rl.spaces import observation_codec

STAY, LEFT, RIGHT = np.int64(0), np.int64(1), np.int64(2)
PADDLE, BALL, TRAIL, BRICKS = range(4)


def cell(image: NDArray[np.uint8], channel: int) -> tuple[int, int]:
    """Row and column of the one cell that is set in a channel."""
    ((row, column),) = np.argwhere(image[..., channel])
    return int(row), int(column)


def started(column: int, right: bool = True) -> tuple[GridBreakout, NDArray[np.uint8]]:
    """A game whose ball starts in this column and moves to this side."""
    for seed in range(1000):
        game, ahead = GridBreakout(), GridBreakout()
        image, _ = game.reset(seed=seed)
        ahead.reset(seed=seed)
        if cell(image, BALL)[1] == column and (cell(ahead.step(STAY)[0], BALL)[1] > column) == right:
            return game, image
    raise AssertionError(f"no game of 1000 starts in column {column}")


def followed(game: GridBreakout, image: NDArray[np.uint8], steps: int) -> float:
    """The return of a paddle that keeps below the ball."""
    total = 0.0
    for _ in range(steps):
        ball, paddle = cell(image, BALL)[1], cell(image, PADDLE)[1]
        action = STAY if ball == paddle else LEFT if ball < paddle else RIGHT
        image, reward, terminated, truncated, _ = game.step(action)
        total += reward
        if terminated or truncated:
            break
    return total


def test_it_is_an_environment_of_images() -> None:
    check_env(GridBreakout(), skip_render_check=True)
    codec = observation_codec(GridBreakout().observation_space)
    assert codec.is_image
    assert codec.shape == (4, 10, 10)


def test_a_game_starts_below_three_rows_of_bricks() -> None:
    _, image = started(0)
    assert cell(image, BALL) == cell(image, TRAIL) == (4, 0)
    assert cell(image, PADDLE) == (9, 5)
    assert np.unique(image[1:4, :, BRICKS]).tolist() == [255]
    assert image[..., BRICKS].sum() == 30 * 255


def test_the_ball_starts_in_any_column_and_moves_diagonally_to_either_side() -> None:
    game, _ = started(3)
    image, reward, terminated, _, _ = game.step(STAY)
    assert cell(image, BALL) == (5, 4)
    assert cell(image, TRAIL) == (4, 3)
    assert (reward, terminated) == (0.0, False)
    game, _ = started(3, right=False)
    assert cell(game.step(STAY)[0], BALL) == (5, 2)


def test_the_walls_send_it_back() -> None:
    game, _ = started(9, right=False)
    assert [cell(game.step(STAY)[0], BALL)[1] for _ in range(3)] == [8, 7, 6]
    game, _ = started(8)
    assert [cell(game.step(STAY)[0], BALL)[1] for _ in range(3)] == [9, 8, 7]


def test_the_paddle_moves_one_cell_as_far_as_the_walls_let_it() -> None:
    game, _ = started(0)
    assert [cell(game.step(action)[0], PADDLE)[1] for action in (LEFT, LEFT, RIGHT, STAY)] == [4, 3, 4, 4]
    game, _ = started(0)
    assert [cell(game.step(RIGHT)[0], PADDLE)[1] for _ in range(4)] == [6, 7, 8, 9]


def test_past_the_paddle_the_game_ends_without_a_reward() -> None:
    game, _ = started(0)
    outcomes = [game.step(LEFT) for _ in range(5)]
    assert [terminated for _, _, terminated, _, _ in outcomes] == [False] * 4 + [True]
    assert cell(outcomes[-1][0], BALL) == (9, 5)
    assert sum(reward for _, reward, _, _, _ in outcomes) == 0.0


def test_a_paddle_in_the_balls_way_sends_it_back_and_a_brick_is_worth_one() -> None:
    game, _ = started(0)
    images = [game.step(STAY)[0] for _ in range(5)]
    assert cell(images[3], BALL) == (8, 4)
    assert cell(images[4], BALL) == (8, 4)  # turned on the spot
    back = [game.step(STAY) for _ in range(5)]
    assert [cell(image, BALL) for image, *_ in back] == [(7, 3), (6, 2), (5, 1), (4, 0), (4, 1)]
    # From the wall it would have moved up and right, into the lowest row of bricks.
    assert [reward for _, reward, *_ in back] == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert back[-1][0][3, 1, BRICKS] == 0
    assert back[-1][0][..., BRICKS].sum() == 29 * 255


def test_bricks_come_back_once_all_are_gone() -> None:
    game, image = started(0)
    assert followed(game, image, 1000) > 30.0


def test_a_game_is_truncated_after_its_last_step() -> None:
    game = GridBreakout(max_steps=3)
    game.reset(seed=0)
    assert [game.step(STAY)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_the_same_seed_plays_the_same_games_by_name_too() -> None:
    sides = []
    for game in (GridBreakout, GRID_BREAKOUT):
        environment = EnvSpec(game).make(4, seed=7)
        sides.append(environment.reset())
        environment.close()
    np.testing.assert_array_equal(sides[0], sides[1])
