"""The Ray engine: addresses, connections, resources, and actors that die."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import http.server
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import ray
from typing_extensions import override

from pipeflow.dsl import (
    ActorDiedError,
    EngineError,
    actors,
    from_items,
    from_shards,
    gather_sync,
)
from pipeflow.lowering.engine import Call
from pipeflow.lowering.engines.ray import Ray
from pipeflow.lowering.engines.ray_calls import RemoteActor, RemoteCall, RemoteHandle, encoded
from pipeflow.lowering.program import Reply, Status
from tests.lowering.actors import Counter, Failing

pytestmark = pytest.mark.ray


@pytest.fixture
def closed_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture
def web_port() -> Iterator[int]:
    """A port where something else than Ray listens, as its dashboard does on 8265."""

    class Silent(http.server.BaseHTTPRequestHandler):
        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nobody_listens_is_an_error_within_seconds(
    scheme: str, closed_port: int, without_ray: None
) -> None:
    started = time.monotonic()
    address = f"{scheme}127.0.0.1:{closed_port}"
    with pytest.raises(EngineError) as caught:
        list(from_items([1]).run(Ray(address)))
    assert time.monotonic() - started < 5
    assert str(caught.value).startswith(f"Ray at {address} cannot be reached: ")
    assert str(caught.value).endswith("; check the address, or leave it out")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_of_something_else_is_an_error_within_seconds(
    scheme: str, web_port: int, without_ray: None
) -> None:
    """Ray itself would ask it again for minutes."""
    started = time.monotonic()
    with pytest.raises(EngineError, match="what listens there is not Ray"):
        list(from_items([1]).run(Ray(f"{scheme}127.0.0.1:{web_port}")))
    assert time.monotonic() - started < 10


@pytest.fixture
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has no Ray yet, though this one may have."""
    monkeypatch.setattr("ray.is_initialized", lambda: False)


def test_a_process_has_one_ray(ray_runtime: None) -> None:
    with pytest.raises(
        EngineError, match=r"connected to Ray at \S+ already and cannot use the one at 10.0.0.1:6379"
    ):
        list(from_items([1]).run(Ray("10.0.0.1:6379")))
    assert list(from_items([1]).run(Ray("auto"))) == [1]


def test_a_ray_that_was_there_before_a_run_is_there_after_it(ray_runtime: None) -> None:
    assert list((from_shards([[1]]) | gather_sync()).run("ray")) == [1]
    assert ray.is_initialized()


def test_an_actor_that_dies_is_named_within_seconds(ray_runtime: None) -> None:
    both = actors(Failing, 1).named("frail").produce(Failing.dies) & actors(Counter, 1).produce(
        Counter.next_number
    )
    run = (both | gather_sync()).run("ray")
    started = time.monotonic()
    with pytest.raises(ActorDiedError, match=r"^frail\[0\] died while the run needed it"):
        next(run)
    assert time.monotonic() - started < 15
    assert list(run) == []


def test_of_calls_that_come_back_together_only_those_of_dead_actors_are_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Law 19."""
    died = ray.exceptions.ActorDiedError()
    answers: dict[str, object] = {"a": died, "b": [*encoded(Reply(Status.EMPTY)), None], "c": died}

    def get(refs: object) -> object:
        if isinstance(refs, list):
            raise died
        answer = answers[str(refs)]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(ray, "get", get)
    monkeypatch.setattr(ray, "wait", lambda refs, **_: (refs, []))
    calls: list[Call] = [
        RemoteCall(RemoteActor(f"actor {name}", None), RemoteHandle("here"), name)  # type: ignore[arg-type]
        for name in answers
    ]
    assert Ray().wait(calls, None) == calls
    replies = [call.reply for call in calls]
    assert [reply.status for reply in replies if reply is not None] == [
        Status.DIED,
        Status.EMPTY,
        Status.DIED,
    ]


@pytest.mark.parametrize(("on_their_way", "reported"), [(["a"], ["a", "b"]), ([], ["b"])])
def test_a_call_is_reported_with_those_that_its_actor_ran_before_and_not_with_what_it_did_not(
    on_their_way: list[str], reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 9. Answers may be seen in another order than that in which the actor gave them."""
    asked: list[list[str]] = []

    def wait(refs: list[str], **_: object) -> tuple[list[str], list[str]]:
        asked.append(list(refs))
        return (["b"], []) if len(asked) == 1 else (on_their_way, [])

    monkeypatch.setattr(ray, "wait", wait)
    monkeypatch.setattr(ray, "get", lambda refs: [[*encoded(Reply(Status.EMPTY)), None] for _ in refs])
    actor, other = RemoteActor("actor", None), RemoteActor("other", None)
    calls = {
        name: RemoteCall(whose, RemoteHandle("here"), name)  # type: ignore[arg-type]
        for name, whose in {"a": actor, "elsewhere": other, "b": actor, "later": actor}.items()
    }
    assert Ray().wait(list(calls.values()), None) == [calls[name] for name in reported]
    assert asked == [["a", "elsewhere", "b", "later"], ["a"]]


def test_a_call_is_reported_with_the_one_that_made_its_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 9. Weights may be seen to be applied before they are seen to be lent."""
    asked: list[list[str]] = []

    def wait(refs: list[str], **_: object) -> tuple[list[str], list[str]]:
        asked.append(list(refs))
        return (["set"] if len(asked) == 1 else refs), []

    monkeypatch.setattr(ray, "wait", wait)
    monkeypatch.setattr(ray, "get", lambda refs: [[*encoded(Reply(Status.EMPTY)), None] for _ in refs])
    learner, worker = RemoteActor("learner", None), RemoteActor("worker", None)
    update, lend, sample, put = (
        RemoteCall(whose, RemoteHandle("here"), name)  # type: ignore[arg-type]
        for name, whose in {"update": learner, "lend": learner, "sample": worker, "set": worker}.items()
    )
    put.given = (lend.answer,)
    assert Ray().wait([update, lend, sample, put], None) == [update, lend, sample, put]
    assert asked[1] == ["update", "lend", "sample"]


def test_actors_get_what_they_reserve_and_the_index_in_their_group(ray_runtime: None) -> None:
    """Here a part of a core each; the default reserves nothing while it runs."""
    workers = actors(Counter, 2, limit=1).resources(cpus=0.25)
    assert list((workers.produce(Counter.next_tagged) | gather_sync()).run("ray")) == [(0, 1), (1, 1)]


OWN_RAY = """
from pipeflow.dsl import actors, from_items, gather_sync
from tests.lowering.actors import Counter
import ray

plan = actors(Counter, 1).produce(Counter.next_number) | gather_sync()
first, second = plan.run("ray"), plan.run("ray")
assert [next(first), next(second)] == [1, 1]
first.close()
assert next(second) == 2, "the first run has taken the Ray of the second away"
second.close()
assert not ray.is_initialized(), "a run has left its Ray behind"
"""


@pytest.mark.slow
def test_runs_that_overlap_share_the_ray_that_the_first_of_them_started() -> None:
    """Law 21: it ends with the last of them."""
    done = subprocess.run(  # a process of its own, since this one has a Ray that no run may end
        [sys.executable, "-c", OWN_RAY], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
