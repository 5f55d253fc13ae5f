"""The process's connection to Ray: joined, started and ended, and what travels to the workers before any actor.

Apart from the engine, of which there is one a run: a process has one connection, which several runs may share.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import ray

# Ray's switch for clusters of several nodes, which it reads whenever it starts a node; the public way to it is an
# environment variable that counts only before Ray's import.
from ray._private import ray_constants
from ray.runtime_env import RuntimeEnv

from pipeflow.dsl.errors import EngineError
from pipeflow.lowering.engines.greeting import check_greeting

RuntimeEnvironment = Mapping[str, object]

# Names what `breakpoint` calls.
_BREAKPOINT = "PYTHONBREAKPOINT"


@dataclass
class Connection:
    """The connection: to which address, how many runs use it, and whether it ends with the last of them."""

    address: str | None = None
    users: int = 0
    ours: bool = False

    @property
    def is_own_ray(self) -> bool:
        """Whether it is to a Ray that was started here, which does not grow."""
        return self.ours and self.address is None

    def open(self, address: str | None, num_cpus: int | None, runtime_env: RuntimeEnvironment | None) -> None:
        """Use the connection that the process has, else make one.

        Raises:
            EngineError: there is another connection, or the address cannot be reached.
        """
        if ray.is_initialized():
            self._join(address, runtime_env)
            return
        try:
            with _own_breakpoints():
                if address is None:
                    _start(num_cpus, runtime_env)
                else:
                    check_greeting(address)
                    ray.init(
                        address=address,
                        runtime_env=runtime_env,
                        log_to_driver=False,
                        logging_level=logging.ERROR,
                    )
        except (ConnectionError, OSError, RuntimeError, ValueError, AssertionError) as error:
            where = address or "this machine"
            message = (
                f"Ray at {where} cannot be reached: {_reasons(error)}; check the address, or leave it out"
            )
            raise EngineError(message) from error
        self.address, self.users, self.ours = address, 1, True

    def close(self) -> None:
        """End it, if it was made for a run and no other run uses it."""
        self.users -= 1
        if self.ours and self.users <= 0:
            self.ours = False
            ray.shutdown()

    def _join(self, address: str | None, runtime_env: RuntimeEnvironment | None) -> None:
        connected = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", "local", connected, self.address):
            message = (
                f"this process is connected to Ray at {connected} already and cannot use the one at "
                f"{address} as well; call ray.shutdown() before, or leave the address out"
            )
            raise EngineError(message)
        if runtime_env is not None:
            message = (
                f"this process is connected to Ray at {connected} already, whose workers have what they have; "
                "give the runtime_env to that ray.init, or call ray.shutdown() before"
            )
            raise EngineError(message)
        self.users += 1


def checked(runtime_env: RuntimeEnvironment) -> RuntimeEnvironment:
    """A runtime environment as Ray takes it.

    Raises:
        ValueError: it has fields that Ray does not know, or values that these cannot have.
    """
    unknown = sorted(set(runtime_env) - RuntimeEnv.known_fields)
    if unknown:
        known = ", ".join(sorted(field for field in RuntimeEnv.known_fields if not field.startswith("_")))
        message = f"Ray(runtime_env=...) has no field {', '.join(unknown)}; its fields are {known}"
        raise ValueError(message)
    try:
        RuntimeEnv(**runtime_env)
    except (TypeError, ValueError) as error:
        message = f"Ray(runtime_env=...) is wrong: {first_line(error)}"
        raise ValueError(message) from error
    return dict(runtime_env)


def first_line(error: BaseException) -> str:
    """What went wrong, in a line."""
    if isinstance(error, ray.exceptions.RayTaskError):  # whose own text begins with Ray's internals
        error = error.cause
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _reasons(error: Exception) -> str:
    """What Ray could not do, and why, where it tells: in the last line of the cause, below a traceback."""
    why = str(error.__cause__ or "").strip().splitlines()[-1:]
    return "; ".join([first_line(error), *why])


def _start(num_cpus: int | None, runtime_env: RuntimeEnvironment | None) -> None:
    with _on_loopback():
        ray.init(
            address="local",
            num_cpus=num_cpus,
            runtime_env=runtime_env,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )


@contextmanager
def _own_breakpoints() -> Generator[None]:
    """Leave `breakpoint` in this process as it was; Ray would let it pass unheard, also after the run."""
    before = os.environ.get(_BREAKPOINT)
    try:
        yield
    finally:
        os.environ.pop(_BREAKPOINT, None)
        if before is not None:
            os.environ[_BREAKPOINT] = before


@contextmanager
def _on_loopback() -> Generator[None]:
    """Let a Ray that is started within listen on 127.0.0.1, as on macOS; on Linux it would on every interface.

    Who reaches its ports runs code as this user, and nobody else has business with the Ray of a run.
    """
    clusters = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = clusters
