"""Actor classes, handles and methods, as far as the Ray engine uses them."""

from collections.abc import Mapping
from typing import Any, Generic, Literal, Never, ParamSpec, TypeVar

from ray import ObjectRef
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

_A = TypeVar("_A")
_A_co = TypeVar("_A_co", covariant=True)
_P = ParamSpec("_P")

class ActorClass(Generic[_P, _A]):
    def remote(self, *args: _P.args, **kwargs: _P.kwargs) -> ActorHandle[_A]: ...
    def options(
        self,
        *,
        num_cpus: float = ...,
        num_gpus: float = ...,
        resources: Mapping[str, float] = ...,
        max_restarts: int = ...,
        max_task_retries: int = ...,
        max_concurrency: int = ...,
        name: str = ...,
        lifetime: Literal["detached"] | None = ...,
        runtime_env: Mapping[str, object] = ...,
        scheduling_strategy: Literal["DEFAULT", "SPREAD"] | PlacementGroupSchedulingStrategy | None = ...,
    ) -> ActorClass[_P, _A]: ...

class ActorHandle(Generic[_A_co]):
    # No annotation can turn the methods of an actor into remote ones, so a handle has every method, and its
    # results are Any: the engine annotates each reference where it makes the call.
    def __getattr__(self, name: str, /) -> ActorMethod: ...

class ActorMethod:
    def remote(self, *args: object, **kwargs: object) -> ObjectRef[Any]: ...
    def options(self, *, num_returns: int) -> ManyReturns: ...  # 2 or more: for 1, Ray gives no list

class ManyReturns:
    def remote(self, *args: object, **kwargs: object) -> list[ObjectRef[Any]]: ...

def exit_actor() -> Never: ...
