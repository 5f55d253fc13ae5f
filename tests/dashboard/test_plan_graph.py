"""The graph has every stage of the plan, where it runs, and what goes where."""

from __future__ import annotations

import pytest

from pipeflow.algorithms.catalogue import CATALOGUE
from pipeflow.algorithms.ppo import PPOConfig, ppo
from pipeflow.dashboard.plan_graph import GraphEdge, plan_graph
from pipeflow.dsl.trees import walk
from tests.dashboard.plans import Worker, graph, small_plan


def test_a_stage_says_where_it_runs() -> None:
    assert [(node.name, node.kind, node.actors, node.count) for node in graph().nodes] == [
        ("Worker.produce(Worker.sample)", "shard", "Worker", 2),
        ("gather_async(1)", "driver", "driver", 1),
        ("doubled", "actor", "Learner", 1),  # fused into the stage that follows
        ("Learner.stage(Learner.update)", "actor", "Learner", 1),
        ("sync_weights(Learner, Worker)", "driver", "driver", 1),
    ]


def test_a_stage_says_where_it_was_written_and_what_it_makes() -> None:
    first = graph().nodes[0]
    assert first.site.partition(":")[0].endswith("tests/dashboard/plans.py")
    assert first.item_type == "ParallelStream[int]"


def test_edges_carry_types_and_weights_go_back_to_the_workers() -> None:
    assert graph().edges == (
        GraphEdge(0, 1, "int"),
        GraphEdge(1, 2, "int"),
        GraphEdge(2, 3, "int"),
        GraphEdge(3, 4, "dict[str, float]"),
        GraphEdge(4, 0, "weights", weights=True),
    )


def test_ppo_is_drawn_as_its_docstring_says() -> None:
    kinds = [node.kind for node in plan_graph(ppo(PPOConfig()).node).nodes]
    assert kinds == ["shard", "shard", "driver", "actor", "actor", "driver"]


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_the_nodes_of_every_algorithm_are_those_of_its_statistics(entry: object) -> None:
    from pipeflow.algorithms.catalogue import Entry

    assert isinstance(entry, Entry)
    algorithm = entry.load()
    root = algorithm.plan(algorithm.configuration()).node
    drawn = plan_graph(root)
    assert [node.name for node in drawn.nodes] == [node.name for node in walk(root)]
    assert all(0 <= edge.source < len(drawn.nodes) > edge.target >= 0 for edge in drawn.edges)
    sources = {edge.target for edge in drawn.edges if not edge.weights}
    assert {index for index, node in enumerate(walk(root)) if not node.inputs} == set(
        range(len(drawn.nodes))
    ) - sources


def test_the_small_plan_runs() -> None:
    assert Worker().sample() == 1
    with small_plan().run() as run:
        assert next(run) == {"loss": 0.5}
