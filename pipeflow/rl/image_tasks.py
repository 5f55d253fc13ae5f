"""A game of images that is learnt within minutes on one core: Breakout on a grid of 10 by 10 cells.

Registered with gymnasium as `GRID_BREAKOUT`. Apart from the tests and the benchmarks, which both train on it. It
is in the manner of MinAtar (Young and Tian, "MinAtar: An Atari-Inspired Testbed for Thorough and Reproducible
Reinforcement Learning Experiments", 2019), whose Breakout has the same grid and channels; the rules are this
module's own, so returns are not comparable.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

GRID_BREAKOUT = f"{__name__}:pipeflow/GridBreakout-v0"
"""The id of `GridBreakout`, with the module that registers it."""

_SIZE = 10
_BRICK_ROWS = slice(1, 4)
_BALL_ROW = 4  # where the ball starts, just below the bricks
_PADDLE, _BALL, _TRAIL, _BRICKS = range(4)


class GridBreakout(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """A ball that moves one cell diagonally a step, a paddle of one cell in the bottom row, three rows of bricks.

    Observations: [10, 10, 4] uint8, 255 where the paddle is, the ball, the ball of the step before, and bricks, in
    this order of channels. Actions: 0 leaves the paddle, 1 moves it left, 2 right, as far as the walls let it.
    The ball bounces off the walls at the left, right and top, off a brick, which it removes for a reward of 1, and
    off the paddle: upwards when the paddle is below it, back where it came from when the paddle is in the cell
    that it moves to. Once no brick is left, the next bounce off the paddle brings all of them back. When the ball
    gets past the paddle the episode terminates; after `max_steps` steps it is truncated. Only the column in which
    the ball starts, and whether it moves left or right, are drawn.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # gymnasium declares it on the instance

    def __init__(self, max_steps: int = 1000) -> None:
        self.observation_space = spaces.Box(0, 255, (_SIZE, _SIZE, 4), np.uint8)
        self.action_space = spaces.Discrete(3)
        self._max_steps = max_steps
        self._steps = 0
        self._paddle = _SIZE // 2
        self._row, self._column = self._trail = (_BALL_ROW, 0)
        self._down = self._right = 1
        self._bricks = _all_bricks()

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        self._paddle = _SIZE // 2
        self._row, self._column = self._trail = (_BALL_ROW, int(self.np_random.integers(_SIZE)))
        self._down, self._right = 1, 1 if self.np_random.random() < 0.5 else -1
        self._bricks = _all_bricks()
        return self._observation(), {}

    @override
    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        self._steps += 1
        if action == 1:
            self._paddle = max(self._paddle - 1, 0)
        elif action == 2:
            self._paddle = min(self._paddle + 1, _SIZE - 1)
        self._trail = (self._row, self._column)
        reward, terminated = self._move_ball()
        return self._observation(), reward, terminated, self._steps >= self._max_steps, {}

    def _move_ball(self) -> tuple[float, bool]:
        """Move the ball by one step: (reward, whether it got past the paddle)."""
        if not 0 <= self._column + self._right < _SIZE:
            self._right = -self._right
        if self._row + self._down < 0:
            self._down = -self._down
        row, column = self._row + self._down, self._column + self._right
        if self._bricks[row, column]:
            self._bricks[row, column] = False
            self._down, self._column = -self._down, column
            return 1.0, False
        if row == _SIZE - 1:
            if self._paddle not in (self._column, column):
                self._row, self._column = row, column
                return 0.0, True
            if self._paddle == column:
                self._right = -self._right
            else:
                self._column = column
            self._down = -1
            if not self._bricks.any():
                self._bricks = _all_bricks()
            return 0.0, False
        self._row, self._column = row, column
        return 0.0, False

    def _observation(self) -> NDArray[np.uint8]:
        cells = np.zeros((_SIZE, _SIZE, 4), np.uint8)
        cells[-1, self._paddle, _PADDLE] = 255
        cells[self._row, self._column, _BALL] = 255
        cells[(*self._trail, _TRAIL)] = 255
        cells[self._bricks, _BRICKS] = 255
        return cells


def _all_bricks() -> NDArray[np.bool_]:
    bricks = np.zeros((_SIZE, _SIZE), np.bool_)
    bricks[_BRICK_ROWS] = True
    return bricks


gymnasium.register(id=GRID_BREAKOUT.partition(":")[2], entry_point=f"{__name__}:GridBreakout")
