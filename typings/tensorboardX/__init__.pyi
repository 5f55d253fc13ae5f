"""The writer of event files, as far as training runs use it; tensorboardX ships no py.typed."""

from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

class SummaryWriter:
    def __init__(
        self,
        logdir: str | None = None,
        comment: str | None = "",
        purge_step: int | None = None,
        max_queue: int | None = 10,
        flush_secs: int | None = 120,
        filename_suffix: str | None = "",
        write_to_disk: bool | None = True,
    ) -> None: ...
    def add_scalar(
        self, tag: str, scalar_value: float, global_step: int | None = None, walltime: float | None = None
    ) -> None: ...
    def add_histogram(
        self,
        tag: str,
        values: NDArray[np.generic],
        global_step: int | None = None,
        bins: str | None = "tensorflow",
    ) -> None: ...
    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None: ...
    def add_hparams(
        self,
        hparam_dict: dict[str, bool | str | float | int],
        metric_dict: dict[str, float],
        name: str | None = None,
        global_step: int | None = None,
    ) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None: ...
