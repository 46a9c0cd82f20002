"""Figure 1 finds what brute force finds, where the discipline promises it, or says it failed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso import (
    LasoError,
    Linear,
    SearchFailed,
    a_star,
    beam,
    best_first,
    bounded_best_first,
    breadth_first,
    closed_set,
    depth_first,
    exact,
    greedy,
    hill_climbing,
    predict,
    search,
)
from tests.spaces import (
    Graph,
    GraphProblem,
    Orderings,
    Segmentation,
    Tagging,
    best_rest,
    costs,
    covered,
    dot,
    goal_paths,
    graphs,
    labellings,
    last,
    path_of,
    path_weight,
    quick,
    run,
    segmentation,
    segmentation_phi,
    segmentations,
    small,
    tagging,
    tagging_phi,
)

SHAPES = st.sampled_from(["tree", "dag"]).flatmap(lambda shape: graphs(shape=shape))


def with_h(graph: Graph, h: dict[Any, float]) -> Graph:
    return Graph(graph.edges, graph.goals, graph.start, h)


def found(graph: Graph, queue):
    return search(GraphProblem(), graph, graph.vector(), queue)


def best_weight(graph: Graph) -> float:
    return max(path_weight(graph, path) for path in goal_paths(graph))


@quick
@given(SHAPES, st.data())
def test_a_star_is_optimal_if_h_is_never_below_what_the_rest_adds(graph, data):
    slack = st.integers(0, 3).map(float)
    h = {
        state: rest + (0.0 if state in graph.goals else data.draw(slack))
        for state, rest in best_rest(graph).items()
    }
    goal = found(with_h(graph, h), a_star())
    assert goal is not None
    assert goal.g == best_weight(graph)


def test_a_star_may_miss_the_best_if_h_is_below_what_the_rest_adds():
    edges = {"s": {"a": 0.0, "b": 0.0}, "a": {"t": 5.0}, "b": {"u": 1.0}}
    graph = Graph(edges, frozenset("tu"), "s", {"a": -9.0, "b": 1.0})
    goal = found(graph, a_star())
    assert goal is not None
    assert goal.state == "u"


@quick
@given(graphs(shape="dag"))
def test_a_perfect_heuristic_leads_straight_to_the_best_goal(graph):
    seen, goal = run(GraphProblem(), with_h(graph, best_rest(graph)), graph.vector(), a_star())
    assert goal is not None
    assert goal.g == best_weight(graph)
    assert all(node.score == goal.g for node in seen)


@quick
@given(graphs(shape="dag", weights=costs))
def test_best_first_is_optimal_if_no_step_adds(graph):
    goal = found(graph, best_first())
    assert goal is not None
    assert goal.g == best_weight(graph)


@quick
@given(graphs(shape="cyclic", weights=costs), st.data())
def test_with_memory_a_star_is_optimal_if_h_is_consistent(graph, data):
    # The best rest in a space with cheaper steps falls by no more than a step costs.
    raised = {
        (a, b): float(data.draw(st.integers(0, int(-weight))))
        for a, following in graph.edges.items()
        for b, weight in following.items()
    }
    best = best_rest(graph)[graph.start]
    for h in ({}, best_rest(graph), best_rest(graph, raised=raised)):
        seen, goal = run(
            GraphProblem(),
            with_h(graph, h),
            graph.vector(),
            closed_set(a_star(), key=lambda state: state),
        )
        assert goal is not None
        assert goal.g == best
        assert len({node.state for node in seen}) == len(seen)


@quick
@given(SHAPES)
def test_uninformed_searches_are_complete(graph):
    shallowest = min(len(path) for path in goal_paths(graph))
    goal = found(graph, breadth_first())
    assert goal is not None
    assert goal.depth + 1 == shallowest
    assert found(graph, depth_first()) is not None
    without = Graph(graph.edges, frozenset(), graph.start)
    assert found(without, depth_first()) is None
    assert found(without, breadth_first()) is None


@quick
@given(SHAPES)
def test_depth_first_finds_the_first_path_of_all(graph):
    goal = found(graph, depth_first())
    assert goal is not None
    assert path_of(goal) == goal_paths(graph)[0]


@quick
@given(tagging())
def test_a_huge_beam_is_exact_where_all_goals_are_equally_deep(drawn):
    x, w = drawn
    best = max(dot(w.weights, tagging_phi(x, y)) for y in labellings("ABC", len(x)))
    for queue in (beam(10_000), exact(lambda state: state)):
        goal = search(Tagging("ABC"), x, w, queue)
        assert goal is not None
        assert goal.g == best


@quick
@given(tagging())
def test_exact_search_is_viterbi_search(drawn):
    x, w = drawn
    best = max(dot(w.weights, tagging_phi(x, y)) for y in labellings("ABC", len(x)))
    seen, goal = run(Tagging("ABC"), x, w, exact(last))
    assert goal is not None
    assert goal.g == best == dot(w.weights, tagging_phi(x, goal.state))
    # One node for the beginning, three for each word but the last, and the goal.
    assert len(seen) == 1 + 3 * (len(x) - 1) + 1


@quick
@given(segmentation())
def test_exact_search_is_semi_markov_if_segments_are_grouped_by_what_they_cover(drawn):
    x, w = drawn
    best = max(dot(w.weights, segmentation_phi(y)) for y in segmentations(x))

    def signature(state):
        return last(state) and last(state)[1]

    seen, goal = run(Segmentation(), x, w, exact(signature, key=lambda node: covered(node.state)))
    assert goal is not None
    assert goal.g == best == dot(w.weights, segmentation_phi(goal.state))
    assert len(seen) == 1 + 2 * (len(x) - 1) + 1


@quick
@given(st.lists(small, min_size=6, max_size=6), st.integers(1, 5))
def test_orderings_agree_on_the_output_whatever_the_order(values, width):
    names = [("item", item, label) for item in "abc" for label in "AB"]
    w = Linear(dict(zip(names, values, strict=True)))
    best = sum(max(w.weights[("item", item, label)] for label in "AB") for item in "abc")
    for queue in (greedy(), beam(width), exact(lambda state: frozenset(state))):
        found = predict(Orderings(), "abc", w, queue)
        assert dot(w.weights, [("item", *pair) for pair in found.items()]) == best


def test_a_search_that_begins_in_a_goal_ends_there():
    graph = Graph({"s": {"a": 1.0}}, frozenset("sa"), "s")
    for queue in (beam(2), depth_first(), a_star(), hill_climbing()):
        seen, goal = run(GraphProblem(), graph, graph.vector(), queue)
        assert seen == [goal]
        assert seen[0].state == "s"


@pytest.mark.parametrize("queue", [depth_first(), beam(3), bounded_best_first(2), a_star()])
def test_operators_that_return_nothing_before_a_goal_are_a_failed_search(queue):
    graph = Graph({"s": {"a": 1.0, "b": 0.0}, "a": {}}, frozenset("t"), "s")
    assert found(graph, queue) is None
    with pytest.raises(SearchFailed) as caught:
        predict(GraphProblem(), graph, graph.vector(), queue)
    assert str(caught.value) == (
        "GraphProblem: the queue ran empty before a goal was dequeued; either an operator set was "
        "empty before a goal, or the queue discipline gave up every node"
    )
    assert isinstance(caught.value, LasoError)


def test_hill_climbing_that_gives_up_every_node_is_a_failed_search():
    graph = Graph({"s": {"a": 1.0}, "a": {"t": 0.0}}, frozenset("t"), "s")
    with pytest.raises(SearchFailed, match="the queue discipline gave up every node"):
        predict(GraphProblem(), graph, graph.vector(), hill_climbing())
    assert predict(GraphProblem(), graph, graph.vector(), greedy()) == "t"


def test_the_margin_counts_against_good_nodes_only_where_the_output_is_given():
    w = Linear({("word", "x", "A"): 1.0})
    w.margin = 2.0
    without = search(Tagging(), "x", w, greedy())
    with_y = search(Tagging(), "x", w, greedy(), y=("A",))
    assert without is not None
    assert with_y is not None
    assert (without.state, without.good) == (("A",), None)
    assert (with_y.state, with_y.good) == (("B",), False)
