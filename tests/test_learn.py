"""Figure 2 step by step on hand-made problems, then on random ones; and the other strategies."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso import (
    Linear,
    a_star,
    alma,
    beam,
    best_first,
    bounded_best_first,
    breadth_first,
    closed_set,
    depth_first,
    exact,
    greedy,
    hill_climbing,
    learn,
    passive_aggressive,
    perceptron,
    predict,
    siblings,
    worst,
)
from laso.problem import make_node, operators
from tests.lessons import Lesson, Weighted, changed, taught
from tests.spaces import (
    Graph,
    GraphProblem,
    Orderings,
    Path,
    all_paths,
    dot,
    leads_to,
    learnable,
    paths_of,
    quick,
    successors,
)

# Figure 2 by hand


def test_the_first_error_is_that_no_good_node_is_left():
    edges = {"s": {"a": 0.0, "b": 0.0}, "a": {"x": 0.0}, "b": {"t": 0.0}}
    lesson = taught(edges, "xt", "t", greedy())
    assert lesson.dequeued == "sabt"
    assert lesson.errors == [("b", "a")]
    assert changed(lesson, edges) == {("s", "b"): 1.0, ("s", "a"): -1.0}
    assert lesson.w.k == 2


def test_all_nodes_of_the_beam_enter_the_update():
    edges = {"s": {"a": 3.0, "b": 1.0, "c": 2.0, "d": 0.0}, "d": {"t": 0.0}}
    lesson = taught(edges, "t", "t", beam(3))
    assert lesson.dequeued == "sadt"
    assert lesson.errors == [("d", "acb")]
    third = 1.0 / 3.0
    added = {("s", "d"): 1.0, ("s", "a"): -third, ("s", "b"): -third, ("s", "c"): -third}
    assert changed(lesson, edges) == pytest.approx(added)


def test_the_second_error_is_that_a_wrong_goal_is_dequeued():
    edges = {"s": {"x": 1.0, "b": 0.0}, "b": {"t": 0.0}}
    for queue in (beam(2), best_first(), bounded_best_first(2), depth_first(), breadth_first()):
        lesson = taught(edges, "xt", "t", queue)
        assert lesson.dequeued == "sxbt"
        assert lesson.errors == [("b", "xb")]
        assert changed(lesson, edges) == {("s", "x"): -0.5, ("s", "b"): 0.5}


def test_a_bad_node_is_no_error_while_a_good_one_is_in_the_queue():
    edges = {"s": {"a": 2.0, "b": 1.0}, "a": {"c": -5.0}, "b": {"t": 0.0}}
    lesson = taught(edges, "t", "t", best_first())
    assert lesson.dequeued == "sabt"
    assert lesson.errors == []
    assert lesson.w.k == 1


def test_the_search_restarts_from_all_siblings():
    edges = {"s": {"c": 1.0, "a": 0.0, "b": 0.0}, "c": {"x": 0.0}, "a": {"t": 0.0}, "b": {"u": 0.0}}
    lesson = taught(edges, "xtu", "tu", beam(1))
    assert lesson.errors == [("ab", "c")]
    assert changed(lesson, edges) == {("s", "c"): -1.0, ("s", "a"): 0.5, ("s", "b"): 0.5}
    assert lesson.dequeued == "scat"
    # A beam of two has room for both siblings, and the better of their goals wins.
    edges["s"] |= {"d": 1.0}
    edges["b"] = {"u": 1.0}
    lesson = taught(edges, "xtu", "tu", beam(2))
    assert lesson.errors == [("ab", "cd")]
    assert lesson.dequeued == "scabu"


def test_siblings_are_all_good_nodes_of_the_same_depth():
    edges = {
        "s": {"c": 9.0, "a": 0.0, "b": 0.0},
        "c": {"x": 0.0},
        "a": {"d": 0.0, "e": 0.0, "f": 0.0},
        "b": {"g": 0.0},
        "d": {"t": 0.0},
        "e": {"y": 0.0},
        "f": {"t": 0.0},
        "g": {"u": 0.0},
    }
    lesson = taught(edges, "xytu", "tu", best_first())
    assert lesson.errors == [("dfg", "xab")]
    # d and f now have two thirds each, g one third; so d's goal comes before g.
    assert lesson.dequeued == "scxdft"
    third = 1.0 / 3.0
    assert changed(lesson, edges) == pytest.approx(
        {
            ("s", "c"): -third,
            ("c", "x"): -third,
            ("s", "a"): third,
            ("a", "d"): third,
            ("a", "f"): third,
            ("b", "g"): third,
        }
    )


def test_siblings_begin_at_the_nearest_good_ancestor():
    # b is good as well, but the wrong goal left the good paths below a.
    edges = {"s": {"a": 2.0, "b": 0.0}, "a": {"x": 1.0, "t": 0.0}, "b": {"u": 0.0}}
    lesson = taught(edges, "xtu", "tu", best_first())
    assert lesson.dequeued == "saxt"
    assert lesson.errors == [("t", "xtb")]


def test_a_good_goal_that_comes_earlier_stands_for_itself():
    edges = {
        "s": {"c": 9.0, "g": 0.0, "p": 0.0},
        "c": {"x": 0.0},
        "p": {"q": 0.0},
        "q": {"t": 0.0},
    }
    lesson = taught(edges, "xgt", "gt", best_first())
    assert lesson.errors == [("gq", "xgp")]
    sixth = 1.0 / 6.0
    assert changed(lesson, edges) == pytest.approx(
        {
            ("s", "c"): -2 * sixth,
            ("c", "x"): -2 * sixth,
            ("s", "g"): sixth,
            ("s", "p"): sixth,
            ("p", "q"): 3 * sixth,
        }
    )
    assert lesson.dequeued == "scxqt"
    lesson = taught(edges, "xgt", "g", best_first())
    assert lesson.errors == [("g", "xgp")]
    assert lesson.dequeued == "scxg"


def test_several_errors_in_one_example():
    edges = {
        "s": {"a": 1.0, "b": 0.0},
        "b": {"c": 1.0, "d": 0.0},
        "d": {"x": 1.0, "t": 0.0},
    }
    lesson = taught(edges, "xt", "t", greedy())
    assert lesson.dequeued == "sabcdxt"
    assert lesson.errors == [("b", "a"), ("d", "c"), ("t", "x")]
    assert changed(lesson, edges) == {
        ("s", "a"): -1.0,
        ("s", "b"): 1.0,
        ("b", "c"): -1.0,
        ("b", "d"): 1.0,
        ("d", "x"): -1.0,
        ("d", "t"): 1.0,
    }
    assert lesson.w.k == 4
    again = taught(edges, "xt", "t", greedy())
    graph = Graph(edges, frozenset("xt"), "s")
    assert predict(GraphProblem(), graph, again.w, greedy()) == "t"


def test_each_update_sees_the_scores_of_the_weights_before_it():
    scores = []

    def noting(w, x, sibs, nodes):
        scores.append([(node.state, node.score) for node in [*sibs, *nodes]])
        return perceptron()(w, x, sibs, nodes)

    edges = {"s": {"a": 1.0, "b": 0.5}, "b": {"c": 3.0, "t": 0.0}}
    graph = Graph(edges, frozenset("t"), "s")
    w = learn(GraphProblem(), graph, frozenset("t"), graph.vector(), greedy(), noting)
    assert scores == [[("b", 0.5), ("a", 1.0)], [("t", 1.5), ("c", 4.5)]]
    assert w.weights == {("s", "a"): 0.0, ("s", "b"): 1.5, ("b", "c"): 2.0, ("b", "t"): 1.0}


def test_hill_climbing_that_refuses_all_successors_is_corrected():
    edges = {"s": {"a": 0.0, "b": -1.0, "c": -1.0}, "b": {"t": 0.0}, "c": {"t": 0.0}}
    lesson = taught(edges, "t", "t", hill_climbing())
    assert lesson.errors == [("bc", "s"), ("t", "b")]
    assert lesson.dequeued == "sbt"
    assert changed(lesson, edges) == {("s", "b"): 0.5, ("s", "c"): 0.5, ("b", "t"): 1.0}


def test_hill_climbing_that_takes_a_bad_step_is_corrected():
    edges = {"s": {"a": 2.0, "b": 1.0}, "b": {"t": 1.0}}
    lesson = taught(edges, "t", "t", hill_climbing())
    assert lesson.errors == [("b", "a")]
    assert lesson.dequeued == "sabt"


def test_a_good_goal_that_waits_in_the_beam_is_a_good_node():
    edges = {"s": {"a": 2.0, "g": 1.0}, "a": {"b": -5.0, "c": -5.0}}
    lesson = taught(edges, "g", "g", beam(2))
    assert lesson.dequeued == "sag"
    assert lesson.errors == []


def test_a_good_goal_that_falls_off_the_beam_is_an_error():
    edges = {"s": {"a": 2.0, "g": 1.0}, "a": {"b": 0.0, "c": 0.0}}
    lesson = taught(edges, "g", "g", beam(2))
    assert lesson.errors == [("g", "bc")]
    assert lesson.dequeued == "sabg"


def test_good_nodes_of_a_later_round_are_good_nodes():
    # The first step covers two words with p, and one with a.
    reach = {"s": 0, "a": 1, "b": 2, "p": 2, "q": 3, "t": 4}
    edges = {"s": {"a": 0.0, "p": 0.0}, "a": {"b": 1.0}, "p": {"q": 0.0}, "q": {"t": 0.0}}
    lesson = taught(edges, "t", "t", beam(1, key=lambda node: reach[node.state]))
    # While a is expanded, p waits for its round. There it loses to b, which covers as much in two
    # steps; so it is p that b is compared with, and not q, which is two steps deep as well.
    assert lesson.dequeued == "sabpqt"
    assert lesson.errors == [("p", "b")]
    added = {("s", "p"): 1.0, ("s", "a"): -1.0, ("a", "b"): -1.0}
    assert changed(lesson, edges) == added


def test_siblings_go_on_to_the_first_that_covers_as_much():
    # No good node covers three words: p covers two, and q after it five.
    reach = {"s": 0, "x": 3, "p": 2, "q": 5, "t": 6}
    edges = {"s": {"x": 0.0, "p": 0.0}, "p": {"q": 0.0}, "q": {"t": 0.0}}
    lesson = taught(edges, "xt", "t", beam(1, key=lambda node: reach[node.state]))
    assert lesson.dequeued == "spxqt"
    assert lesson.errors == [("q", "x")]


@pytest.mark.parametrize(
    ("reach", "wrong"),
    [({"s": 0, "x": 0, "b": 1, "t": 2}, "x"), ({"s": 3, "x": 2, "b": 2, "t": 1}, "xb")],
)
def test_siblings_are_at_least_a_step_on_where_the_key_does_not_rise(reach, wrong):
    edges = {"s": {"x": 0.0, "b": 0.0}, "b": {"t": 0.0}}
    lesson = taught(edges, "xt", "t", beam(2, key=lambda node: reach[node.state]))
    assert lesson.dequeued == "sxbt"
    assert lesson.errors == [("b", wrong)]


def test_nodes_of_rounds_not_yet_open_do_not_enter_the_update():
    reach = {"s": 0, "x": 1, "b": 1, "p": 2, "t": 3}
    edges = {"s": {"x": 1.0, "p": 0.0, "b": 0.0}, "b": {"t": 0.0}}
    lesson = taught(edges, "xt", "t", beam(2, key=lambda node: reach[node.state]))
    assert lesson.errors == [("b", "xb")]
    assert lesson.dequeued == "sxbt"


def test_the_margin_turns_a_narrow_success_into_an_error():
    edges = {"s": {"a": 0.0, "t": 0.5}}
    assert taught(edges, "at", "t", greedy()).errors == []
    graph = Graph(edges, frozenset("at"), "s")
    w = graph.vector()
    w.margin = 1.0
    lesson = Lesson(GraphProblem(), graph, frozenset("t"), w, greedy())
    assert lesson.errors == [("t", "a")]


def test_the_heuristic_counts_in_learning_too():
    edges = {"s": {"a": 0.0, "b": 0.0}, "b": {"t": 0.0}}
    assert taught(edges, "t", "t", greedy(), h={"b": 1.0}).errors == []
    assert taught(edges, "t", "t", greedy(), h={"a": 1.0}).errors == [("b", "a")]


def test_an_update_may_return_another_vector():
    seen = []

    def fresh(w, x, sibs, nodes):
        seen.append(w)
        return Linear({("s", "b"): 1.0, ("b", "t"): float(len(seen))}, k=w.k + 1)

    edges = {"s": {"a": 1.0, "b": 0.0}, "b": {"x": 1.0, "t": 0.0}}
    graph = Graph(edges, frozenset("xt"), "s")
    first = graph.vector()
    w = learn(GraphProblem(), graph, frozenset("t"), first, greedy(), fresh)
    assert seen == [first]
    assert w.weights == {("s", "b"): 1.0, ("b", "t"): 1.0}
    assert first.weights == graph.weights()


def test_siblings_in_a_space_of_orderings():
    problem, y, w = Orderings(), {"a": "A", "b": "B", "c": "A"}, Linear()
    node = make_node(problem, "abc", w, y)
    for step in [("a", "B"), ("b", "B")]:
        node = next(n for n in operators(problem, "abc", node, w, y) if n.operator == step)
    found = ["".join(item for item, _ in sib.state) for sib in siblings(problem, "abc", y, w, node)]
    assert found == ["ab", "ac", "ba", "bc", "ca", "cb"]


def test_learning_in_a_space_of_orderings_accepts_any_order():
    problem, y = Orderings(), {"a": "A", "b": "B", "c": "B"}
    w = Linear({("time", "c", 0): 5.0})
    lesson = Lesson(problem, "abc", y, w, greedy())
    # c comes first, with the wrong label; all six first steps compete, three of them good.
    ((sibs, nodes, *_), *_) = lesson.updates
    assert [sib.state for sib in sibs] == [(("a", "A"),), (("b", "B"),), (("c", "B"),)]
    assert [node.state for node in nodes] == [(("c", "A"),)]
    assert lesson.nodes[-1].good
    assert lesson.nodes[-1].is_goal


# Figure 2 on random spaces


def half(state: int) -> int:
    return state // 2


DISCIPLINES = {
    "greedy": greedy(),
    "beam 2": beam(2),
    "beam 3": beam(3),
    "grouped beam": beam(2, key=lambda node: half(node.state)),
    "bounded 1": bounded_best_first(1),
    "bounded 3": bounded_best_first(3),
    "best first": best_first(),
    "A*": a_star(),
    "hill-climbing": hill_climbing(),
    "exact": exact(lambda state: state),
    "depth first": depth_first(),
    "breadth first": breadth_first(),
    "memory": closed_set(beam(2), key=lambda state: state),
}
RULES = [perceptron(), perceptron(margin=1.0), alma(alpha=0.5), passive_aggressive()]


@pytest.mark.parametrize("name", DISCIPLINES)
@settings(quick, max_examples=40)
@given(drawn=learnable(), rule=st.sampled_from(RULES))
def test_learning_cannot_fail(name, drawn, rule):
    graph, y = drawn
    w = graph.vector()
    w.margin = rule.start().margin
    lesson = Lesson(GraphProblem(), graph, y, w, DISCIPLINES[name], rule=rule)
    assert lesson.nodes[-1].is_goal
    assert lesson.nodes[-1].state in y
    # Only the passive-aggressive rule can find that there is nothing to correct, where h decided.
    idle = sum(before == after for _, _, before, after, _ in lesson.updates)
    counted = len(lesson.updates) - (idle if rule == passive_aggressive() else 0)
    assert lesson.w.k == 1 + counted


def brute_siblings(
    graph: Graph, y: frozenset[Any], node: Path, measure: Callable[[Path], int] = len
) -> list[Path]:
    def good(path: Path) -> bool:
        return leads_to(graph, y, path[-1])

    def far_enough(path: Path) -> bool:
        return path[-1] in graph.goals or measure(path) >= measure(node)

    turn = max(i for i in range(1, len(node) + 1) if all(good(node[:j]) for j in range(1, i + 1)))
    found = [
        path
        for path in all_paths(graph)
        if len(path) > turn
        and path[:turn] == node[:turn]
        and all(good(path[:i]) for i in range(1, len(path) + 1))
        and [i for i in range(turn + 1, len(path) + 1) if far_enough(path[:i])] == [len(path)]
    ]
    return sorted(found, key=len)


@pytest.mark.parametrize("name", DISCIPLINES)
@settings(quick, max_examples=40)
@given(drawn=learnable())
def test_every_update_is_made_of_an_error_and_its_siblings(name, drawn):
    graph, y = drawn
    measure = (lambda path: half(path[-1])) if name == "grouped beam" else len
    lesson = Lesson(GraphProblem(), graph, y, graph.vector(), DISCIPLINES[name])
    for sibs, nodes, before, after, _ in lesson.updates:
        wrong = nodes[0]
        if name == "hill-climbing" and wrong.good:
            assert len(nodes) == 1
            assert paths_of(sibs) == [
                path
                for path in successors(graph, paths_of([wrong])[0])
                if leads_to(graph, y, path[-1])
            ]
        else:
            assert not wrong.good
            assert wrong.is_goal or not any(node.good for node in nodes)
            assert paths_of(sibs) == brute_siblings(graph, y, paths_of([wrong])[0], measure)
        assert sibs
        assert all(node.good for node in sibs)
        expected = dict(before)
        for share, group in ((1.0 / len(sibs), sibs), (-1.0 / len(nodes), nodes)):
            for path in paths_of(group):
                for edge in pairwise(path):
                    expected[edge] = expected.get(edge, 0.0) + share
        assert after == pytest.approx(expected)


@quick
@given(learnable(), st.integers(1, 3), st.lists(st.integers(0, 4), min_size=8, max_size=8))
def test_learning_cannot_fail_whatever_the_key(drawn, width, keys):
    graph, y = drawn
    queue = beam(width, key=lambda node: keys[node.state])
    lesson = Lesson(GraphProblem(), graph, y, graph.vector(), queue)
    assert lesson.nodes[-1].state in y
    for sibs, nodes, *_ in lesson.updates:
        wrong = paths_of(nodes)[0]
        assert paths_of(sibs) == brute_siblings(graph, y, wrong, lambda path: keys[path[-1]])


def naive_learn(graph: Graph, y: frozenset[Any], w: Weighted, width: int) -> list[Path]:
    """Figure 2 on lists of paths, with a bounded queue and the max update; ``w`` is changed."""

    def good(path: Path) -> bool:
        return leads_to(graph, y, path[-1])

    def score(path: Path) -> float:
        return dot(w, pairwise(path)) + graph.h.get(path[-1], 0.0)

    order, queue = [], [(graph.start,)]
    while True:
        queue = sorted(queue, key=lambda path: -score(path))[:width]
        first = queue[0]
        order.append(first)
        if not any(map(good, queue)) or (first[-1] in graph.goals and not good(first)):
            sibs = brute_siblings(graph, y, first)
            best = max(sibs, key=score)
            bad = max((path for path in queue if not good(path)), key=score)
            for edge in pairwise(best):
                w[edge] += 1.0
            for edge in pairwise(bad):
                w[edge] -= 1.0
            queue = sibs
        elif first[-1] in graph.goals:
            return order
        else:
            queue = queue[1:] + successors(graph, first)


@quick
@given(learnable(shape="tree"), st.integers(1, 4))
def test_learning_equals_its_twin(drawn, width):
    graph, y = drawn
    rule = perceptron(weighting=worst)
    lesson = Lesson(GraphProblem(), graph, y, graph.vector(), bounded_best_first(width), rule=rule)
    weights = graph.weights()
    assert paths_of(lesson.nodes) == naive_learn(graph, y, weights, width)
    assert lesson.w.weights == weights
