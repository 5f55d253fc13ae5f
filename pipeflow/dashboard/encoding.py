"""Views of a run as JSON: for the page, and as the lines of a file.

Apart from the values, which know nothing of JSON. Figures are lists in the order of `COLUMNS`, since a run has
thousands of them. What is read may come from anybody's file, so nothing of it is taken on trust.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, fields, replace
from typing import NoReturn, TypeVar, get_args

from pipeflow.dashboard.plan_graph import GraphEdge, GraphNode, Kind, PlanGraph
from pipeflow.dashboard.snapshots import Bottleneck, NodeFigures, Snapshot
from pipeflow.dashboard.views import Ending, Event, How, RunView
from pipeflow.state.values import Json

V = TypeVar("V")

FORMAT = 1
COLUMNS = tuple(column.name for column in fields(NodeFigures))


class NotARecording(ValueError):
    """What was read is no recording of a run; the message says where."""


def header(view: RunView) -> dict[str, Json]:
    """What stays the same for the whole run."""
    return {
        "format": FORMAT,
        "title": view.title,
        "engine": view.engine,
        "started": view.started,
        "columns": list(COLUMNS),
        "plan": asdict(view.graph),
    }


def changes(view: RunView, after: float) -> dict[str, Json]:
    """What a page needs that has the snapshots up to `after` seconds."""
    return {
        "started": view.started,
        "updated": view.updated,
        "snapshots": [snapshot_json(one) for one in view.snapshots if one.seconds > after],
        "latest": None if view.latest is None else snapshot_json(view.latest),
        "events": [asdict(event) for event in view.events],
        "ending": None if view.ending is None else asdict(view.ending),
    }


def snapshot_json(snapshot: Snapshot) -> dict[str, Json]:
    """A snapshot; numbers to six digits."""
    return {
        "seconds": round(snapshot.seconds, 3),
        "steps": snapshot.steps,
        "nodes": [[_short(value) for value in astuple(node)] for node in snapshot.nodes],
        "bottleneck": {**asdict(snapshot.bottleneck), "busy": _short(snapshot.bottleneck.busy)},
        "curves": {name: _short(value) for name, value in snapshot.curves.items()},
        "restarts": snapshot.restarts,
        "given_up": list(snapshot.given_up),
        "lost": snapshot.lost,
    }


def lines(view: RunView) -> Iterator[str]:
    """A view as the lines of a file; `view_of` is the way back."""
    yield line(header(view))
    yield from (line({"snapshot": snapshot_json(one)}) for one in view.snapshots)
    yield from (line({"event": asdict(event)}) for event in view.events)
    if view.ending is not None:
        yield line({"ending": asdict(view.ending)})


def line(content: Mapping[str, Json]) -> str:
    """One line of the file."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False) + "\n"


def view_of(text: str, updated: float) -> RunView:
    """The view that some lines hold; a last line that was not written to its end is left out.

    updated: when they were written, seconds since 1970. Raises NotARecording if they are no recording.
    """
    whole = text.rpartition("\n")[0].split("\n")
    number = 1
    try:
        first = _parsed(whole[0])
        view = _empty_view(first, updated)
        snapshots: list[Snapshot] = []
        events: list[Event] = []
        ending: Ending | None = None
        for number, text_of_line in enumerate(whole[1:], 2):  # noqa: B007  # the error names the line
            content = _parsed(text_of_line)
            if "snapshot" in content:
                snapshots.append(_snapshot(_mapping(content, "snapshot"), len(view.graph.nodes)))
            elif "event" in content:
                events.append(_event(_mapping(content, "event")))
            elif "ending" in content:
                ending = _ending(_mapping(content, "ending"))
            else:
                raise ValueError("neither a snapshot nor an event nor an ending")
    except ValueError as error:
        raise NotARecording(f"line {number}: {error}") from error
    latest = snapshots[-1] if snapshots else None
    return replace(view, snapshots=tuple(snapshots), latest=latest, events=tuple(events), ending=ending)


def _empty_view(first: Mapping[str, object], updated: float) -> RunView:
    if first.get("format") != FORMAT:
        raise ValueError(f"the format is {first.get('format')!r}, and this version reads {FORMAT}")
    if tuple(_sequence(first, "columns")) != COLUMNS:
        raise ValueError(f"columns are {first['columns']}, not {list(COLUMNS)}")
    graph = _graph(_mapping(first, "plan"))
    return RunView(_str(first, "title"), _str(first, "engine"), graph, _float(first, "started"), updated)


def _parsed(text: str) -> Mapping[str, object]:
    try:
        content: object = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ValueError("no JSON") from error
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    return content


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _graph(content: Mapping[str, object]) -> PlanGraph:
    nodes = [_graph_node(one) for one in _mappings(content, "nodes")]
    edges = [_edge(one, len(nodes)) for one in _mappings(content, "edges")]
    return PlanGraph(tuple(nodes), tuple(edges))


def _graph_node(content: Mapping[str, object]) -> GraphNode:
    kind = _KINDS.get(_str(content, "kind"))
    if kind is None:
        raise ValueError(f"kind is {content['kind']!r}, none of {', '.join(_KINDS)}")
    return GraphNode(
        _str(content, "name"),
        kind,
        _str(content, "actors"),
        _int(content, "count"),
        _str(content, "site"),
        _str(content, "item_type"),
    )


def _edge(content: Mapping[str, object], nodes: int) -> GraphEdge:
    source, target = _int(content, "source"), _int(content, "target")
    if not (0 <= source < nodes and 0 <= target < nodes):
        raise ValueError(f"an edge goes from {source} to {target}, and there are {nodes} nodes")
    return GraphEdge(source, target, _str(content, "label"), _typed(content, "weights", bool))


def _snapshot(content: Mapping[str, object], nodes: int) -> Snapshot:
    rows = _sequence(content, "nodes")
    if len(rows) != nodes:
        raise ValueError(f"has the figures of {len(rows)} nodes, and there are {nodes}")
    held = _mapping(content, "bottleneck")
    node = None if held.get("node") is None else _int(held, "node")
    if node is not None and not 0 <= node < nodes:
        raise ValueError(f"the bottleneck is node {node}, and there are {nodes}")
    curves = _mapping(content, "curves")
    return Snapshot(
        _float(content, "seconds"),
        _int(content, "steps"),
        tuple(_figures(row) for row in rows),
        Bottleneck(node, _float(held, "busy"), _str(held, "advice")),
        {name: _float(curves, name) for name in curves},
        _int(content, "restarts"),
        tuple(str(name) for name in _sequence(content, "given_up")),
        _int(content, "lost"),
    )


def _figures(row: object) -> NodeFigures:
    if not isinstance(row, list) or len(row) != len(COLUMNS):
        raise ValueError(f"figures are {row!r}, not {len(COLUMNS)} numbers")
    named = dict(zip(COLUMNS, row, strict=True))
    return NodeFigures(
        _int(named, "items_in"),
        _int(named, "items_out"),
        _float(named, "per_second"),
        _float(named, "busy"),
        _float(named, "waiting"),
        _float(named, "waiting_seconds"),
        _int(named, "queue"),
        _float(named, "mean_lag"),
        _int(named, "max_lag"),
    )


def _event(content: Mapping[str, object]) -> Event:
    return Event(_float(content, "seconds"), _float(content, "time"), _str(content, "message"))


def _ending(content: Mapping[str, object]) -> Ending:
    how = _HOWS.get(_str(content, "how"))
    if how is None:
        raise ValueError(f"how is {content['how']!r}, none of {', '.join(_HOWS)}")
    return Ending(how, _float(content, "time"), _str(content, "message"))


_KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
_HOWS: dict[str, How] = {how: how for how in get_args(How)}
_HUGE = 1e300  # JSON has larger integers than a float can hold, and 1e999, which is read as infinity


def _typed(content: Mapping[str, object], name: str, kind: type[V]) -> V:
    value = content.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name} is {value!r}, no {kind.__name__}")
    return value


def _str(content: Mapping[str, object], name: str) -> str:
    return _typed(content, name, str)


def _int(content: Mapping[str, object], name: str) -> int:
    return _typed(content, name, int)


def _float(content: Mapping[str, object], name: str) -> float:
    value = content.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < _HUGE:
        raise ValueError(f"{name} is {value!r}, no number")
    return float(value)


def _sequence(content: Mapping[str, object], name: str) -> Sequence[object]:
    return _typed(content, name, list)


def _mapping(content: Mapping[str, object], name: str) -> Mapping[str, object]:
    return _typed(content, name, dict)


def _mappings(content: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    found = _sequence(content, name)
    if not all(isinstance(one, dict) for one in found):
        raise ValueError(f"{name} is no list of objects")
    return [one for one in found if isinstance(one, dict)]


def _short(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.6g}")
