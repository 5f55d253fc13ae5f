"""The part of Ray that the Ray engine uses.

Ray ships annotations, but they type a handle as an actor or its class, which `kill` then refuses, give it
methods without `remote` unless each is decorated, and let a constructor take anything.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, ParamSpec, TypedDict, TypeVar, overload

from ray import actor as actor
from ray import cloudpickle as cloudpickle
from ray import exceptions as exceptions
from ray.actor import ActorClass

__version__: str
__file__: str

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
_A = TypeVar("_A")
_P = ParamSpec("_P")
_Method = TypeVar("_Method", bound=Callable[..., object])

class ObjectRef(Generic[_T_co]):
    def hex(self) -> str: ...

class Context:
    address_info: Mapping[str, object]

class RuntimeContext:
    gcs_address: str
    def get_node_id(self) -> str: ...

class Node(TypedDict):
    NodeID: str
    Alive: bool
    Resources: dict[str, float]

def get_runtime_context() -> RuntimeContext: ...
def init(
    address: str | None = None,
    *,
    num_cpus: int | None = None,
    num_gpus: int | None = None,
    object_store_memory: int | None = None,
    resources: Mapping[str, float] | None = None,
    ignore_reinit_error: bool = False,
    include_dashboard: bool | None = None,
    configure_logging: bool = True,
    logging_level: int = ...,
    log_to_driver: bool | None = None,
    namespace: str | None = None,
    runtime_env: Mapping[str, object] | None = None,
) -> Context: ...
def is_initialized() -> bool: ...
def nodes() -> list[Node]: ...
def shutdown(*, wait_for_processes: bool = False) -> None: ...
def cluster_resources() -> dict[str, float]: ...
def available_resources() -> dict[str, float]: ...

# Classes only: functions as remote tasks are not used here.
@overload
def remote(cls: Callable[_P, _A], /) -> ActorClass[_P, _A]: ...
@overload
def remote(
    *,
    num_cpus: float = ...,
    num_gpus: float = ...,
    max_restarts: int = ...,
    max_task_retries: int = ...,
    max_concurrency: int = ...,
) -> Callable[[Callable[_P, _A]], ActorClass[_P, _A]]: ...
def method(*, num_returns: int = ...) -> Callable[[_Method], _Method]: ...
@overload
def get(object_refs: ObjectRef[_T], *, timeout: float | None = None) -> _T: ...
@overload
def get(object_refs: Sequence[ObjectRef[_T]], *, timeout: float | None = None) -> list[_T]: ...
def put(value: _T) -> ObjectRef[_T]: ...
def wait(
    ray_waitables: list[ObjectRef[_T]],
    *,
    num_returns: int = 1,
    timeout: float | None = None,
    fetch_local: bool = True,
) -> tuple[list[ObjectRef[_T]], list[ObjectRef[_T]]]: ...
def kill(actor: actor.ActorHandle[_A], *, no_restart: bool = True) -> None: ...
def cancel(ray_waitable: ObjectRef[object], *, force: bool = False, recursive: bool = True) -> None: ...
