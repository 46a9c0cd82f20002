"""Figure 2 step by step on hand-made problems, then on random ones; and the other strategies."""

from collections.abc import Callable, Hashable
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso import (
    Linear,
    Node,
    SearchFailed,
    Unreachable,
    a_star,
    alma,
    beam,
    best_first,
    bounded_best_first,
    breadth_first,
    closed_set,
    depth_first,
    early,
    exact,
    greedy,
    hill_climbing,
    learn,
    max_violation,
    passive_aggressive,
    perceptron,
    predict,
    restart,
    search,
    siblings,
    standard,
    worst,
)
from laso.problem import make_node, operators
from laso.queues import observed
from tests.spaces import (
    Graph,
    GraphProblem,
    Orderings,
    Path,
    Segmentation,
    Tagging,
    all_paths,
    covered,
    dot,
    labellings,
    last,
    leads_to,
    learnable,
    paths_of,
    quick,
    segmentation,
    segmentations,
    successors,
    tagging,
    tagging_phi,
)

Weighted = dict[Hashable, float]


class Lesson:
    """One call of a strategy with all that happened: dequeued nodes, and updates with weights."""

    def __init__(self, problem, x, y, w, queue, *, rule=None, strategy=restart):
        self.rule: Any = rule or perceptron()
        self.nodes: list[Node] = []
        self.updates: list[Any] = []
        queue = observed(queue, lambda node, rest: self.nodes.append(node))
        self.w = strategy(problem, x, y, w, queue, self.update)

    def update(self, w, x, sibs, nodes):
        before = dict(w.weights)
        margin = w.margin
        better = self.rule(w, x, sibs, nodes)
        self.updates.append((list(sibs), list(nodes), before, dict(better.weights), margin))
        assert len(self.updates) < 1000, "learning does not end"
        return better

    @property
    def dequeued(self):
        return "".join(node.state for node in self.nodes)

    @property
    def errors(self):
        """The states of the siblings and of the queue at each update."""
        return [
            ("".join(node.state for node in sibs), "".join(node.state for node in nodes))
            for sibs, nodes, *_ in self.updates
        ]


def taught(edges, goals, y, queue, **options) -> Lesson:
    graph = Graph(edges, frozenset(goals), "s", options.pop("h", {}))
    return Lesson(GraphProblem(), graph, frozenset(y), graph.vector(), queue, **options)


def changed(lesson: Lesson, edges) -> dict[Hashable, float]:
    """What learning added to each edge, unchanged ones left out."""
    first = Graph(edges, frozenset(), "s").weights()
    weights = lesson.w.weights
    return {e: v - first.get(e, 0.0) for e, v in weights.items() if v != first.get(e, 0.0)}


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


# Strategies

STRATEGIES = [restart, early, standard, max_violation]


@quick
@given(learnable(), st.integers(1, 3))
def test_early_stops_after_the_first_update_of_laso(drawn, width):
    graph, y = drawn
    for queue in (beam(width), bounded_best_first(width), hill_climbing()):
        full = Lesson(GraphProblem(), graph, y, graph.vector(), queue)
        first = Lesson(GraphProblem(), graph, y, graph.vector(), queue, strategy=early)
        assert len(first.updates) == min(1, len(full.updates))
        assert paths_of(first.nodes) == paths_of(full.nodes)[: len(first.nodes)]
        if full.updates:
            assert first.w.weights == full.updates[0][3]
            assert not first.nodes[-1].good or not first.nodes[-1].is_goal
        else:
            assert len(first.nodes) == len(full.nodes)


@pytest.mark.parametrize("strategy", STRATEGIES)
@quick
@given(tagging(), st.integers(1, 4))
def test_no_strategy_touches_the_weights_of_a_right_prediction(strategy, drawn, width):
    x, w = drawn
    problem = Tagging("ABC")
    for queue in (beam(width), bounded_best_first(width), best_first(), exact(last)):
        y = predict(problem, x, w, queue)
        before = dict(w.weights)
        lesson = Lesson(problem, x, y, w, queue, strategy=strategy)
        assert lesson.updates == []
        assert lesson.w is w
        assert (w.weights, w.k) == (before, 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
@quick
@given(learnable(), st.integers(1, 3))
def test_any_good_goal_is_a_right_prediction(strategy, drawn, width):
    graph, y = drawn
    goal = search(GraphProblem(), graph, graph.vector(), beam(width), y=y)
    if goal is None:
        return
    lesson = Lesson(GraphProblem(), graph, y, graph.vector(), beam(width), strategy=strategy)
    assert bool(lesson.updates) == (goal.state not in y)


def sentences(seed: int) -> tuple[list[tuple[Path, Path]], Weighted]:
    """Sentences without repeated words and weights of which no two sums are the same."""
    random = Random(seed)
    data = []
    for _ in range(6):
        x = tuple(random.sample("pqrstu", random.randint(2, 4)))
        data.append((x, tuple(random.choice("ABC") for _ in x)))
    names: list[Hashable] = [("word", word, label) for word in "pqrstu" for label in "ABC"]
    names += [("pair", before, label) for before in "^ABC" for label in "ABC"]
    return data, {name: random.randrange(2**30) / 2**30 for name in names}


def collins(data, weights: Weighted, epochs: int) -> Weighted:
    """The structured perceptron of Collins (2002) with the argmax by brute force."""
    w = dict(weights)
    for _ in range(epochs):
        for x, y in data:
            best = max(labellings("ABC", len(x)), key=lambda z: dot(w, tagging_phi(x, z)))
            if best != y:
                for name in tagging_phi(x, y):
                    w[name] += 1.0
                for name in tagging_phi(x, best):
                    w[name] -= 1.0
    return w


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("queue", [exact(last), beam(10_000)])
def test_standard_is_the_structured_perceptron(seed, queue):
    data, weights = sentences(seed)
    w = Linear(weights)
    for _ in range(3):
        for x, y in data:
            standard(Tagging("ABC"), x, y, w, queue, perceptron())
    assert w.k > 1
    assert w.weights == collins(data, weights, 3)


def huang(data, weights: Weighted, width: int, epochs: int) -> Weighted:
    """Max-violation with a beam of prefixes, each scored as a whole, and one gold sequence."""
    w = dict(weights)
    for _ in range(epochs):
        for x, y in data:
            prefixes = (z for n in range(len(x) + 1) for z in labellings("ABC", n))
            score = {z: dot(w, tagging_phi(x, z)) for z in prefixes}
            beam_: list[Path] = [()]
            violations = []
            for n in range(1, len(x) + 1):
                longer = [(*z, label) for z in beam_ for label in "ABC"]
                beam_ = sorted(longer, key=lambda z: -score[z])[:width]
                if beam_[0] != y[:n]:
                    violations.append((score[beam_[0]] - score[y[:n]], beam_[0]))
            if beam_[0] != y:
                _, bad = max(violations, key=lambda pair: pair[0])
                for name in tagging_phi(x, y[: len(bad)]):
                    w[name] += 1.0
                for name in tagging_phi(x, bad):
                    w[name] -= 1.0
    return w


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("width", [1, 2, 10_000])
def test_max_violation_equals_its_twin(seed, width):
    data, weights = sentences(seed)
    w = Linear(weights)
    for _ in range(3):
        for x, y in data:
            max_violation(Tagging("ABC"), x, y, w, beam(width), perceptron())
    assert w.k > 1
    assert w.weights == huang(data, weights, width, 3)


def test_max_violation_compares_the_prefixes_that_are_furthest_apart():
    # A is wrong everywhere; after one word it leads by 1, after two by 5, after three by 2.
    w = Linear({("word", "x", "A"): 1.0, ("word", "y", "A"): 4.0, ("word", "z", "A"): -3.0})
    w.add({("pair", "A", "B"): -9.0}, 1.0)
    y = ("B", "B", "B")
    full = Lesson(Tagging(), "xyz", y, Linear(w.weights), beam(2), strategy=standard)
    assert [[node.state for node in group] for group in full.updates[0][:2]] == [
        [y],
        [tuple("AAA")],
    ]
    lesson = Lesson(Tagging(), "xyz", y, w, beam(2), strategy=max_violation)
    ((sibs, nodes, *_),) = lesson.updates
    assert [node.state for node in sibs] == [("B", "B")]
    assert [node.state for node in nodes] == [("A", "A")]


@quick
@given(segmentation(), st.integers(1, 3), st.data())
def test_max_violation_by_what_is_covered_compares_equal_lengths(drawn, width, data):
    x, w = drawn
    y = data.draw(st.sampled_from(segmentations(x)))

    queue = beam(width, key=lambda node: covered(node.state))
    lesson = Lesson(Segmentation(), x, y, w, queue, strategy=max_violation)
    for (good,), (bad,), *_ in lesson.updates:
        assert covered(good.state) == covered(bad.state)
        assert good.state == y[: len(good.state)]
        assert bad.state != good.state


@pytest.mark.parametrize("strategy", [standard, max_violation])
def test_where_several_paths_are_good_the_search_among_good_nodes_chooses(strategy):
    problem, y = Orderings(), {"a": "B", "b": "B"}
    w = Linear({("item", "a", "A"): 9.0, ("item", "b", "A"): 8.0, ("time", "b", 0): 0.5})
    lesson = Lesson(problem, "ab", y, w, beam(1), strategy=strategy)
    ((sibs, nodes, *_),) = lesson.updates
    assert [node.state for node in nodes] == [(("a", "A"), ("b", "A"))]
    assert [node.state for node in sibs] == [(("b", "B"), ("a", "B"))]


@pytest.mark.parametrize("strategy", [standard, max_violation])
def test_strategies_that_compare_outputs_need_a_search_that_reaches_one(strategy):
    graph = Graph({"s": {"a": -1.0}, "a": {"t": 0.0}}, frozenset("t"), "s")
    arguments = (GraphProblem(), graph, frozenset("t"), graph.vector())
    with pytest.raises(SearchFailed) as caught:
        strategy(*arguments, hill_climbing(), perceptron())
    assert str(caught.value) == (
        "no goal was dequeued on the way to frozenset({'t'}): this strategy compares complete "
        "outputs and needs a queue discipline that always reaches one"
    )


# Outputs that cannot be reached


class Hopeful(Tagging):
    """Says of every node that it is good, whatever the operators can do."""

    def is_good(self, x, y, node):
        return node.state == y[: len(node.state)] or node.depth < 2


def test_an_output_that_turns_out_to_be_unreachable_midway():
    with pytest.raises(Unreachable) as caught:
        learn(Hopeful(), "xyz", tuple("AQA"), Linear(), greedy(), perceptron())
    assert str(caught.value) == (
        "the output ('A', 'Q', 'A') cannot be reached: is_good says that state ('A',) leads to "
        "it, but none of its 2 operators leads to a y-good state"
    )


@pytest.mark.parametrize("queue", [greedy(), beam(3), best_first(), depth_first(), hill_climbing()])
def test_no_operators_before_a_good_goal(queue):
    class Hoping(GraphProblem):
        def is_good(self, x, y, node):
            return node.state in y

    edges = {"s": {"a": 1.0, "b": 0.0}, "b": {"c": 0.0}}
    graph = Graph(edges, frozenset("tx"), "s")
    with pytest.raises(Unreachable) as caught:
        learn(Hoping(), graph, "sat", graph.vector(), queue, perceptron())
    assert str(caught.value) == (
        "the output 'sat' cannot be reached: is_good says that state 'a' leads to it, but "
        "operators returned nothing for it and it is no goal"
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_says_that_the_initial_state_is_not_good(strategy):
    with pytest.raises(Unreachable, match="is_good says so of the initial state 's'"):
        taught({"s": {"a": 0.0}}, "a", "q", greedy(), strategy=strategy)
