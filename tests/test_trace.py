"""Traces say what happened, event by event, and change nothing."""

from hypothesis import given
from hypothesis import strategies as st

from laso import (
    Linear,
    a_star,
    beam,
    best_first,
    bounded_best_first,
    closed_set,
    depth_first,
    early,
    exact,
    greedy,
    hill_climbing,
    learn,
    loss_proportional,
    max_violation,
    passive_aggressive,
    perceptron,
    restart,
    search,
    standard,
)
from laso.trace import trace_learn, trace_search
from tests.spaces import (
    Graph,
    GraphProblem,
    Tagging,
    learnable,
    path_of,
    quick,
    run,
    tagging,
)

GRAPH = Graph({"s": {"a": 2.0, "g": 1.0}, "a": {"b": 0.5}}, frozenset("gb"), "s", {"a": 0.25})


def described(node, parent, operator, state, depth, g, h, score, good, goal):
    names = ["node", "parent", "operator", "state", "depth", "g", "h", "score", "good", "goal"]
    values = (node, parent, operator, state, depth, g, h, score, good, goal)
    return dict(zip(names, values, strict=True))


def test_a_search_is_told_event_by_event():
    s = described(0, None, None, "s", 0, 0.0, 0.0, 0.0, None, False)
    a = described(1, 0, "a", "a", 1, 2.0, 0.25, 2.25, None, False)
    g = described(2, 0, "g", "g", 1, 1.0, 0.0, 1.0, None, True)
    b = described(3, 1, "b", "b", 2, 2.5, 0.0, 2.5, None, True)
    assert trace_search(GraphProblem(), GRAPH, GRAPH.vector(), beam(2)) == [
        {"event": "dequeue", **s, "queue": []},
        {"event": "dequeue", **a, "queue": [g]},
        {"event": "dequeue", **b, "queue": [g]},
    ]


def test_with_an_output_a_search_tells_what_is_good():
    w = GRAPH.vector()
    w.margin = 0.5
    events = trace_search(GraphProblem(), GRAPH, w, a_star(), y=frozenset("g"))
    assert [(e["state"], e["good"], e["score"]) for e in events] == [
        ("s", True, -0.5),
        ("a", False, 2.25),
        ("b", False, 2.5),
    ]
    assert [[(e["state"], e["good"], e["score"]) for e in event["queue"]] for event in events] == [
        [],
        [("g", True, 0.5)],
        [("g", True, 0.5)],
    ]


def test_a_search_that_fails_is_told_to_its_end():
    graph = Graph({"s": {"a": 0.0, "b": 0.0}}, frozenset(), "s")
    events = trace_search(GraphProblem(), graph, graph.vector(), depth_first())
    assert [(e["state"], [q["state"] for q in e["queue"]]) for e in events] == [
        ("s", []),
        ("a", ["b"]),
        ("b", []),
    ]


def test_learning_is_told_event_by_event():
    y = frozenset("g")
    s = described(0, None, None, "s", 0, 0.0, 0.0, 0.0, True, False)
    a = described(1, 0, "a", "a", 1, 2.0, 0.25, 2.25, False, False)
    g = described(2, 0, "g", "g", 1, 1.0, 0.0, 1.0, True, True)
    b = described(3, 1, "b", "b", 2, 2.5, 0.0, 2.5, False, True)
    # The sibling is made anew by the search for siblings, so it has a number of its own.
    sib = {**g, "node": 4}
    w, events = trace_learn(GraphProblem(), GRAPH, y, GRAPH.vector(), beam(2), perceptron())
    delta = {("s", "g"): 0.5, ("s", "a"): -0.5, ("a", "b"): -0.5}
    assert events == [
        {"event": "dequeue", **s, "queue": []},
        {"event": "dequeue", **a, "queue": [g]},
        {"event": "dequeue", **b, "queue": [g]},
        {"event": "update", "k": 1, "sibs": [sib], "nodes": [b, g], "delta": delta},
        {"event": "dequeue", **sib, "g": 1.5, "score": 1.5, "queue": []},
    ]
    assert isinstance(w, Linear)
    assert w.weights == {("s", "a"): 1.5, ("s", "g"): 1.5, ("a", "b"): 0.0}


def test_updates_are_numbered_by_generation():
    w = Linear()
    _, events = trace_learn(Tagging(), "xyz", tuple("BBB"), w, greedy(), perceptron())
    updates = [event for event in events if event["event"] == "update"]
    assert [event["k"] for event in updates] == list(range(1, w.k))
    assert updates


def test_the_change_is_that_of_the_weighting():
    x, y = "x", ("B",)
    for rule in (perceptron(weighting=loss_proportional), passive_aggressive()):
        _, events = trace_learn(Tagging("AB"), x, y, rule.start(), greedy(), rule)
        (update,) = [event for event in events if event["event"] == "update"]
        assert update["delta"] == {
            ("word", "x", "B"): 1.0,
            ("pair", "^", "B"): 1.0,
            ("word", "x", "A"): -1.0,
            ("pair", "^", "A"): -1.0,
        }


def test_a_rule_without_a_weighting_has_no_change_to_tell():
    class Own:
        def start(self):
            return Linear()

        def __call__(self, w, x, sibs, nodes):
            w.add({("word", "x", "B"): 1.0}, 1.0)
            w.k += 1
            return w

    _, events = trace_learn(Tagging(), "x", ("B",), Linear(), greedy(), Own())
    assert [event["delta"] for event in events if event["event"] == "update"] == [None]


QUEUES = [
    greedy(),
    beam(2),
    bounded_best_first(2),
    best_first(),
    a_star(),
    hill_climbing(),
    depth_first(),
    exact(lambda state: state),
    closed_set(beam(2), key=lambda state: state),
]


@quick
@given(learnable(), st.sampled_from(QUEUES))
def test_tracing_changes_no_search(drawn, queue):
    graph, _ = drawn
    goal = search(GraphProblem(), graph, graph.vector(), queue)
    seen, _ = run(GraphProblem(), graph, graph.vector(), queue)
    events = trace_search(GraphProblem(), graph, graph.vector(), queue)
    assert [event["state"] for event in events] == [node.state for node in seen]
    assert [event["score"] for event in events] == [node.score for node in seen]
    assert events[-1]["goal"] == (goal is not None)
    if goal is not None:
        assert (events[-1]["state"], events[-1]["g"]) == (goal.state, goal.g)


@quick
@given(learnable(), st.sampled_from(QUEUES), st.sampled_from([restart, early]))
def test_tracing_changes_no_learning(drawn, queue, strategy):
    graph, y = drawn
    plain = strategy(GraphProblem(), graph, y, graph.vector(), queue, perceptron())
    traced, events = trace_learn(
        GraphProblem(), graph, y, graph.vector(), queue, perceptron(), strategy=strategy
    )
    assert isinstance(traced, Linear)
    assert traced.weights == plain.weights
    assert traced.k == plain.k
    updates = sum(event["event"] == "update" for event in events)
    assert updates == plain.k - 1


@quick
@given(tagging(), st.sampled_from([standard, max_violation]), st.data())
def test_tracing_changes_no_strategy_that_compares_outputs(drawn, strategy, data):
    x, w = drawn
    y = tuple(data.draw(st.sampled_from("ABC")) for _ in x)
    plain = strategy(Tagging("ABC"), x, y, Linear(w.weights), beam(2), perceptron())
    traced, _ = trace_learn(
        Tagging("ABC"), x, y, Linear(w.weights), beam(2), perceptron(), strategy=strategy
    )
    assert isinstance(traced, Linear)
    assert traced.weights == plain.weights


@quick
@given(learnable(), st.sampled_from(QUEUES))
def test_numbers_tell_nodes_apart_and_lead_back_to_the_first(drawn, queue):
    graph, _ = drawn
    seen, _ = run(GraphProblem(), graph, graph.vector(), queue)
    events = trace_search(GraphProblem(), graph, graph.vector(), queue)
    known = {event["node"]: event for event in events}
    assert len(known) == len(events)
    for event, node in zip(events, seen, strict=True):
        path = [event["state"]]
        while event["parent"] is not None:
            event = known[event["parent"]]
            path.append(event["state"])
        assert tuple(reversed(path)) == path_of(node)


def test_a_trace_keeps_the_scores_of_its_moment():
    # Learning values the siblings again; the event of the update shows them as they were.
    edges = {"s": {"a": 1.0, "b": 0.0}, "b": {"t": 0.0}}
    graph = Graph(edges, frozenset("t"), "s")
    y = frozenset("t")
    _, events = trace_learn(GraphProblem(), graph, y, graph.vector(), greedy(), perceptron())
    update = next(event for event in events if event["event"] == "update")
    after = events[events.index(update) + 1]
    assert (update["sibs"][0]["state"], update["sibs"][0]["score"]) == ("b", 0.0)
    assert (after["node"], after["state"], after["score"]) == (update["sibs"][0]["node"], "b", 1.0)
    plain = learn(GraphProblem(), graph, y, graph.vector(), greedy(), perceptron())
    assert isinstance(plain, Linear)
    assert plain.weights == {("s", "a"): 0.0, ("s", "b"): 1.0, ("b", "t"): 0.0}
