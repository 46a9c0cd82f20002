"""Problems and nodes: what a step is worth, what is y-good, and what bad input is told."""

import math

import pytest
from hypothesis import given

from laso import (
    BadFeature,
    LasoError,
    Linear,
    Problem,
    Unreachable,
    alma,
    greedy,
    learn,
    linear_kernel,
    perceptron,
    predict,
    search,
)
from laso.problem import UNKNOWN, Node, make_node, operators, rescored, shortened
from tests.spaces import (
    Graph,
    GraphProblem,
    Orderings,
    Tagging,
    dot,
    quick,
    run,
    tagging,
    tagging_phi,
)

LINE = Graph({"s": {"a": 2.0, "b": -1.0}, "a": {"t": 3.0}}, frozenset("t"), "s", {"a": 0.5})


def test_make_node_is_the_initial_state_with_an_empty_path():
    node = make_node(GraphProblem(), LINE, LINE.vector())
    assert (node.state, node.parent, node.operator, node.depth) == ("s", None, None, 0)
    assert (node.g, node.h, node.score, node.good, node.is_goal) == (0.0, 0.0, 0.0, None, False)
    assert node.path == [node]
    assert node.operators == []
    assert node.phi() == {}


def test_operators_makes_one_node_for_each_operator_in_order():
    w = LINE.vector()
    root = make_node(GraphProblem(), LINE, w)
    a, b = operators(GraphProblem(), LINE, root, w)
    assert (a.state, a.operator, a.parent, a.depth) == ("a", "a", root, 1)
    assert (a.g, a.h, a.score) == (2.0, 0.5, 2.5)
    assert (b.g, b.h, b.score) == (-1.0, 0.0, -1.0)
    (t,) = operators(GraphProblem(), LINE, a, w)
    assert t.is_goal
    assert (t.g, t.h, t.score) == (5.0, 0.0, 5.0)
    assert t.path == [root, a, t]
    assert t.operators == ["a", "t"]
    assert t.phi() == {("s", "a"): 1.0, ("a", "t"): 1.0}


@quick
@given(tagging())
def test_g_is_the_product_of_weights_and_phi(drawn):
    x, w = drawn
    goal = search(Tagging("ABC"), x, w, greedy())
    assert goal is not None
    names = tagging_phi(x, goal.state)
    assert goal.g == dot(w.weights, names)
    assert goal.phi() == {name: float(names.count(name)) for name in names}
    assert w.dot(goal.phi()) == goal.g


@pytest.mark.parametrize(
    ("given_", "meant"),
    [
        ({"f": 2, "g": 0.5}, {"f": 2.0, "g": 0.5}),
        (["f", "g", "f"], {"f": 2.0, "g": 1.0}),
        ((name for name in "ffg"), {"f": 2.0, "g": 1.0}),
        ({"f"}, {"f": 1.0}),
        ([], {}),
    ],
)
def test_features_are_a_mapping_or_names_that_count_one_each(given_, meant):
    class OneStep(Tagging):
        def features(self, x, state, operator):
            return given_

    problem = OneStep("A")
    w = Linear({"f": 3.0, "g": 10.0})
    (child,) = operators(problem, "x", make_node(problem, "x", w), w)
    assert child.features == meant
    assert child.g == 3.0 * meant.get("f", 0.0) + 10.0 * meant.get("g", 0.0)


def test_goodness_is_asked_only_below_good_nodes():
    asked = []

    class Asking(Tagging):
        def is_good(self, x, y, node):
            asked.append("".join(node.state))
            # "BA" would be called good here, but its parent is not.
            return node.state in {(), ("A",), ("A", "A"), ("B", "A")}

    problem, w = Asking(), Linear()
    root = make_node(problem, "xx", w, "AA")
    a, b = operators(problem, "xx", root, w, "AA")
    below = operators(problem, "xx", a, w, "AA") + operators(problem, "xx", b, w, "AA")
    assert [node.good for node in (root, a, b, *below)] == [True, True, False, True] + [False] * 3
    assert asked == ["", "A", "B", "AA", "AB"]


def test_the_default_loss_is_one_for_the_step_off_the_good_path():
    problem, w = Tagging(), Linear()
    root = make_node(problem, "xxx", w, tuple("AAA"))
    a, b = operators(problem, "xxx", root, w, tuple("AAA"))
    ba = operators(problem, "xxx", b, w, tuple("AAA"))[0]
    ab = operators(problem, "xxx", a, w, tuple("AAA"))[1]
    assert [node.loss for node in (root, a, b, ba, ab)] == [0.0, 0.0, 1.0, 1.0, 1.0]


def test_losses_add_up_along_the_path():
    class Hamming(Tagging):
        def loss(self, x, y, node):
            return float(node.operator != y[node.depth - 1])

    seen, _ = run(Hamming(), "xxx", Linear({("word", "x", "B"): 1.0}), greedy(), tuple("ABA"))
    assert [node.loss for node in seen] == [0.0, 1.0, 1.0, 2.0]


def test_without_an_output_nobody_asks_for_goodness_or_loss():
    class Silent(Tagging):
        def is_good(self, x, y, node):
            raise AssertionError("is_good was asked")

        def loss(self, x, y, node):
            raise AssertionError("loss was asked")

    assert predict(Silent(), "xy", Linear(), greedy()) == ("A", "A")
    with pytest.raises(AssertionError, match="is_good was asked"):
        search(Silent(), "xy", Linear(), greedy(), y=None)


def test_none_may_be_an_output():
    class WantsNone(Tagging):
        def is_good(self, x, y, node):
            return y is None and "B" not in node.state

    assert make_node(WantsNone(), "x", Linear(), None).good is True
    assert make_node(WantsNone(), "x", Linear(), UNKNOWN).good is None
    assert repr(UNKNOWN) == "UNKNOWN"


def test_good_nodes_are_down_weighted_by_the_margin():
    w = Linear({("word", "x", "A"): 2.0})
    w.margin = 0.75
    problem = Tagging()
    a, b = operators(problem, "x", make_node(problem, "x", w, ("A",)), w, ("A",))
    assert (a.g, a.down, a.score) == (2.0, 0.75, 1.25)
    assert (b.g, b.down, b.score) == (0.0, 0.0, 0.0)
    a, b = operators(problem, "x", make_node(problem, "x", w), w)
    assert (a.score, b.score) == (2.0, 0.0)
    assert (a.down, b.down) == (0.0, 0.0)


def test_rescored_values_whole_paths_again():
    w = Linear()
    goal = search(Tagging(), "xy", w, greedy())
    assert goal is not None
    w.add({("word", "x", "A"): 2.0, ("word", "y", "A"): 3.0}, 1.0)
    assert goal.score == 0.0
    assert rescored([goal], w) == [goal]
    assert [node.score for node in goal.path] == [0.0, 2.0, 5.0]


def test_rescored_keeps_heuristic_and_margin():
    graph = Graph({"s": {"a": 0.0}, "a": {"t": 0.0}}, frozenset("t"), "s", {"a": 7.0})
    w = Linear()
    root = make_node(GraphProblem(), graph, w, frozenset("t"))
    (a,) = operators(GraphProblem(), graph, root, w, frozenset("t"))
    w.add({("s", "a"): 2.0}, 1.0)
    w.margin = 0.5
    rescored([a], w)
    assert (a.g, a.h, a.down, a.score) == (2.0, 7.0, 0.5, 8.5)


def test_nodes_of_equal_content_are_different_nodes():
    assert Node("s") != Node("s")
    assert len({Node("s"), Node("s")}) == 2


def test_predict_gives_what_output_makes_of_the_goal():
    assert predict(Orderings(), "ab", Linear(), greedy()) == {"a": "A", "b": "A"}
    assert predict(Tagging(), "ab", Linear(), greedy()) == ("A", "A")


@pytest.mark.parametrize(
    ("method", "signature", "arguments"),
    [
        ("initial", "initial(x)", 1),
        ("operators", "operators(x, state)", 2),
        ("apply", "apply(x, state, operator)", 3),
        ("is_goal", "is_goal(x, state)", 2),
        ("features", "features(x, state, operator)", 3),
        ("is_good", "is_good(x, y, node)", 3),
    ],
)
def test_a_missing_method_is_named_with_its_class_and_arguments(method, signature, arguments):
    class Half(Tagging):
        pass

    setattr(Half, method, getattr(Problem, method))
    with pytest.raises(NotImplementedError) as caught:
        learn(Half(), "xy", ("A", "B"), Linear(), greedy(), perceptron())
    assert str(caught.value) == f"Half needs a method {signature}"
    with pytest.raises(NotImplementedError):
        getattr(Problem(), method)(*[None] * arguments)


def test_the_defaults_of_the_other_methods():
    problem = Problem()
    assert problem.h("x", "state") == 0.0
    assert problem.output("x", "state") == "state"


class Faulty(Tagging):
    """Gives one bad value at the second word."""

    def __init__(self, feature=1.0, h=0.0):
        super().__init__()
        self.feature, self.heuristic = feature, h

    def features(self, x, state, operator):
        return {"fine": 1.0, "odd": self.feature if len(state) == 1 else 1.0}

    def h(self, x, state):
        return self.heuristic if len(state) == 2 else 0.0


RULES = {
    "linear": perceptron(),
    "p-norm": alma(p=3.0),
    "kernel": perceptron(kernel=linear_kernel()),
}
BAD = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("bad", BAD)
def test_a_feature_that_is_no_finite_number_is_named(rule, bad):
    with pytest.raises(BadFeature) as caught:
        predict(Faulty(feature=bad), "xyz", rule.start(), greedy())
    assert str(caught.value) == (
        f"a feature must be a finite number, found 'odd' = {bad} for operator 'A'"
    )
    with pytest.raises(BadFeature, match=f"^a feature must .* found 'odd' = {bad} for operator"):
        learn(Faulty(feature=bad), "xyz", tuple("BBB"), rule.start(), greedy(), rule)


@pytest.mark.parametrize("bad", BAD)
def test_a_heuristic_that_is_no_finite_number_is_named(bad):
    with pytest.raises(BadFeature) as caught:
        predict(Faulty(h=bad), "xyz", Linear(), greedy())
    assert str(caught.value) == (
        f"a score must be a finite number, found g = 0.0, h = {bad} for operator 'A' "
        "into state ('A', 'A')"
    )


def test_a_bad_heuristic_of_the_initial_state_is_found_too():
    problem = Faulty()
    problem.h = lambda x, state: math.nan  # type: ignore[method-assign]
    with pytest.raises(BadFeature, match=r"found g = 0\.0, h = nan for operator None"):
        predict(problem, "xyz", Linear(), greedy())


def test_a_score_that_overflows_is_named_though_every_feature_is_finite():
    w = Linear({"odd": 10.0})
    with pytest.raises(BadFeature, match=r"found g = inf, h = 0\.0 for operator 'A'"):
        predict(Faulty(feature=1e308), "xyz", w, greedy())


@pytest.mark.parametrize("text", ["word", "", b"word"])
def test_a_text_is_no_list_of_features(text):
    class Wordy(Tagging):
        def features(self, x, state, operator):
            return text

    with pytest.raises(BadFeature) as caught:
        predict(Wordy(), "x", Linear(), greedy())
    assert str(caught.value) == (
        f"features must be a mapping or a list of names, found the text {text!r} for operator 'A'"
    )


def test_the_state_of_an_error_message_is_cut_where_it_is_long():
    assert shortened("short") == "'short'"
    assert shortened("x" * 200) == "'" + "x" * 76 + "..."
    assert len(shortened("x" * 200)) == 80


def test_an_output_that_the_initial_state_cannot_reach():
    with pytest.raises(Unreachable) as caught:
        learn(GraphProblem(), LINE, frozenset("q"), Linear(), greedy(), perceptron())
    assert str(caught.value) == (
        "the output frozenset({'q'}) cannot be reached: is_good says so of the initial state 's'"
    )
    assert isinstance(caught.value, LasoError)


@pytest.mark.parametrize("empty", [True, False])
def test_goodness_and_goals_may_be_any_truth_value(empty):
    class Truthy(Tagging):
        def is_good(self, x, y, node):
            return ["yes"]

        def is_goal(self, x, state):
            return [] if empty else ["yes"]

    node = make_node(Truthy(), "x", Linear(), "A")
    assert node.good is True
    assert node.is_goal is not empty
