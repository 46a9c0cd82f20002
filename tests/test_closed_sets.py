"""Queues that remember the states they have dequeued."""

from typing import Any

from hypothesis import given

from laso import (
    a_star,
    beam,
    best_first,
    bounded_best_first,
    breadth_first,
    closed_set,
    depth_first,
    exact,
    hill_climbing,
    search,
)
from laso.queues import observed
from tests.spaces import (
    Graph,
    GraphProblem,
    graphs,
    paths_of,
    quick,
    reachable_goals,
    run,
    states_of,
)

# Memory

CYCLIC = graphs(shape="cyclic", max_states=7)
COMPLETE = [depth_first(), breadth_first(), best_first(), a_star()]
WITH_MEMORY = [*COMPLETE, bounded_best_first(2), beam(1), beam(2), beam(3), hill_climbing()]
WITH_MEMORY += [exact(lambda state: state), beam(2, key=lambda node: -node.state)]


def remembered(graph: Graph, queue) -> list[Any]:
    seen, _ = run(GraphProblem(), graph, graph.vector(), closed_set(queue, key=lambda state: state))
    return states_of(seen)


@quick
@given(CYCLIC)
def test_with_memory_cyclic_searches_end_and_complete_ones_find_a_goal(graph):
    for queue in COMPLETE:
        states = remembered(graph, queue)
        assert len(states) == len(set(states))
        assert (states[-1] in graph.goals) == bool(reachable_goals(graph, graph.start))


@quick
@given(CYCLIC)
def test_with_memory_no_state_is_dequeued_twice(graph):
    for queue in WITH_MEMORY:
        states = remembered(graph, queue)
        assert len(states) == len(set(states))


@quick
@given(CYCLIC)
def test_with_memory_and_no_way_to_a_goal_all_states_are_seen(graph):
    aimless = Graph(graph.edges, frozenset(), graph.start)
    for queue in [*COMPLETE, beam(1000)]:
        assert sorted(remembered(aimless, queue)) == sorted(graph.edges)


def test_a_queue_with_memory_that_is_not_empty_has_a_node_to_give():
    # In the second round three better nodes are closed by then; only v is still open.
    edges = {
        "s": {"a": 3.0, "b": 2.0, "y": 1.0},
        "a": {"y": 9.0, "b": 9.0},
        "b": {"y": 9.0},
        "y": {"v": 0.0},
        "v": {"t": 0.0},
    }
    graph = Graph(edges, frozenset("t"), "s")
    assert "".join(remembered(graph, beam(3))) == "sabyvt"


def test_a_beam_with_memory_is_cut_after_closed_copies_have_left_it():
    # P leads to Q by two ways, both better than A; when Q is closed they must make room for A.
    edges = {
        "r": {"P": 1.0, "Q": 0.0},
        "P": {"Q1": 5.0, "Q2": 5.0, "A": -9.0},
        "Q": {"P1": 0.0},
        "A": {"t": 0.0},
    }
    graph = Graph(edges, frozenset("t"), "r")
    seen, goal = run(GraphProblem(), graph, graph.vector(), closed_set(beam(2), key=lambda s: s[0]))
    assert states_of(seen) == ["r", "P", "Q", "A", "t"]
    assert goal is seen[-1]


def test_memory_forgets_what_was_enqueued_but_never_dequeued():
    edges = {"s": {"a": 1.0, "b": 0.0}, "a": {"b": 5.0}, "b": {"t": 0.0}}
    graph = Graph(edges, frozenset("t"), "s")
    seen, _ = run(GraphProblem(), graph, graph.vector(), closed_set(best_first(), key=lambda s: s))
    assert paths_of(seen) == [("s",), ("s", "a"), ("s", "a", "b"), ("s", "a", "b", "t")]


def test_memory_may_compare_less_than_the_state():
    graph = Graph({"s": {"x1": 2.0, "x2": 1.0, "z": 0.0}}, frozenset(), "s")
    seen, _ = run(GraphProblem(), graph, graph.vector(), closed_set(a_star(), key=lambda s: s[0]))
    assert states_of(seen) == ["s", "x1", "z"]


@quick
@given(CYCLIC)
def test_a_queue_with_memory_counts_only_open_nodes(graph):
    def look(node, rest):
        nodes = list(rest)
        assert len(rest) == len(nodes)
        closed.add(node.state)
        assert closed.isdisjoint(other.state for other in nodes)

    for queue in COMPLETE:
        closed: set[Any] = set()
        queue = observed(closed_set(queue, key=lambda state: state), look)
        search(GraphProblem(), graph, graph.vector(), queue)


def test_a_beam_shows_the_open_round_and_counts_all():
    edges = {"s": dict.fromkeys("abc", 0.0), "a": {"d": 0.0}, "b": {"e": 0.0}, "c": {"f": 0.0}}
    graph = Graph(edges, frozenset("def"), "s")
    looks = []

    def look(node, rest):
        shown = "".join(other.state for other in rest)
        looks.append((node.state, shown, len(rest), rest.any_good()))

    queue = observed(beam(2), look)
    search(GraphProblem(), graph, graph.vector(), queue, y=frozenset("d"))
    # After b has been dequeued, d waits in a round that is not open yet.
    assert looks == [
        ("s", "", 0, False),
        ("a", "b", 1, False),
        ("b", "", 1, True),
        ("d", "e", 1, False),
    ]
