"""Strategies other than that of Figure 2, and outputs that cannot be reached."""

from collections.abc import Hashable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso import (
    Linear,
    SearchFailed,
    Unreachable,
    beam,
    best_first,
    bounded_best_first,
    depth_first,
    early,
    exact,
    greedy,
    hill_climbing,
    learn,
    max_violation,
    perceptron,
    predict,
    restart,
    search,
    standard,
)
from tests.lessons import Lesson, Weighted, taught
from tests.spaces import (
    Graph,
    GraphProblem,
    Orderings,
    Path,
    Segmentation,
    Tagging,
    covered,
    dot,
    labellings,
    last,
    learnable,
    paths_of,
    quick,
    segmentation,
    segmentations,
    tagging,
    tagging_phi,
)

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
