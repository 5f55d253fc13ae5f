"""What a plan must keep, checked while it is built, for those who run no type checker: both sides are named."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import pytest

from pipeflow.dsl import (
    PlanError,
    actors,
    batch,
    buffer,
    concat,
    drain,
    every,
    every_seconds,
    expand,
    flat_map,
    flatten,
    from_items,
    gather_async,
    gather_rounds,
    gather_sync,
    once_per_steps,
    reply,
    reply_weights,
    select_shards,
    shuffle,
    stage,
    sync_weights,
    take,
    tap,
    throttle,
    until,
    update_target,
)
from tests.dsl.domain import (
    Learner,
    Quiet,
    RemoteWorker,
    Targeted,
    Trajectories,
    Worker,
    advantages,
    counted,
    of_source,
    report,
    steps_of,
)

HERE = r"tests/dsl/test_checks.py:\d+"


TARGETED = actors(Targeted, 1)
WORKERS, OTHERS, LEARNER = actors(Worker, 2), actors(Worker, 1).named("others"), actors(Learner, 1)


def samples() -> Any:
    return WORKERS.produce(Worker.sample)


def stream() -> Any:
    return samples() | gather_sync()


def scored() -> Any:
    return WORKERS.stage(Worker.score)


def halves(item: Trajectories) -> list[Trajectories]:
    return [item, item]


class Made:
    def __init__(self, size: int, *, lr: float = 0.1) -> None: ...

    def add(self, item: int) -> int:
        return item


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: actors(Made, 1), "missing a required argument: 'size'"),  # type: ignore[call-arg]
        (lambda: actors(Made, 1, 2, 3), "too many positional arguments"),  # type: ignore[call-arg]
        (lambda: actors(Made, 1, 2, rate=3), "got an unexpected keyword argument 'rate'"),  # type: ignore[call-arg]
    ],
)
def test_arguments_that_a_constructor_does_not_take_are_refused(
    make: Callable[[], object], said: str
) -> None:
    with pytest.raises(
        PlanError, match=rf"^{HERE}: Made cannot be made of .*: {said}; it is Made\(size, \*, lr=0.1\)$"
    ):
        make()


def test_nothing_is_said_of_arguments_where_the_constructor_does_not_say_what_it_takes() -> None:
    assert actors(type, 1, "Made", (), {}).group.count == 1
    assert actors(functools.partial(Made, 1), 2, lr=0.5).group.count == 2


@pytest.mark.parametrize(
    ("method", "instead"),
    [("add", "Made.add, the method itself"), ("ad", "a method of Made"), (3, "a method of Made")],
)
def test_a_name_or_a_value_in_place_of_a_method_is_refused(method: Any, instead: str) -> None:
    made = actors(Made, 1, 2)
    for take_it in (made.stage, made.send, made.produce):
        with pytest.raises(
            PlanError, match=rf"^{HERE}: {method!r} is no method of Made \({HERE}\); pass {instead}$"
        ):
            take_it(method)


# Every case: what is written, and what the message must say of both sides.
MISFITS: list[tuple[str, Callable[[], object], str]] = [
    (
        "function",
        lambda: stream() | report,
        rf"report takes Advantages, but gather_sync\(\) \({HERE}\) delivers Trajectories; put a stage between",
    ),
    (
        "function in a shard",
        lambda: samples() | report,
        rf"report takes Advantages, but Worker.produce.* \({HERE}\)",
    ),
    ("map", lambda: stream().map(report), "report takes Advantages, but"),
    (
        "the wrong way round",
        lambda: samples() | advantages | gather_sync() | advantages,
        r"delivers Advantages; put a stage between them that makes Trajectories, "
        r"or put this one before advantages, which is given Trajectories$",
    ),
    (
        "the wrong way round, in other actors, which cannot be put before a gather",
        lambda: samples() | advantages | gather_sync() | scored(),
        "delivers Advantages; put a stage between them that makes Trajectories$",
    ),
    (
        "the wrong way round behind a gather, in actors",
        lambda: stream() | advantages | scored(),
        r"that makes Trajectories, or put this one before advantages, which is given Trajectories$",
    ),
    (
        "placed stage",
        lambda: stream() | LEARNER.stage(Learner.update),
        r"Learner.stage\(Learner.update\) takes Adv",
    ),
    (
        "send",
        lambda: stream() | LEARNER.send(Learner.update),
        r"Learner.send\(Learner.update\) takes Advantages",
    ),
    ("filter", lambda: stream().filter(report), r"filter\(report\) takes Advantages, but"),
    ("tap", lambda: stream() | tap(report), r"tap\(report\) takes Advantages, but"),
    ("until", lambda: stream() | until(report), r"until\(report\) takes Advantages, but"),  # type: ignore[arg-type]
    ("partition", lambda: stream().partition(report, buffer=1), r"partition\(report\) takes Advantages, but"),
    ("flat_map", lambda: stream() | flat_map(report), r"flat_map\(report\) takes Advantages, but"),  # type: ignore[arg-type]
    (
        "behind a flat_map",
        lambda: stream() | flat_map(halves) | report,
        r"report takes Advantages, but flat_map\(halves\) \(.*\) delivers Trajectories;",
    ),
    ("flatten", lambda: stream() | flatten(), "flatten takes Iterable, but gather_sync"),
    ("concat", lambda: stream() | concat(3), r"concat\(3\) takes Concatenable, but gather_sync\(\)"),
    (
        "a list",
        lambda: samples() | gather_rounds() | advantages,
        r"advantages takes Trajectories, but gather_rounds",
    ),
    (
        "a batch",
        lambda: stream() | batch(2) | advantages,
        r"takes Trajectories, but batch\(2\) .* list\[Trajector",
    ),
    (
        "a union",
        lambda: (stream() & from_items([1])) | advantages,
        r"takes Trajectories, but & .* Trajectories \| int",
    ),
    (
        "composed stages",
        lambda: stage(advantages) | advantages,  # type: ignore[operator]
        rf"advantages takes Trajectories, but advantages \({HERE}\) makes Advantages",
    ),
    (
        "a pair",
        lambda: stream().zip(from_items([1])) | advantages,
        r"takes Trajectories, but zip .* delivers tuple\[Trajectories, int\]",
    ),
    (
        "steps",
        lambda: stream() | once_per_steps(2),
        r"once_per_steps\(2\) counts the steps of items, but gather_sync\(\) .* delivers Trajectories, which has",
    ),
    (
        "steps of a branch",
        lambda: ((stream() | drain) & (stream() | advantages)).by_steps(1, 1),
        r"by_steps counts the steps of items, but gather_sync\(\) .* delivers Trajectories, which has none",
    ),
    (
        "scattered",
        lambda: stream() | WORKERS.scatter() | report,
        r"report takes Advantages, but Worker.scatter\(\) .* delivers Trajectories",
    ),
    (
        "repeated",
        lambda: stream() | scored().repeat(2),
        r"takes Trajectories, but Worker.stage\(Worker.score\) 1/2 .* delivers Advantages; put a stage between",
    ),
    (
        "a reply",
        lambda: samples() | gather_sync().with_source() | reply(Worker.set_weights, steps_of),
        r"reply\(Worker.set_weights\) takes Advantages, but gather_sync\(\).with_source\(\) .* delivers Traj",
    ),
    (
        "a batch with its sources",
        lambda: samples() | gather_sync().with_source() | batch(2) | WORKERS.stage(Worker.score),
        r"takes Trajectories, but batch\(2\) .* delivers list\[Trajectories\]",
    ),
    (
        "no source",
        lambda: stream() | of_source,
        r"of_source takes Sourced\[Trajectories, Worker\], but gather_sync\(\) .* delivers Trajectories",
    ),
    (
        "a source",
        lambda: samples() | gather_sync().with_source() | advantages,
        r"takes Trajectories, but gather_sync\(\).with_source\(\) .* delivers Sourced\[Trajectories, Worker\]",
    ),
]


@pytest.mark.parametrize(("broken", "message"), [pytest.param(*row, id=name) for name, *row in MISFITS])
def test_a_stage_that_takes_another_type_is_refused_with_both_sides(
    broken: Callable[[], object], message: str
) -> None:
    with pytest.raises(PlanError, match=f"^{HERE}: .*{message}"):
        broken()


def test_what_fits_is_accepted() -> None:
    """Also where the types are known only in part."""
    _ = stream() | advantages | report | (lambda x: x) | advantages
    _ = samples() | WORKERS.stage(Worker.score) | gather_sync() | LEARNER.stage(Learner.update)
    _ = samples() | gather_sync().with_source() | of_source | advantages
    _ = samples() | gather_sync().with_source() | OTHERS.stage(Worker.score) | every(2)
    _ = stream() | advantages | concat(3) | LEARNER.stage(Learner.update)
    _ = stream() | batch(2) | flatten() | advantages
    _ = stream() | buffer(2) | throttle(1) | every_seconds(1) | shuffle(2, seed=0) | advantages
    _ = stream() | advantages | once_per_steps(2) | LEARNER.stage(Learner.update)
    _ = samples() | gather_sync().with_source() | buffer(2) | OTHERS.stage(Worker.score) | concat(2)
    _ = stream() | WORKERS.scatter() | WORKERS.stage(Worker.score) | gather_sync() | report
    _ = ((stream() | advantages) & (stream() | counted)).by_steps(1, 2)
    assert (stage(advantages) | report)(Trajectories()) == 0.0


def test_a_stage_in_the_shards_must_be_of_their_own_actors() -> None:
    """The same class is not enough."""
    with pytest.raises(PlanError) as caught:
        _ = samples() | OTHERS.stage(Worker.score)
    assert re.fullmatch(
        rf"{HERE}: others.stage\(Worker.score\) runs in others \({HERE}\), but the shards of "
        rf"Worker.produce\(Worker.sample\) \({HERE}\) are in other actors, Worker \({HERE}\); gather them first",
        str(caught.value),
    )
    both = samples() & OTHERS.produce(Worker.sample)
    with pytest.raises(PlanError, match="are in other actors, others"):
        _ = both | WORKERS.stage(Worker.score)


def test_a_method_of_another_class_is_refused() -> None:
    for use in (WORKERS.produce, WORKERS.stage, WORKERS.send):
        with pytest.raises(PlanError) as caught:
            use(Learner.update)  # type: ignore[arg-type]
        assert re.fullmatch(
            rf"{HERE}: Learner.update is a method of Learner, but Worker \({HERE}\) are actors of Worker; "
            "pass a method of Worker",
            str(caught.value),
        )
    with pytest.raises(PlanError, match=r"Learner\.update is a method of Learner, but Worker"):
        (samples() | gather_sync().with_source()).reply(Learner.update, report)


def test_a_method_of_a_parent_class_is_one_of_the_class() -> None:
    for method in (Worker.sample, RemoteWorker.sample):
        produced = actors(RemoteWorker, 1).produce(method)
        assert isinstance(next((produced | gather_sync()).run()), Trajectories)


def test_a_reply_needs_to_know_where_items_came_from() -> None:
    with pytest.raises(
        PlanError,
        match=rf"^{HERE}: reply\(Worker.set_weights\) needs to know where .*; gather with .with_source",
    ):
        stream().reply(Worker.set_weights, report)
    with pytest.raises(PlanError, match=r"gather with \.with_source"):
        (samples() | gather_sync().with_source() | (lambda x: x)).reply(Worker.set_weights, report)


def test_weights_need_a_method_on_either_side() -> None:
    with pytest.raises(
        PlanError, match=rf"^{HERE}: sync_weights needs Quiet \({HERE}\) to have a method weights$"
    ):
        sync_weights(actors(Quiet, 1), WORKERS)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=rf"needs Learner \({HERE}\) to have a method set_weights"):
        sync_weights(LEARNER, LEARNER)  # type: ignore[arg-type]


def test_weights_to_the_source_need_a_source_that_takes_them() -> None:
    with pytest.raises(PlanError, match=rf"^{HERE}: reply_weights\(Learner\) needs to know where items came"):
        _ = stream() | reply_weights(LEARNER)
    quiet = actors(Quiet, 1).produce(id) | gather_async().with_source()
    with pytest.raises(
        PlanError, match=rf"^{HERE}: reply_weights needs Quiet \({HERE}\) to have a method set_"
    ):
        _ = quiet | reply_weights(LEARNER)  # type: ignore[operator]


def test_a_target_needs_a_method() -> None:
    with pytest.raises(
        PlanError, match=rf"^{HERE}: update_target needs Learner \({HERE}\) to have a method update_target$"
    ):
        update_target(LEARNER)  # type: ignore[arg-type]


def test_weights_come_from_one_learner() -> None:
    learners = actors(Learner, 2)
    with pytest.raises(
        PlanError, match=rf"^{HERE}: .* takes one learner's weights, but Learner \({HERE}\) are 2 actors"
    ):
        sync_weights(learners, WORKERS)
    with pytest.raises(PlanError, match="reply_weights takes one learner's weights, but Learner"):
        reply_weights(learners)


# Scattering and selecting


def test_a_scattered_stream_is_gathered_in_rounds_and_gives_one_output_for_every_input() -> None:
    """Else its shards would wait for each other."""
    scattered = stream() | WORKERS.scatter()
    with pytest.raises(
        PlanError, match=rf"^{HERE}: gather_async\(2\) would part the shards of Worker.scatter\(\) \({HERE}\)"
    ):
        _ = scattered | gather_async(2)
    droppings: list[Any] = [take(1), every(2), batch(2), flat_map(list), once_per_steps(1)]
    for dropping in droppings:
        with pytest.raises(PlanError, match=r"may give no output for an item of Worker.scatter\(\)"):
            _ = stream() | advantages | WORKERS.scatter() | dropping | gather_rounds()
    with pytest.raises(PlanError, match=r"gather_async\(1\) would part the shards of Worker.broadcast\(\)"):
        _ = (samples() & (stream() | WORKERS.broadcast())) | gather_async()


def test_a_shard_that_is_not_there_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        PlanError,
        match=rf"^{HERE}: select_shards\(0, 2\): Worker.produce\(Worker.sample\) \({HERE}\) has shards 0 to 1$",
    ):
        _ = samples() | select_shards(0, 2)
    both = samples() & OTHERS.produce(Worker.sample)
    assert isinstance(next((both | select_shards(2) | gather_sync()).run()), Trajectories)


DRAINED: list[Callable[[Any], object]] = [
    lambda drained: drained | abs,
    lambda drained: drained | drain,
    lambda drained: drained | take(1),
    lambda drained: drained | every(2),
    lambda drained: drained | batch(2),
    lambda drained: drained | flatten(),
    lambda drained: drained | concat(2),
    lambda drained: drained | flat_map(range),
    lambda drained: drained | expand(Quiet),  # type: ignore[arg-type]
    lambda drained: drained | tap(print),
    lambda drained: drained | until(bool),
    lambda drained: drained | LEARNER.stage(Learner.update),
    lambda drained: drained | LEARNER.send(Learner.update),
    lambda drained: drained | sync_weights(LEARNER, WORKERS),
    lambda drained: drained | reply_weights(LEARNER),
    lambda drained: drained | reply(Worker.set_weights),
    lambda drained: drained | update_target(TARGETED),
    lambda drained: drained | once_per_steps(2),
    lambda drained: drained | every_seconds(2),
    lambda drained: drained | throttle(2),
    lambda drained: drained | buffer(2),
    lambda drained: drained | shuffle(2, seed=0),
    lambda drained: drained | WORKERS.scatter(),
    lambda drained: drained.zip(from_items([1])),
    lambda drained: from_items([1]).zip(drained),
    lambda drained: drained.map(abs),
    lambda drained: drained.filter(bool),
    lambda drained: drained.tap(abs),
    lambda drained: drained.until(bool),
    lambda drained: drained.fork(2, buffer=1),
    lambda drained: drained.partition(bool, buffer=1),
]


@pytest.mark.parametrize("use", DRAINED)
def test_nothing_may_follow_a_drain(use: Callable[[Any], object]) -> None:
    """Law 13: a hole of the types, for `Never` fits everything."""
    with pytest.raises(
        PlanError, match=rf"would never get an item, since drain \({HERE}\) is drained; put it before"
    ):
        use(from_items([1]) | drain)


def test_nothing_may_follow_a_union_of_drained_branches_alone() -> None:
    drained = (from_items([1]) | drain) & (from_items([2]) | drain)
    with pytest.raises(PlanError, match="would never get an item, since & "):
        _ = drained | abs
    assert list(((drained & from_items([-3])) | abs).run()) == [3]
