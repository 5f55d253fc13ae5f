"""`report_to`: a stream of reports keeps its type, also that of a subclass; trackers are anything that opens a sink."""

from __future__ import annotations

from tempfile import mkdtemp
from typing import assert_type

import numpy as np

from pipeflow import Stream, from_items
from pipeflow.rl.batches import Report
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.replay_batches import Priorities, TDReport
from pipeflow.tracking import CSV, ReportTo, Tracker, report_to

report = Report(1, 10, 10, EpisodeStats.none(), {})
none = Priorities(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
td_report = TDReport(1, 10, 10, EpisodeStats.none(), {}, none)


def report_to_keeps_the_type() -> Stream[Report]:
    return assert_type(from_items([report]) | report_to(CSV(mkdtemp())), Stream[Report])


def report_to_keeps_the_type_of_a_subclass() -> Stream[TDReport]:
    return assert_type(from_items([td_report]) | report_to(CSV(mkdtemp())), Stream[TDReport])


def report_to_takes_any_tracker() -> ReportTo:
    table: Tracker = CSV(mkdtemp())
    return assert_type(report_to(table), ReportTo)
