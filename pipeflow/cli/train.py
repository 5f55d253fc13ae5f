"""`pipeflow train`: run a plan until its steps are done, its goal is reached, or somebody stops it.

Apart from what is recorded and shown of a run, which are sinks, and from the signals that may stop it. The
order in here is what makes an interrupted run whole: the signal leaves a note, the update under way ends, the
learner is asked for its state, the checkpoint is on the disk, and only then do the actors go.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from pipeflow.algorithms.catalogue import Configuration, entry_of
from pipeflow.cli import configuration
from pipeflow.cli.dashboard import DashboardSink
from pipeflow.cli.errors import UsageError, one_line
from pipeflow.cli.flags import parse_with_configuration
from pipeflow.cli.goal import EPISODES, Goal
from pipeflow.cli.interrupts import Interrupts
from pipeflow.cli.learners import Learners
from pipeflow.cli.plans import build_plan
from pipeflow.cli.progress import display, say
from pipeflow.cli.recording import (
    CHECKPOINTS,
    CONFIG,
    PICTURE,
    PROGRESS,
    RECENT_EPISODES,
    TEXT,
    CsvSink,
    Record,
    Recorder,
    Sink,
    TensorBoardSink,
    make_run_folder,
    run_folder,
    write_json,
)
from pipeflow.cli.resumption import Resumption, check_newest, resumption_of
from pipeflow.cli.versions import versions
from pipeflow.dsl import CheckpointError, RunError, Stream
from pipeflow.lowering.checkpoint import Checkpoint
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.run import EngineName, Run
from pipeflow.rl.batches import Report
from pipeflow.state.folders import checkpoints_in, extend_series
from pipeflow.state.values import Json

C = TypeVar("C", bound=Configuration)


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
    quiet: bool = False
    """Print only the result."""

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


def train(name: str | None, words: Sequence[str]) -> int:
    """Train, record, and say how it ended. name: of the algorithm; None takes that of the run to go on with.

    Returns 0, or 1 if the goal was asked for and not reached, or 128 and the number of a signal. Raises
    UsageError for words that do not fit, CheckpointError for what cannot be gone on with; what ends the run is
    raised as it is.
    """
    resumption = resumption_of(words)
    if resumption is not None:
        if name not in (None, resumption.algorithm):
            raise UsageError(
                f"{resumption.path} is of {resumption.algorithm}, not of {name}; leave {name} out"
            )
        name = resumption.algorithm
    assert name is not None
    entry = entry_of(name)
    algorithm = entry.load()
    program, description = f"pipeflow train {name}", f"Train with {entry.summary}."
    options, config = parse_with_configuration(
        TrainOptions,
        algorithm.configuration,
        words,
        program,
        description,
        None if resumption is None else _defaults(resumption, algorithm.configuration),
    )
    if resumption is not None and resumption.steps >= options.steps:
        raise UsageError(
            f"{resumption.path} has {resumption.steps:,} steps, and --steps is {options.steps:,}; give more"
        )
    plan = build_plan(algorithm, config)
    goal = None
    if options.until_return is not None:
        goal = Goal(options.until_return, partial(algorithm.play, config), config.seed)
    folder = _folder(options, resumption, name, config.env.name)
    if not options.quiet:
        say(f"training {name} on {config.env.name}, engine {options.engine}, folder {folder}")
        if resumption is not None:
            say(_resumed(resumption))
    with Interrupts() as interrupts:
        training = _Training(
            plan,
            options,
            folder,
            name,
            config.env.name,
            configuration.to_json(config),
            interrupts,
            goal,
            resumption,
        )
        ending = training.run()
        say(_result(ending, goal, folder))
    if ending.how == "interrupted":
        return interrupts.exit_code
    return 1 if ending.how == "unsolved" else 0


_How: TypeAlias = Literal["solved", "unsolved", "finished", "interrupted"]


@dataclass(frozen=True)
class _Ending:
    """How a run ended. last: its last record, None if there was no report."""

    how: _How
    last: Record | None


@dataclass
class _Training:
    """One run. last, saved_at: the latest record, and when the latest checkpoint was written."""

    plan: Stream[Report]
    options: TrainOptions
    folder: Path
    algorithm: str
    environment: str
    config: dict[str, Json]
    interrupts: Interrupts
    goal: Goal | None
    resumption: Resumption | None = None
    recorder: Recorder = field(default_factory=Recorder)
    last: Record | None = None
    saved_at: float = field(default_factory=time.monotonic)

    def run(self) -> _Ending:
        """Train to the end, whichever comes first."""
        learners = Learners(self.plan)
        how: _How = "interrupted"
        saved = False
        resume = None if self.resumption is None else self._go_on(self.resumption)
        try:
            with self.plan.run(_engine(self.options), resume=resume) as run:
                # Starts the actors, so that what cannot start leaves no folder behind.
                learners.weights(run)
                # Ray has taken them over when it started.
                self.interrupts.install()
                self._describe()
                with ExitStack() as stack:
                    how = self._loop(run, learners, self._sinks(run, stack))
                self._save(run)
                saved = True
        except (KeyboardInterrupt, RunError) as error:
            if self.interrupts.received is None:
                raise
            if not saved:
                # A second signal; or Ray's processes were sent the first one too, and heeded it at once.
                how = "interrupted"
                say(f"stopped without a last checkpoint: {one_line(error)}")
        return _Ending(how, self.last)

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
        (self.folder / TEXT).write_text(self.plan.explain() + "\n", encoding="utf-8")

    def _about(self) -> dict[str, Json]:
        options = self.options
        resume = None if options.resume is None else str(options.resume)
        run: dict[str, Json] = {**asdict(options), "logdir": str(self.folder), "resume": resume}
        return {"algorithm": self.algorithm, "config": self.config, "run": run, "versions": versions()}

    def _sinks(self, run: Run[Report], stack: ExitStack) -> list[Sink]:
        """Whoever is told of every update; the stack closes them."""
        before = 0 if self.resumption is None else self.resumption.steps
        title = f"{self.algorithm} on {self.environment}"
        port = 0 if self.options.dashboard else None
        page = DashboardSink(self.plan, run, self.folder, title, before, port)

        def ended(kind: object, error: BaseException | None, trace: object) -> None:
            # The first signal leaves a note and raises nothing.
            page.close(error if self.interrupts.received is None else KeyboardInterrupt())

        stack.push(ended)
        if page.url is not None:
            say(f"page {page.url}")
        return [
            page,
            stack.enter_context(closing(CsvSink(self.folder / PROGRESS, before))),
            stack.enter_context(closing(TensorBoardSink(self.folder, before))),
            stack.enter_context(closing(display(self.options.steps, self.options.quiet))),
        ]

    def _loop(self, run: Run[Report], learners: Learners, sinks: Sequence[Sink]) -> _How:
        while self.interrupts.received is None:
            report = next(run, None)
            if report is None:
                return "finished" if self.goal is None else "unsolved"
            finished = report.lifetime_steps >= self.options.steps
            record = self.recorder.take(report)
            if self.goal is not None and self.goal.is_due(record, finished):
                record = self._evaluated(record, self.goal, run, learners)
            self.last = record
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
        weights = learners.weights(run)
        try:
            with self.interrupts.at_once():
                return replace(record, evaluation=goal.evaluate(weights, record.report.lifetime_steps))
        except KeyboardInterrupt:
            return record

    def _save(self, run: Run[Report]) -> None:
        before = 0 if self.resumption is None else self.resumption.steps
        steps = before if self.last is None else self.last.report.lifetime_steps
        goal = None if self.goal is None else self.goal.state()
        checkpoint = run.checkpoint(**self._about(), steps=steps, curves=self.recorder.state(), goal=goal)
        with self.interrupts.held():
            series, keep = self.folder / CHECKPOINTS, self.options.keep_checkpoints
            extend_series(series, steps, checkpoint.about, checkpoint.state, keep)
        self.saved_at = time.monotonic()


def _defaults(resumption: Resumption, kind: type[C]) -> tuple[TrainOptions, C]:
    """The flags of the run that is gone on with."""
    kept = ("steps", "until_return", "engine", "address", "checkpoint_minutes", "keep_checkpoints")
    try:
        options = configuration.from_json(
            TrainOptions, {name: resumption.run[name] for name in kept if name in resumption.run}
        )
        return options, configuration.from_json(kind, resumption.config)
    except ValueError as error:
        raise CheckpointError(f"{resumption.path} is of no use here: {error}") from error


def _folder(options: TrainOptions, resumption: Resumption | None, name: str, environment: str) -> Path:
    """The run's folder: that of the run that is gone on with, unless there is to be another."""
    if resumption is None or resumption.folder is None or options.logdir is not None:
        return run_folder(options.logdir, name, environment)
    check_newest(resumption)
    return resumption.folder


def _resumed(resumption: Resumption) -> str:
    line = f"resuming {resumption.path} after {resumption.steps:,} steps"
    restarted = resumption.restarted_environments
    if restarted:
        line += f"; the environments of {', '.join(restarted)} cannot be saved: their episodes start anew"
    return line


def _engine(options: TrainOptions) -> EngineName | Engine:
    if options.engine == "inline":
        return "inline"
    from pipeflow.lowering.engines.ray import Ray

    return Ray(options.address)


def _result(ending: _Ending, goal: Goal | None, folder: Path) -> str:
    """The lines that say how the run ended, and where everything is."""
    last = ending.last
    steps, seconds = (0, 0.0) if last is None else (last.report.lifetime_steps, last.seconds)
    after = f"after {steps:,} steps, {seconds:.1f} seconds"
    evaluation = None if goal is None else goal.evaluation
    if ending.how == "solved" and evaluation is not None:
        line = f"solved: mean return {evaluation.mean_return:.1f} over {EPISODES} greedy episodes {after}"
    elif ending.how == "unsolved" and goal is not None:
        found = "nothing was evaluated" if evaluation is None else f"mean return {evaluation.mean_return:.1f}"
        line = (
            f"not solved: {found} over {EPISODES} greedy episodes, below {goal.target:g}, {after}; "
            "give more --steps"
        )
    else:
        training = ""
        if last is not None and last.episodes:
            count = min(last.episodes, RECENT_EPISODES)
            training = f", mean return {last.recent_return:.1f} over the last {count} training episodes"
        line = f"{ending.how} {after}{training}"
    if not folder.exists():
        return line
    saved = checkpoints_in(folder / CHECKPOINTS)
    return "\n".join(
        [
            line,
            f"checkpoint  {saved[-1] if saved else 'none'}",
            f"curves      {folder / PROGRESS}; tensorboard --logdir {folder}",
            f"picture     {folder / PICTURE}",
            f"page        pipeflow show {folder}",
        ]
    )
