"""`pipeflow train`: read the command line, train, and say how it ended.

Apart from `training`, which is the run itself, and from the signals that may stop it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from pipeflow.algorithms.catalogue import Configuration, entry_of
from pipeflow.cli import configuration
from pipeflow.cli.errors import UsageError
from pipeflow.cli.filming import camera_for
from pipeflow.cli.flags import parse_with_configuration
from pipeflow.cli.goal import EPISODES, Goal
from pipeflow.cli.interrupts import Interrupts
from pipeflow.cli.plans import build_plan
from pipeflow.cli.profiling import Profile
from pipeflow.cli.progress import say
from pipeflow.cli.recording import (
    CHECKPOINTS,
    PICTURE,
    PROFILE,
    VIDEOS,
    run_folder,
)
from pipeflow.cli.resumption import Resumption, check_newest, resumption_of
from pipeflow.cli.tracking import trackers_of
from pipeflow.cli.training import Ending, Training, TrainOptions
from pipeflow.dsl import CheckpointError
from pipeflow.state.folders import checkpoints_in
from pipeflow.tracking.csv_table import PROGRESS
from pipeflow.tracking.records import RECENT_EPISODES

C = TypeVar("C", bound=Configuration)


def train(name: str | None, words: Sequence[str]) -> int:
    """Train, record, and say how it ended. name: of the algorithm; None takes that of the run to go on with.

    Returns 0, or 1 if the goal was asked for and not reached, or 128 and the number of a signal. Raises
    UsageError for words that do not fit, CheckpointError for what cannot be gone on with; what ends the run is
    raised as it is.
    """
    profile = Profile()
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
    camera = camera_for(algorithm, config, config.seed) if options.video else None
    folder = _folder(options, resumption, name, config.env.name)
    kept = configuration.to_json(config)
    trackers = trackers_of(
        options.track, options.track_project, options.track_name, folder, {"algorithm": name, **kept}
    )
    if not options.quiet:
        say(f"training {name} on {config.env.name}, engine {options.engine}, folder {folder}")
        if resumption is not None:
            say(_resumed(resumption))
    with Interrupts() as interrupts:
        training = Training(
            plan, options, folder, name, config.env.name, kept, interrupts, goal, resumption, trackers, camera,
            profile if options.profile else None,
        )  # fmt: skip
        ending = training.run()
        if ending.profile is not None:
            _show_profile(ending.profile, options, folder)
        say(_result(ending, goal, folder))
    if ending.how == "interrupted":
        return interrupts.exit_code
    return 1 if ending.how == "unsolved" else 0


def _defaults(resumption: Resumption, kind: type[C]) -> tuple[TrainOptions, C]:
    """The flags of the run that is gone on with."""
    kept = (
        "steps", "until_return", "engine", "address", "checkpoint_minutes", "keep_checkpoints", "metrics",
        "track", "track_project", "track_name", "video",
    )  # fmt: skip
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


def _show_profile(profile: str, options: TrainOptions, folder: Path) -> None:
    """Write it down, and say it."""
    if folder.exists():
        (folder / PROFILE).write_text(profile + "\n", encoding="utf-8")
    if not options.quiet:
        say(profile)


def _result(ending: Ending, goal: Goal | None, folder: Path) -> str:
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
    lines = [
        line,
        f"checkpoint  {saved[-1] if saved else 'none'}",
        f"curves      {folder / PROGRESS}; tensorboard --logdir {folder}",
        f"picture     {folder / PICTURE}",
        f"page        pipeflow show {folder}",
    ]
    if (folder / VIDEOS).exists():
        lines.append(f"videos      {folder / VIDEOS}")
    if ending.profile is not None:
        lines.append(f"profile     {folder / PROFILE}")
    return "\n".join(lines)
