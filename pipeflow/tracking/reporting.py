"""`report_to`: the operator that sends the reports of a plan to trackers."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np

from pipeflow.dsl import Operator, nodes
from pipeflow.dsl.checks import check_fits
from pipeflow.dsl.operands import TakenBy, expect_stream, regrown
from pipeflow.dsl.sites import operator_site
from pipeflow.rl.batches import Report
from pipeflow.state.values import StateValue, saved_number, under
from pipeflow.tracking.records import Recorder, Sink, TrackedRun, Tracker

S = TypeVar("S")

_RUN_ID = "run_id/"


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class ReportTo(Operator):
    """See `report_to`."""

    trackers: Sequence[Tracker]

    def __ror__(self, left: TakenBy[Report, S], /) -> S:
        node, site = expect_stream(left, self).node, operator_site(self.site)
        check_fits(node, Report, self.name, site)
        factory = functools.partial(_Reporting, self.trackers)
        return regrown(
            left,
            nodes.Gate(
                name=self.name, site=site, item_type=node.item_type, input=node, factory=factory, reads=True
            ),
        )


def report_to(*trackers: Tracker) -> ReportTo:
    """Tell trackers of every report, in the driver, and pass the report on.

    ``plan | report_to(CSV("runs/one"), TensorBoard("runs/one"))``. They are opened with the first report, so that
    a run that cannot start leaves nothing behind, and closed when the run ends, also by an error. What a tracker
    raises ends the run. A run that is resumed from a checkpoint goes on in the same files and tracked runs.

    Raises:
        ValueError: no tracker is given.
    """
    if not trackers:
        message = "report_to() was given no tracker; give it one, such as report_to(CSV('runs/one'))"
        raise ValueError(message)
    return ReportTo(name=f"report_to({', '.join(type(one).__name__ for one in trackers)})", trackers=trackers)


class _Reporting:
    """Admits every report after telling the sinks."""

    closed = False

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        self._trackers = trackers
        self._sinks: list[Sink] = []
        self._recorder = Recorder()
        self._steps = 0
        # By the tracker's place, where a service knows the run.
        self._run_ids: dict[int, str] = {}

    def admit(self, report: Report, /) -> bool:
        while len(self._sinks) < len(self._trackers):
            place = len(self._sinks)
            sink = self._trackers[place].open(self._steps, self._run_ids.get(place))
            self._sinks.append(sink)
            if isinstance(sink, TrackedRun):
                self._run_ids[place] = sink.run_id
        record = self._recorder.take(report)
        for sink in self._sinks:
            sink.record(record)
        self._steps = report.lifetime_steps
        return True

    def close(self, error: BaseException | None, /) -> None:
        with ExitStack() as stack:
            for sink in self._sinks:
                stack.callback(sink.close, error)

    def state(self) -> dict[str, StateValue]:
        state: dict[str, StateValue] = {"steps": self._steps}
        for name, value in self._recorder.state().items():
            state[name] = value if isinstance(value, int | float) else np.array(value, np.float64)
        # A state is made of numbers: text goes as its bytes.
        for place, run_id in self._run_ids.items():
            state[f"{_RUN_ID}{place}"] = np.frombuffer(run_id.encode(), np.uint8)
        return state

    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        self._steps = int(saved_number("steps", state))
        self._recorder.load_state(state, self._steps)
        for place, text in under(_RUN_ID, state).items():
            self._run_ids[int(place)] = np.asarray(text, np.uint8).tobytes().decode()
