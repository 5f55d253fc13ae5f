"""The part of Ray Tune that the sweep uses; its own annotations leave what a trial is given and finds to Any."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from ray.tune.schedulers import TrialScheduler

_T = TypeVar("_T")

class Domain(Generic[_T]): ...

def loguniform(lower: float, upper: float) -> Domain[float]: ...
def choice(categories: Sequence[_T]) -> Domain[_T]: ...
def report(metrics: Mapping[str, float]) -> None: ...

class TuneConfig:
    def __init__(
        self,
        *,
        metric: str | None = None,
        mode: str | None = None,
        num_samples: int = 1,
        scheduler: TrialScheduler | None = None,
    ) -> None: ...

class RunConfig:
    def __init__(
        self, *, name: str | None = None, storage_path: str | None = None, verbose: int = 3
    ) -> None: ...

class Result:
    config: Mapping[str, float]
    metrics: Mapping[str, float]

class ResultGrid:
    def __iter__(self) -> Iterator[Result]: ...
    def get_best_result(self) -> Result: ...

class Tuner:
    def __init__(
        self,
        trainable: Callable[[dict[str, float]], None],
        *,
        param_space: Mapping[str, object],
        tune_config: TuneConfig,
        run_config: RunConfig,
    ) -> None: ...
    def fit(self) -> ResultGrid: ...
