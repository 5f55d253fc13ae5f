"""`Run`: one execution of a plan, as an iterator and a context manager."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Literal, Self, TypeVar

from pipeflow.dsl.actors import Actors
from pipeflow.dsl.checks import check_complete, check_linear, check_policies
from pipeflow.dsl.errors import CheckpointError, EngineError, StageError
from pipeflow.dsl.nodes import Node
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.executor import Executor
from pipeflow.lowering.recording import Recorder
from pipeflow.lowering.stats import RunStats
from pipeflow.lowering.stepping import Step, step_between
from pipeflow.semantics.events import Raised, Trace

if TYPE_CHECKING:
    from pathlib import Path

    from pipeflow.dashboard.live import LivePage
    from pipeflow.lowering.checkpoint import Checkpoint, Place
    from pipeflow.state.values import Json

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
W = TypeVar("W")

EngineName = Literal["inline", "ray"]


class Run(Generic[T_co]):
    """The items of a plan as they are made. Actors start with the first item and end with the run (law 21).

    An exception, leaving the ``with`` block, the end of the items outside such a block, `close` and the garbage
    collector all close it; nothing of a run outlives it.
    """

    def __init__(
        self,
        root: Node,
        engine: EngineName | Engine = "inline",
        *,
        record: bool = False,
        resume: Checkpoint | Place | None = None,
    ) -> None:
        check_linear(root)
        check_complete(root)
        check_policies(root)
        if resume is None:
            self._executor = Executor(root, engine_of(engine), Recorder(Trace(root)) if record else None)
        else:
            self._executor = _resumed(root, engine_of(engine), resume, record)
        recorder = self._executor.recorder
        self._trace = None if recorder is None else recorder.trace
        self._items: Iterator[object] = self._executor.items()
        self._page: LivePage | None = None
        # Within a ``with`` block the actors outlive the last item, so that they can still be asked.
        self._managed = False
        self._finalizer = weakref.finalize(self, self._executor.stop)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T_co:
        if not self._finalizer.alive:
            raise StopIteration
        try:
            item: T_co = next(self._items)  # type: ignore[assignment]  # the plan's type was checked on `|`
        except StopIteration:
            if not self._managed:
                self.close()
            raise
        except BaseException as error:
            # An error and Ctrl-C alike: the actors go before anybody hears of it.
            self._close_after(error)
            raise
        if self._page is not None:
            self._page.record(item)
        return item

    def __enter__(self) -> Self:
        self._managed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._close_after(error)

    def ask(self, actors: Actors[W], method: Callable[[W], T], /) -> list[T]:
        """What a method returns on every actor of a group, in order; between two items of the plan.

        Actors that were given up (``on_error("drop_shard")``) are left out.

        For instance the learner's state for a checkpoint: ``run.ask(learner, PPOLearner.state)``.

        Raises:
            LookupError: the plan does not use these actors.
            RuntimeError: the run is closed.
            StageError: the method raised.
        """
        if not self._finalizer.alive:
            message = "the run is closed and its actors are gone; ask before closing it"
            raise RuntimeError(message)
        try:
            answers = self._executor.ask(actors.group, method)
        except LookupError:
            raise
        except BaseException as error:
            self._close_after(error)
            raise
        return answers  # type: ignore[return-value]  # the method's type says so

    def checkpoint(self, path: Place | None = None, /, **about: Json) -> Checkpoint:
        """The state of the run between two items, for ``plan.run(resume=...)`` to go on from (law 22).

        The states of all actors (by ``state()`` and ``load_state(state)`` where their class has them, else their
        attributes), everything that waits in the plan, and every counter. In one process nothing moves for it; on
        Ray, what is under way is finished first, and its items are kept.

        Args:
            path: a folder to write it to, which must not exist; it appears whole or not at all.
            about: whatever else is to be known about it, as JSON: `Checkpoint.about`.

        Raises:
            CheckpointError: something of it cannot be saved, such as a generator that the plan reads.
            FileExistsError: there is something at `path`.
            OSError: it cannot be written.
            RunError: what was under way failed.
            RuntimeError: the run is closed.
        """
        # Imported when asked for: a run without checkpoints does not wait for numpy's import.
        from pipeflow.lowering.saving import checkpoint_of

        if not self._finalizer.alive:
            message = "the run is closed and its state is gone; take the checkpoint before closing it"
            raise RuntimeError(message)
        try:
            checkpoint = checkpoint_of(self._executor, about)
        except CheckpointError:  # the run itself can go on
            raise
        except BaseException as error:
            self._close_after(error)
            raise
        if path is not None:
            checkpoint.save(path)
        return checkpoint

    def step(self) -> Step[T_co] | None:
        """Advance by one item and say which nodes did what for it; None at the end, where `next` raises.

        So ``while step := run.step(): print(step)`` ends by itself, and in a generator no `StopIteration` goes
        astray. What actors do ahead of what is asked for is in the step in which the driver heard of it. What the
        plan does after its last item, such as waiting for messages, is in no step; `stats` has it.

        Raises:
            RunError: as `next` does.
        """
        before = self._executor.stats()
        try:
            item = next(self)
        except StopIteration:
            return None
        return step_between(before, self._executor.stats(), item)

    def stats(self) -> RunStats:
        """For every node: items in and out, busy and waiting seconds, queue length; and where the time goes.

        ``print(run.stats())`` is a table that names the bottleneck, ``run.stats().bottleneck``, and what to try.
        """
        return self._executor.stats()

    def serve(self, port: int = 0, *, title: str = "pipeflow", folder: Path | None = None) -> str:
        """Show the run on a web page of this machine until it is closed, and return the page's address.

        The page shows the plan with the figures of every stage, the curves of the numbers in the items (a report's
        metrics, the values of a mapping, a number itself), and what failed.

        Args:
            port: to listen on; 0 takes a free one.
            title: what the page calls the run.
            folder: one that exists, where the page is kept for ``pipeflow show``; None keeps it in memory alone.

        Raises:
            OSError: the port cannot be used, or the folder not be written to.
            RuntimeError: the run is closed, or has its page.
        """
        # Imported when asked for: few runs have a page.
        from pipeflow.dashboard.live import LivePage

        if not self._finalizer.alive:
            message = "the run is closed; serve its page before closing it"
            raise RuntimeError(message)
        if self._page is not None:
            message = f"the run has its page already, {self._page.url}; a run is served once"
            raise RuntimeError(message)
        self._page = LivePage(self._executor.nodes[-1], self._executor.stats, port, title, folder)
        weakref.finalize(self, self._page.close)
        url = self._page.url
        assert url is not None  # a port was given
        return url

    def close(self) -> None:
        """End all actors of the run, and the engine where the run started it. Twice does no harm.

        Raises:
            StageError: an actor's ``close`` raised; they are all gone none the less.
        """
        try:
            if self._page is not None:
                self._page.close()
        finally:
            self._finalizer()
            self._items = iter(())  # what waits in the loop goes with it

    @property
    def trace(self) -> Trace:
        """The events so far, of a run with ``record=True``.

        Raises:
            RuntimeError: the run records nothing.
        """
        if self._trace is None:
            message = "the run records no trace; run the plan with record=True"
            raise RuntimeError(message)
        return self._trace

    def _close_after(self, error: BaseException) -> None:
        """Close; the actors go before anybody hears of the error, and it is not hidden by another."""
        if self._trace is not None:
            self._trace.events.append(Raised(type(error).__name__, str(error)))
        self._executor.error = error
        if self._page is not None:
            self._page.close(error)
        try:
            self.close()
        except StageError as second:
            error.add_note(f"closing the run failed as well: {second}")


def _resumed(root: Node, engine: Engine, resume: Checkpoint | Place, record: bool) -> Executor:
    from pipeflow.lowering.checkpoint import Checkpoint as Taken
    from pipeflow.lowering.resuming import recorder_of, resumed

    checkpoint = resume if isinstance(resume, Taken) else Taken.load(resume)
    executor = resumed(root, engine, checkpoint)
    if record:
        recorder = checkpoint.recorder
        executor.recorder = Recorder(Trace(root)) if recorder is None else recorder_of(executor, recorder)
    return executor


def engine_of(engine: EngineName | Engine) -> Engine:
    """The engine of a name, or the engine itself.

    Raises:
        EngineError: there is no engine of that name.
    """
    # Imported when asked for: a run in one process does not wait for Ray's import.
    if engine == "inline":
        from pipeflow.lowering.engines.inline import InlineEngine

        return InlineEngine()
    if engine == "ray":
        from pipeflow.lowering.engines.ray import Ray

        return Ray()
    if isinstance(engine, str):
        message = f"there is no engine {engine!r}; use 'inline' or 'ray', or an engine object"
        raise EngineError(message)
    return engine
