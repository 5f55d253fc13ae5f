"""What is written is read back the same, and what is no recording is refused with its line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeflow.dashboard.encoding import NotARecording, changes, lines, view_of
from pipeflow.dashboard.views import Ending, Event
from tests.dashboard.plans import snapshot, view

ENDED = replace(
    view(
        snapshot(1, 10, loss=0.5),
        snapshot(2.5, 20, loss=0.25, recent_return=-1e-9),
        events=(Event(1.5, 1001.5, "restart 1 of 3 of Worker: “quoted”\nsecond line"),),
    ),
    ending=Ending("failed", 1003.0, "StageError: no"),
)
TEXT = "".join(lines(ENDED))


def test_a_view_survives_the_file() -> None:
    assert view_of(TEXT, updated=1001.0) == ENDED


def test_a_view_without_a_snapshot_survives_too() -> None:
    assert view_of("".join(lines(view())), updated=1001.0) == view()


def test_a_line_that_is_being_written_is_left_out() -> None:
    whole = view_of(TEXT, 0.0)
    for cut in range(TEXT.rindex("\n", 0, -1) + 1, len(TEXT)):  # anywhere in the last line
        assert view_of(TEXT[:cut], 0.0) == replace(whole, ending=None)


def test_a_page_is_told_what_is_new_to_it() -> None:
    told = changes(ENDED, after=1.0)
    assert [one["seconds"] for one in json.loads(json.dumps(told))["snapshots"]] == [2.5]
    assert told["ending"] == {"how": "failed", "time": 1003.0, "message": "StageError: no"}


FIRST = TEXT.splitlines()[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no JSON"),
        ("steps,updates\n1,2\n", "line 1: no JSON"),
        ("[]\n", "line 1: no JSON object"),
        ('{"format":2}\n', "line 1: the format is 2, and this version reads 1"),
        (FIRST.replace("items_in", "items") + "\n", "line 1: columns are "),
        (FIRST.replace('"shard"', '"cloud"') + "\n", "line 1: kind is 'cloud', none of shard, actor, driver"),
        (
            FIRST.replace('"source":0', '"source":9') + "\n",
            "line 1: an edge goes from 9 to 1, and there are 5",
        ),
        (FIRST.replace('"title":"small"', '"title":7') + "\n", "line 1: title is 7, no str"),
        (f"{FIRST}\n{{}}\n", "line 2: neither a snapshot nor an event nor an ending"),
        (f'{FIRST}\n{{"event":3}}\n', "line 2: event is 3, no dict"),
        (
            f'{FIRST}\n{{"ending":{{"how":"well"}}}}\n',
            "line 2: how is 'well', none of finished, interrupted, failed",
        ),
        (TEXT.replace('"busy":0.75', '"busy":1e999', 1), "line 2: busy is inf, no number"),
        (TEXT.replace('"busy":0.75', '"busy":NaN', 1), "line 2: no JSON"),
        (TEXT.replace('"busy":0.75', '"busy":true', 1), "line 2: busy is True, no number"),
        (TEXT.replace('"node":3', '"node":5', 1), "line 2: the bottleneck is node 5, and there are 5"),
        (FIRST + '\n{"snapshot":{"nodes":[]}}\n', "line 2: has the figures of 0 nodes, and there are 5"),
        (f"{FIRST}\n{'[' * 100_000}\n", "line 2: no JSON"),
    ],
)
def test_what_is_no_recording_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(NotARecording) as caught:
        view_of(text, 0.0)
    assert str(caught.value).startswith(message)


@given(st.data())
def test_a_damaged_file_is_read_or_refused(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(TEXT)))
    end = data.draw(st.integers(start, min(start + 20, len(TEXT))))
    damaged = TEXT[:start] + data.draw(st.text(max_size=5)) + TEXT[end:]
    try:
        found = view_of(damaged, 0.0)
    except NotARecording:
        return
    json.dumps(changes(found, 0.0), allow_nan=False)  # what was read can be served
