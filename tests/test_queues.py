"""Every queue discipline dequeues what its naive twin does, in the same order.

The twins keep paths in plain lists. Sorting is stable, so they break ties by insertion order.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso import (
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
    search,
)
from laso.problem import Node
from laso.queues import observed, only_good
from tests.spaces import (
    Graph,
    GraphProblem,
    Path,
    Segmentation,
    all_paths,
    covered,
    dequeued,
    dot,
    graphs,
    guided,
    path_weight,
    paths_of,
    quick,
    reachable_goals,
    run,
    segmentation,
    segmentation_phi,
    states_of,
    successors,
    value,
)

widths = st.integers(1, 4)
GUIDED = guided(graphs(shape="dag", max_states=8))


def until_goal(graph: Graph, paths: list[Path]) -> list[Path]:
    goal = next((i for i, path in enumerate(paths) if path[-1] in graph.goals), len(paths))
    return paths[: goal + 1]


def naive_ranking(
    graph: Graph, by: Callable[[Graph, Path], float], width: int | None = None
) -> list[Path]:
    order: list[Path] = []
    queue: list[Path] = [(graph.start,)]
    while queue:
        first, *rest = queue
        order.append(first)
        if first[-1] in graph.goals:
            break
        queue = sorted(rest + successors(graph, first), key=lambda path: -by(graph, path))[:width]
    return order


def naive_beam(graph: Graph, width: int) -> list[Path]:
    order: list[Path] = []
    beam_: list[Path] = [(graph.start,)]
    while beam_:
        beam_ = sorted(beam_, key=lambda path: -value(graph, path))[:width]
        if beam_[0][-1] in graph.goals:
            return [*order, beam_[0]]
        goals = [path for path in beam_ if path[-1] in graph.goals]
        others = [path for path in beam_ if path[-1] not in graph.goals]
        order += others
        beam_ = goals + [longer for path in others for longer in successors(graph, path)]
    return order


def naive_grouped_beam(graph: Graph, width: int, key: Callable[[Any], int]) -> list[Path]:
    order: list[Path] = []
    pending: list[Path] = [(graph.start,)]
    waiting: list[Path] = []
    while pending or waiting:
        lowest = min((key(path[-1]) for path in pending), default=None)
        group = waiting + [path for path in pending if key(path[-1]) == lowest]
        pending = [path for path in pending if key(path[-1]) != lowest]
        group = sorted(group, key=lambda path: -value(graph, path))[:width]
        if group[0][-1] in graph.goals:
            return [*order, group[0]]
        waiting = [path for path in group if path[-1] in graph.goals]
        for path in group:
            if path not in waiting:
                order.append(path)
                pending += successors(graph, path)
    return order


def naive_climb(graph: Graph, *, uphill: bool) -> list[Path]:
    order: list[Path] = [(graph.start,)]
    while order[-1][-1] not in graph.goals:
        best = max(successors(graph, order[-1]), key=lambda path: value(graph, path), default=None)
        if best is None or (uphill and value(graph, best) <= value(graph, order[-1])):
            break
        order.append(best)
    return order


@quick
@given(GUIDED)
def test_depth_first_goes_through_all_paths_in_order(graph):
    assert dequeued(graph, depth_first()) == until_goal(graph, list(all_paths(graph)))


@quick
@given(GUIDED)
def test_breadth_first_goes_level_by_level(graph):
    by_level = sorted(all_paths(graph), key=len)
    assert dequeued(graph, breadth_first()) == until_goal(graph, by_level)


@quick
@given(GUIDED)
def test_best_first_ranks_by_the_path_component_alone(graph):
    assert dequeued(graph, best_first()) == naive_ranking(graph, path_weight)


@quick
@given(GUIDED)
def test_a_star_ranks_by_path_component_and_heuristic(graph):
    assert dequeued(graph, a_star()) == naive_ranking(graph, value)


@quick
@given(GUIDED, widths)
def test_bounded_best_first_equals_its_twin(graph, width):
    assert dequeued(graph, bounded_best_first(width)) == naive_ranking(graph, value, width)


@quick
@given(GUIDED, widths)
def test_beam_by_rounds_equals_its_twin(graph, width):
    assert dequeued(graph, beam(width)) == naive_beam(graph, width)


@quick
@given(GUIDED, widths, st.lists(st.integers(0, 4), min_size=8, max_size=8))
def test_grouped_beam_equals_its_twin(graph, width, keys):
    queue = beam(width, key=lambda node: keys[node.state])
    assert dequeued(graph, queue) == naive_grouped_beam(graph, width, keys.__getitem__)


@quick
@given(GUIDED)
def test_greedy_takes_the_best_successor_again_and_again(graph):
    assert dequeued(graph, greedy()) == naive_climb(graph, uphill=False)


@quick
@given(GUIDED)
def test_hill_climbing_ends_where_no_step_raises_the_score(graph):
    order = dequeued(graph, hill_climbing())
    assert order == naive_climb(graph, uphill=True)
    values = [value(graph, path) for path in order]
    assert all(a < b for a, b in pairwise(values))
    if order[-1][-1] not in graph.goals:
        assert all(value(graph, path) <= values[-1] for path in successors(graph, order[-1]))


@quick
@given(segmentation(), widths)
def test_segments_compete_with_those_that_cover_as_much(drawn, width):
    x, w = drawn
    problem = Segmentation()

    def score(state: Path) -> float:
        return dot(w.weights, segmentation_phi(state))

    beams: dict[int, list[Path]] = {0: [()]}
    order: list[Path] = []
    for at in range(len(x)):
        beams[at] = sorted(beams.get(at, []), key=lambda state: -score(state))[:width]
        order += beams[at]
        for state in beams[at]:
            for segment in problem.operators(x, state):
                longer = (*state, segment)
                beams.setdefault(covered(longer), []).append(longer)
    best = max(beams[len(x)], key=score)

    seen, goal = run(problem, x, w, beam(width, key=lambda node: covered(node.state)))
    assert goal is not None
    assert states_of(seen) == [*order, best]
    assert goal.g == score(best)


# Ties

FLAT = Graph(
    {"s": dict.fromkeys("abc", 0.0), "a": dict.fromkeys("de", 0.0), "b": dict.fromkeys("fg", 0.0)},
    frozenset("g"),
    "s",
)


@pytest.mark.parametrize(
    ("queue", "order"),
    [
        (depth_first(), "sadebfg"),
        (breadth_first(), "sabcdefg"),
        (best_first(), "sabcdefg"),
        (a_star(), "sabcdefg"),
        (bounded_best_first(3), "sabcdf"),
        (beam(2), "sabde"),
        (beam(3), "sabcdef"),
        (beam(4), "sabcdefg"),
        (greedy(), "sad"),
        (hill_climbing(), "s"),
        (exact(lambda state: state), "sabcdefg"),
        (exact(lambda state: state in "defg"), "sad"),
    ],
)
def test_ties_are_broken_by_insertion_order(queue, order):
    assert "".join(path[-1] for path in dequeued(FLAT, queue)) == order


def test_a_tie_between_an_old_and_a_new_node_goes_to_the_old_one():
    graph = Graph({"s": {"a": 1.0, "b": 0.0}, "a": {"c": -1.0}}, frozenset(), "s")
    for queue in (best_first(), a_star(), bounded_best_first(2)):
        assert "".join(path[-1] for path in dequeued(graph, queue)) == "sabc"


def test_best_first_breaks_ties_by_insertion_order_whatever_the_heuristic():
    graph = Graph({"s": {"a": 0.1, "b": 0.1}}, frozenset("ab"), "s", {"b": 0.2})
    assert dequeued(graph, best_first()) == [("s",), ("s", "a")]


def test_best_first_is_not_blinded_by_a_large_heuristic():
    graph = Graph({"s": {"a": 0.5, "b": 1.0}}, frozenset("ab"), "s", {"a": 2.0**60, "b": 2.0**60})
    assert dequeued(graph, best_first()) == [("s",), ("s", "b")]


def test_best_first_down_weights_good_nodes_exactly_whatever_the_heuristic():
    # a leads by 0.25 until it is down-weighted by 0.5; in g + h both would be rounded away.
    large = 2.0**60
    graph = Graph({"s": {"a": 1.0, "b": 0.75}}, frozenset("ab"), "s", {"a": large, "b": large})
    w = graph.vector()
    w.margin = 0.5
    seen, _ = run(GraphProblem(), graph, w, best_first(), frozenset("a"))
    assert states_of(seen) == ["s", "b"]
    seen, _ = run(GraphProblem(), graph, w, best_first(), frozenset("b"))
    assert states_of(seen) == ["s", "a"]


@quick
@given(graphs(weights=st.just(0.0), shape="dag", max_states=8), widths)
def test_where_all_scores_are_equal_only_the_order_of_insertion_counts(graph, width):
    by_level = until_goal(graph, sorted(all_paths(graph), key=len))
    for queue in (best_first(), a_star(), bounded_best_first(1000)):
        assert dequeued(graph, queue) == by_level
    assert dequeued(graph, beam(width)) == naive_beam(graph, width)


# Goals that wait


def waiting_graph(total_of_b: float) -> Graph:
    return Graph({"s": {"g": 1.0, "a": 2.0}, "a": {"b": total_of_b - 2.0}}, frozenset("gb"), "s")


@pytest.mark.parametrize(("total", "found"), [(3.0, "b"), (0.5, "g"), (1.0, "g")])
def test_a_goal_that_is_not_the_best_of_its_round_competes_again(total, found):
    order = dequeued(waiting_graph(total), beam(2))
    assert [path[-1] for path in order] == ["s", "a", found]


def test_a_goal_that_is_the_best_of_its_round_wins_at_once():
    graph = Graph({"s": {"g": 3.0, "a": 2.0}, "a": {"b": 9.0}}, frozenset("gb"), "s")
    assert [path[-1] for path in dequeued(graph, beam(2))] == ["s", "g"]


def test_a_waiting_goal_falls_off_a_beam_of_better_nodes():
    edges = {"s": {"g": 1.0, "a": 2.0}, "a": {"b": 1.0, "c": 0.5}, "b": {"t": -9.0}}
    graph = Graph(edges, frozenset("gt"), "s")
    assert [path[-1] for path in dequeued(graph, beam(2))] == ["s", "a", "b", "c", "t"]
    assert [path[-1] for path in dequeued(graph, beam(3))] == ["s", "a", "b", "c", "g"]


def test_a_waiting_goal_is_found_when_all_other_nodes_end():
    graph = Graph({"s": {"g": 1.0, "a": 2.0}}, frozenset("g"), "s")
    assert [path[-1] for path in dequeued(graph, beam(2))] == ["s", "a", "g"]


def test_a_waiting_goal_is_in_the_queue():
    w = waiting_graph(3.0).vector()
    lengths, contents = [], []

    def look(node, rest):
        lengths.append(len(rest))
        contents.append("".join(other.state for other in rest))

    search(GraphProblem(), waiting_graph(3.0), w, observed(beam(2), look))
    assert contents == ["", "g", "g"]
    assert lengths == [0, 1, 1]


def test_a_waiting_goal_is_not_recombined_with_nodes_of_later_rounds():
    # "N" ends at depth 1; "n" goes on at depth 2 with the same signature but another key.
    edges = {"s": {"N": -2.0, "a": 0.0}, "a": {"n": -1.0}, "n": {"t": -5.0}}
    graph = Graph(edges, frozenset("Nt"), "s")
    order = dequeued(graph, exact(lambda state: state.upper()))
    assert [path[-1] for path in order] == ["s", "a", "n", "N"]


# Recombination


def test_of_equal_signatures_the_best_is_kept_and_of_equal_scores_the_first():
    edges = {
        "s": {"a": 0.0, "b": 1.0},
        "a": {"X1": 5.0, "Y1": 2.0},
        "b": {"X2": 1.0, "Y2": 1.0, "X3": 4.0},
    }
    graph = Graph(edges, frozenset(), "s")
    order = dequeued(graph, exact(lambda state: state[0]))
    # b is the better, so its successors come first: X3 ties with X1, Y2 with Y1.
    assert [path[-1] for path in order] == ["s", "b", "a", "X3", "Y2"]


def test_recombination_stays_within_a_round():
    edges = {"s": {"x1": 0.0, "b": 0.0}, "b": {"x2": 1.0}}
    graph = Graph(edges, frozenset(), "s")
    order = dequeued(graph, exact(lambda state: state[0]))
    assert [path[-1] for path in order] == ["s", "x1", "b", "x2"]
    by_name = exact(lambda state: state[0], key=lambda node: len(node.state))
    assert [path[-1] for path in dequeued(graph, by_name)] == ["s", "b", "x2"]


# Wrappers and parameters


@quick
@given(GUIDED, widths, st.data())
def test_only_good_is_a_search_in_the_space_of_good_states(graph, width, data):
    goals = sorted(reachable_goals(graph, graph.start))
    y = frozenset(data.draw(st.sets(st.sampled_from(goals), min_size=1)))
    good = {state for state in graph.edges if reachable_goals(graph, state) & y}
    edges = {
        a: {b: w for b, w in following.items() if b in good}
        for a, following in graph.edges.items()
        if a in good
    }
    part = Graph(edges, graph.goals, graph.start, graph.h)
    for queue in (beam(width), bounded_best_first(width), depth_first(), greedy()):
        seen, goal = run(GraphProblem(), graph, graph.vector(), only_good(queue), y)
        assert goal is not None
        assert goal.state in y
        assert paths_of(seen) == dequeued(part, queue)


@pytest.mark.parametrize("make", [beam, bounded_best_first])
@pytest.mark.parametrize("width", [0, -1, 2.0, 2.5, "3", None, True])
def test_a_width_is_a_whole_number_from_one_up(make, width):
    with pytest.raises(ValueError, match="must be a whole number from 1 up") as caught:
        make(width)
    assert str(caught.value).endswith(f"found {width!r}")


def every_discipline():
    return [
        depth_first(),
        breadth_first(),
        best_first(),
        a_star(),
        bounded_best_first(2),
        beam(2),
        greedy(),
        hill_climbing(),
        exact(lambda state: state),
        closed_set(beam(2), key=lambda state: state),
        only_good(beam(2)),
    ]


@pytest.mark.parametrize("queue", every_discipline())
def test_nodes_measure_their_depth(queue):
    assert [queue([]).measure(Node("abc", depth=depth)) for depth in (0, 7)] == [0, 7]


@pytest.mark.parametrize("wrap", [lambda q: q, only_good, lambda q: closed_set(q, key=len)])
def test_nodes_measure_their_key_in_a_beam_that_has_one(wrap):
    def key(node):
        return len(node.state)

    for queue in (beam(2, key=key), exact(len, key=key)):
        assert wrap(queue)([]).measure(Node("abc", depth=7)) == 3


@pytest.mark.parametrize("queue", every_discipline())
def test_a_queue_of_nothing_is_empty(queue):
    nodes = queue([])
    assert not nodes
    assert len(nodes) == 0
    assert list(nodes) == []
    assert not nodes.any_good()


@pytest.mark.parametrize("queue", every_discipline())
def test_a_queue_starts_with_the_nodes_given_and_keeps_none_of_its_past(queue):
    first, second = Node("a", good=True), Node("b", good=True)
    for nodes in (queue([first, second]), queue([first, second])):
        assert len(nodes) == 2
        assert nodes.any_good()
        assert nodes.remove_front() is first
