"""One training, from its first item to its last checkpoint, whatever ends it.

Apart from `train`, which reads the command line and says how it went. The order in here is what makes an
interrupted run whole: the signal leaves a note, the update under way ends, the learner is asked for its state, the
checkpoint is on the disk, and only then do the actors go.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeAlias

from pipeflow.cli.dashboard import DashboardSink
from pipeflow.cli.errors import one_line
from pipeflow.cli.goal import Goal
from pipeflow.cli.graph import drawing
from pipeflow.cli.interrupts import Interrupts
from pipeflow.cli.learners import Learners
from pipeflow.cli.profiling import Phase, Profile
from pipeflow.cli.progress import display, say
from pipeflow.cli.recording import (
    CHECKPOINTS,
    CONFIG,
    PICTURE,
    TEXT,
    VIDEOS,
    make_run_folder,
    write_json,
)
from pipeflow.cli.resumption import Resumption
from pipeflow.cli.tracking import Service, run_ids_of
from pipeflow.cli.versions import versions
from pipeflow.dsl import CheckpointError, RunError, Stream
from pipeflow.lowering.checkpoint import Checkpoint
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.run import EngineName, Run
from pipeflow.rl.batches import Report
from pipeflow.state.folders import extend_series
from pipeflow.state.values import Json
from pipeflow.tracking.csv_table import CSV
from pipeflow.tracking.records import Record, Recorder, Sink, TrackedRun, Tracker
from pipeflow.tracking.tensorboard import TensorBoard
from pipeflow.tracking.video import Camera


@dataclass(frozen=True)
class TrainOptions:
    """How long is trained, where it runs, and what is kept of it."""

    steps: int = 1_000_000
    """Environment steps to train for, rounded up to whole updates."""
    until_return: float | None = None
    """Stop as soon as 20 greedy episodes in environments of their own have at least this mean return."""
    engine: EngineName = "inline"
    """Where the plan runs: in this process, or on Ray actors."""
    address: str | None = None
    """The Ray cluster to join, host:port or ray://host:port; None starts Ray on this machine."""
    metrics: bool = False
    """Publish every node's figures as Ray's own metrics, which Ray exports to Prometheus."""
    logdir: Path | None = None
    """Folder of the run, which must not exist or be empty; None makes one in runs/."""
    resume: Path | None = None
    """Folder of a run to go on with from its newest checkpoint, in the same folder, with its flags unless they are
    given again; or a checkpoint, with a --logdir for the run that branches off there."""
    checkpoint_minutes: float = 5.0
    """Minutes between checkpoints; there is one at the end as well, and when a signal stops the run."""
    keep_checkpoints: int = 3
    """How many of the newest checkpoints are kept."""
    dashboard: bool = False
    """Show the run on a web page of this machine while it is trained. Every run is kept for pipeflow show."""
    track: tuple[Service, ...] = ()
    """Services that are told of every update as well: wandb, mlflow, or both."""
    track_project: str | None = None
    """W&B's project and MLflow's experiment; None takes what their own environment variables say."""
    track_name: str | None = None
    """What these call the run; None takes WANDB_NAME, or else the name of its folder."""
    video: bool = False
    """Film a greedy episode at every evaluation and at the end, into the run's folder."""
    quiet: bool = False
    """Print only the result."""
    profile: bool = False
    """At the end show where the time went, and write it to profile.txt in the run's folder."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"--steps must be at least 1, got {self.steps}")
        if not self.checkpoint_minutes > 0:
            raise ValueError(f"--checkpoint-minutes must be more than 0, got {self.checkpoint_minutes}")
        if self.keep_checkpoints < 1:
            raise ValueError(f"--keep-checkpoints must be at least 1, got {self.keep_checkpoints}")
        if self.address is not None and self.engine != "ray":
            raise ValueError(
                f"--address is of the Ray engine, and the engine is {self.engine}; add --engine ray"
            )
        if self.metrics and self.engine != "ray":
            raise ValueError(
                f"--metrics is of the Ray engine, and the engine is {self.engine}; add --engine ray"
            )


How: TypeAlias = Literal["solved", "unsolved", "finished", "interrupted"]


@dataclass(frozen=True)
class Ending:
    """How a run ended. last: its last record, None if there was no report. profile: where its time went."""

    how: How
    last: Record | None
    profile: str | None = None


@dataclass
class Training:
    """One run.

    tracked: the ids of the run at the services. last, saved_at: the latest record, and when the latest checkpoint
    was written.
    """

    plan: Stream[Report]
    options: TrainOptions
    folder: Path
    algorithm: str
    environment: str
    config: dict[str, Json]
    interrupts: Interrupts
    goal: Goal | None
    resumption: Resumption | None = None
    trackers: Mapping[Service, Tracker] = field(default_factory=dict[Service, Tracker])
    camera: Camera | None = None
    profile: Profile | None = None
    recorder: Recorder = field(default_factory=Recorder)
    tracked: dict[str, str] = field(default_factory=dict[str, str])
    last: Record | None = None
    saved_at: float = field(default_factory=time.monotonic)

    def run(self) -> Ending:
        """Train to the end, whichever comes first."""
        learners = Learners(self.plan)
        how: How = "interrupted"
        saved = False
        run: Run[Report] | None = None
        resume = None if self.resumption is None else self._go_on(self.resumption)
        try:
            with self.plan.run(_engine(self.options), resume=resume) as run:
                # Starts the actors, so that what cannot start leaves no folder behind.
                learners.weights(run)
                # Ray has taken them over when it started.
                self.interrupts.install()
                with ExitStack() as stack:
                    # What a service refuses leaves no folder behind either.
                    sinks = self._tracked(stack)
                    self._describe()
                    sinks = [*sinks, *self._sinks(run, stack)]
                    if self.profile is not None:
                        self.profile.started(run.stats())
                    how = self._loop(run, learners, sinks)
                    with self._during("recording", run):
                        stack.close()
                self._save(run)
                saved = True
        except (KeyboardInterrupt, RunError) as error:
            if self.interrupts.received is None:
                raise
            if not saved:
                # A second signal; or Ray's processes were sent the first one too, and heeded it at once.
                how = "interrupted"
                say(f"stopped without a last checkpoint: {one_line(error)}")
        profile = None if self.profile is None or run is None else self.profile.text(run.stats())
        return Ending(how, self.last, profile)

    def _go_on(self, resumption: Resumption) -> Checkpoint:
        """Let the curves and the goal stand where they stood."""
        try:
            self.recorder.load_state(resumption.checkpoint.about["curves"], resumption.steps)
            if self.goal is not None and resumption.checkpoint.about["goal"] is not None:
                self.goal.load_state(resumption.checkpoint.about["goal"])
        except (ValueError, TypeError, LookupError) as error:
            raise CheckpointError(
                f"{resumption.path} does not say where its curves stood: {error!r}"
            ) from error
        return resumption.checkpoint

    def _describe(self) -> None:
        """Make the folder, and write down what is about to be run."""
        make_run_folder(self.folder)
        write_json(self.folder / CONFIG, self._about())
        (self.folder / PICTURE).write_text(self.plan.to_mermaid(), encoding="utf-8")
        (self.folder / TEXT).write_text(drawing(self.plan) + "\n", encoding="utf-8")

    def _about(self) -> dict[str, Json]:
        options = self.options
        resume = None if options.resume is None else str(options.resume)
        run: dict[str, Json] = {**asdict(options), "logdir": str(self.folder), "resume": resume}
        run["track"] = list(options.track)
        return {"algorithm": self.algorithm, "config": self.config, "run": run, "versions": versions()}

    def _tracked(self, stack: ExitStack) -> list[Sink]:
        """The services that are told of every update; the stack closes them."""
        run_ids = {} if self.resumption is None else run_ids_of(self.resumption, self.folder)
        sinks: list[Sink] = []
        for service, tracker in self.trackers.items():
            sink = self._opened(stack, tracker, run_ids.get(service))
            if isinstance(sink, TrackedRun):
                self.tracked[service] = sink.run_id
            sinks.append(sink)
        return sinks

    def _sinks(self, run: Run[Report], stack: ExitStack) -> list[Sink]:
        """The files, the page and the display that are told of every update; the stack closes them."""
        shown = display(self.options.steps, self.options.quiet)
        stack.callback(shown.close)
        files = [self._opened(stack, CSV(self.folder)), self._opened(stack, TensorBoard(self.folder))]
        return [self._page(run, stack), *files, shown]

    def _page(self, run: Run[Report], stack: ExitStack) -> Sink:
        title = f"{self.algorithm} on {self.environment}"
        port = 0 if self.options.dashboard else None
        page = DashboardSink(self.plan, run, self.folder, title, self._steps_before, port)
        # The first signal leaves a note and raises nothing.
        _push(
            stack,
            lambda error: page.close(error if self.interrupts.received is None else KeyboardInterrupt()),
        )
        if page.url is not None:
            say(f"page {page.url}")
        return page

    def _opened(self, stack: ExitStack, tracker: Tracker, run_id: str | None = None) -> Sink:
        sink = tracker.open(self._steps_before, run_id)
        _push(stack, sink.close)
        return sink

    @property
    def _steps_before(self) -> int:
        """Of the run that is gone on with, up to its checkpoint."""
        return 0 if self.resumption is None else self.resumption.steps

    def _loop(self, run: Run[Report], learners: Learners, sinks: Sequence[Sink]) -> How:
        while self.interrupts.received is None:
            report = next(run, None)
            if report is None:
                return "finished" if self.goal is None else "unsolved"
            finished = report.lifetime_steps >= self.options.steps
            with self._during("recording", run):
                record = self.recorder.take(report)
            if self.goal is not None and self.goal.is_due(record, finished):
                record = self._evaluated(record, self.goal, run, learners)
            self.last = record
            filmed = record.evaluation is not None or (finished and self.interrupts.received is None)
            if filmed and self.camera is not None:
                with self._during("evaluation", run):
                    self._film(self.camera, run, learners)
            with self._during("recording", run):
                for sink in sinks:
                    sink.record(record)
            if self.goal is not None and self.goal.reached:
                return "solved"
            if finished and self.interrupts.received is None:
                return "finished" if self.goal is None else "unsolved"
            if time.monotonic() - self.saved_at > 60 * self.options.checkpoint_minutes:
                self._save(run)
        return "interrupted"

    def _evaluated(self, record: Record, goal: Goal, run: Run[Report], learners: Learners) -> Record:
        """The record with an evaluation; without it where a signal cut it short."""
        with self._during("evaluation", run):
            weights = learners.weights(run)
            try:
                with self.interrupts.at_once():
                    return replace(record, evaluation=goal.evaluate(weights, record.report.lifetime_steps))
            except KeyboardInterrupt:
                return record

    def _during(self, phase: Phase, run: Run[Report]) -> AbstractContextManager[None]:
        """Count the time inside, where that is wanted."""
        return nullcontext() if self.profile is None else self.profile.during(phase, run.stats)

    def _film(self, camera: Camera, run: Run[Report], learners: Learners) -> None:
        """A video with the weights of the latest record; none where a signal cuts it short."""
        assert self.last is not None
        weights, steps = learners.weights(run), self.last.report.lifetime_steps
        with suppress(KeyboardInterrupt), self.interrupts.at_once():
            camera.film(weights, self.folder / VIDEOS, f"{steps:012}", steps)

    def _save(self, run: Run[Report]) -> None:
        with self._during("checkpoints", run):
            self._write_checkpoint(run)

    def _write_checkpoint(self, run: Run[Report]) -> None:
        steps = self._steps_before if self.last is None else self.last.report.lifetime_steps
        goal = None if self.goal is None else self.goal.state()
        curves, tracked = self.recorder.state(), {**self.tracked}
        checkpoint = run.checkpoint(**self._about(), steps=steps, curves=curves, goal=goal, tracked=tracked)
        with self.interrupts.held():
            series, keep = self.folder / CHECKPOINTS, self.options.keep_checkpoints
            extend_series(series, steps, checkpoint.about, checkpoint.state, keep)
        self.saved_at = time.monotonic()


def _push(stack: ExitStack, close: Callable[[BaseException | None], None]) -> None:
    """Let a stack close something with the error that it is left with."""

    def left(
        kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        close(error)

    stack.push(left)


def _engine(options: TrainOptions) -> EngineName | Engine:
    if options.engine == "inline":
        return "inline"
    from pipeflow.lowering.engines.ray import Ray

    return Ray(options.address, metrics=options.metrics)
