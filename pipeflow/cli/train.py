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
from typing import Literal, TypeAlias

from pipeflow.algorithms.catalogue import entry_of
from pipeflow.cli import configuration
from pipeflow.cli.errors import one_line
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
from pipeflow.cli.versions import versions
from pipeflow.dsl import RunError, Stream
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.run import EngineName, Run
from pipeflow.rl.batches import Report
from pipeflow.rl.checkpoints import Checkpoint, Json, checkpoints_in, extend_series


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
    checkpoint_minutes: float = 5.0
    """Minutes between checkpoints; there is one at the end as well."""
    quiet: bool = False
    """Print only the result."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"--steps must be at least 1, got {self.steps}")
        if not self.checkpoint_minutes > 0:
            raise ValueError(f"--checkpoint-minutes must be more than 0, got {self.checkpoint_minutes}")
        if self.address is not None and self.engine != "ray":
            raise ValueError(
                f"--address is of the Ray engine, and the engine is {self.engine}; add --engine ray"
            )


def train(name: str, words: Sequence[str]) -> int:
    """Train, record, and say how it ended.

    Returns 0, or 1 if the goal was asked for and not reached, or 128 and the number of a signal.
    Raises UsageError for words that do not fit; what ends the run is raised as it is.
    """
    entry = entry_of(name)
    algorithm = entry.load()
    options, config = parse_with_configuration(
        TrainOptions, algorithm.configuration, words, f"pipeflow train {name}", f"Train with {entry.summary}."
    )
    plan = build_plan(algorithm, config)
    goal = None
    if options.until_return is not None:
        goal = Goal(options.until_return, partial(algorithm.play, config), config.seed)
    folder = run_folder(options.logdir, name, config.env.name)
    if not options.quiet:
        say(f"training {name} on {config.env.name}, engine {options.engine}, folder {folder}")
    with Interrupts() as interrupts:
        training = _Training(plan, options, folder, name, configuration.to_json(config), interrupts, goal)
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
    config: dict[str, Json]
    interrupts: Interrupts
    goal: Goal | None
    last: Record | None = None
    saved_at: float = field(default_factory=time.monotonic)

    def run(self) -> _Ending:
        """Train to the end, whichever comes first."""
        learners = Learners(self.plan)
        how: _How = "interrupted"
        saved = False
        try:
            with self.plan.run(_engine(self.options)) as run:
                # Starts the actors, so that what cannot start leaves no folder behind.
                learners.weights(run)
                # Ray has taken them over when it started.
                self.interrupts.install()
                self._describe()
                with ExitStack() as stack:
                    how = self._loop(run, learners, self._sinks(stack))
                self._save(run, learners)
                saved = True
        except (KeyboardInterrupt, RunError) as error:
            if self.interrupts.received is None:
                raise
            if not saved:
                # A second signal; or Ray's processes were sent the first one too, and heeded it at once.
                how = "interrupted"
                say(f"stopped without a last checkpoint: {one_line(error)}")
        return _Ending(how, self.last)

    def _describe(self) -> None:
        """Make the folder, and write down what is about to be run."""
        make_run_folder(self.folder)
        run: dict[str, Json] = {**asdict(self.options), "logdir": str(self.folder)}
        write_json(
            self.folder / CONFIG,
            {"algorithm": self.algorithm, "config": self.config, "run": run, "versions": versions()},
        )
        (self.folder / PICTURE).write_text(self.plan.to_mermaid(), encoding="utf-8")
        (self.folder / TEXT).write_text(self.plan.explain() + "\n", encoding="utf-8")

    def _sinks(self, stack: ExitStack) -> list[Sink]:
        """Whoever is told of every update; the stack closes them."""
        return [
            stack.enter_context(closing(CsvSink(self.folder / PROGRESS))),
            stack.enter_context(closing(TensorBoardSink(self.folder))),
            stack.enter_context(closing(display(self.options.steps, self.options.quiet))),
        ]

    def _loop(self, run: Run[Report], learners: Learners, sinks: Sequence[Sink]) -> _How:
        recorder = Recorder()
        while self.interrupts.received is None:
            report = next(run, None)
            if report is None:
                return "finished" if self.goal is None else "unsolved"
            finished = report.lifetime_steps >= self.options.steps
            record = recorder.take(report)
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
                self._save(run, learners)
        return "interrupted"

    def _evaluated(self, record: Record, goal: Goal, run: Run[Report], learners: Learners) -> Record:
        """The record with an evaluation; without it where a signal cut it short."""
        weights = learners.weights(run)
        try:
            with self.interrupts.at_once():
                return replace(record, evaluation=goal.evaluate(weights, record.report.lifetime_steps))
        except KeyboardInterrupt:
            return record

    def _save(self, run: Run[Report], learners: Learners) -> None:
        checkpoint = Checkpoint(self.algorithm, self.config, learners.state(run), versions())
        steps = 0 if self.last is None else self.last.report.lifetime_steps
        with self.interrupts.held():
            extend_series(self.folder / CHECKPOINTS, steps, checkpoint)
        self.saved_at = time.monotonic()


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
        ]
    )
