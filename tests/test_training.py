"""Passes over data: order, progress, convergence, interruption and averaging."""

import random

import pytest

from laso import (
    BadFeature,
    Linear,
    Model,
    Progress,
    SearchFailed,
    Unreachable,
    alma,
    beam,
    early,
    exact,
    fit,
    greedy,
    hill_climbing,
    linear_kernel,
    max_violation,
    passive_aggressive,
    perceptron,
    predict,
    restart,
    standard,
    worst,
)
from laso.training import mean_step_length
from tests.spaces import (
    Graph,
    GraphProblem,
    Orderings,
    Segmentation,
    Tagging,
    covered,
    dot,
    labellings,
    last,
    tagging_phi,
)

DATA = [("xyx", tuple("ABA")), ("yx", tuple("BA")), ("zz", tuple("AB")), ("xz", tuple("AB"))]


class From:
    """The perceptron, with first weights of our choice."""

    def __init__(self, weights):
        self.weights = weights

    def start(self):
        return Linear(self.weights)

    def __call__(self, w, x, sibs, nodes):
        return perceptron()(w, x, sibs, nodes)


def always_wrong(visited):
    """A strategy that only notes what it visits, and never lets training converge."""

    def strategy(problem, x, y, w, queue, update):
        visited.append(x)
        w.add({"seen": 1.0}, 1.0)
        w.k += 1
        return w

    return strategy


@pytest.mark.parametrize("strategy", [restart, early, standard, max_violation])
@pytest.mark.parametrize("queue", [greedy(), beam(3), exact(last)])
def test_separable_data_are_learned(strategy, queue):
    model = fit(Tagging(), DATA, queue=queue, strategy=strategy, epochs=50, average=False)
    assert model.converged
    assert [model.predict(x) for x, _ in DATA] == [y for _, y in DATA]


@pytest.mark.parametrize(
    "rule",
    [
        perceptron(),
        alma(),
        alma(p=4.0),
        passive_aggressive(),
        perceptron(kernel=linear_kernel()),
    ],
)
def test_every_rule_learns_separable_data(rule):
    model = fit(Tagging(), DATA, update=rule, epochs=50, average=False)
    assert model.updates > 0
    assert [model.predict(x) for x, _ in DATA] == [y for _, y in DATA]


def test_defaults_are_a_beam_the_perceptron_with_a_margin_and_the_strategy_of_the_paper():
    plain = fit(Tagging(), DATA, epochs=3)
    margin = mean_step_length(Tagging(), DATA)
    assert margin > 1
    rule = perceptron(weighting=worst, margin=margin)
    said = fit(Tagging(), DATA, queue=beam(5), update=rule, strategy=restart, epochs=3, seed=0)
    assert plain.w.weights == said.w.weights  # type: ignore[attr-defined]
    assert plain.updates == said.updates


def test_other_problems_are_learned_with_their_queues():
    words = [("uvu", (("uv", "A"), ("u", "B"))), ("vvu", (("v", "B"), ("vu", "A")))]
    queue = beam(3, key=lambda node: covered(node.state))
    model = fit(Segmentation(), words, queue=queue, epochs=50, average=False)
    assert model.converged
    assert [model.predict(x) for x, _ in words] == [y for _, y in words]
    items = [("abc", {"a": "B", "b": "A", "c": "B"}), ("bd", {"b": "A", "d": "B"})]
    for any_queue in (greedy(), beam(3), hill_climbing()):
        model = fit(Orderings(), items, queue=any_queue, epochs=50, average=False)
        assert model.converged
        assert [model.predict(x) for x, _ in items] == [y for _, y in items]


def test_training_ends_after_an_epoch_without_an_update():
    seen: list[Progress] = []
    model = fit(Tagging(), DATA, epochs=100, progress=seen.append, average=False)
    assert model.converged
    last_epoch = [p for p in seen if p.epoch == seen[-1].epoch]
    assert len(last_epoch) == len(DATA)
    assert {p.error_rate for p in last_epoch} == {0.0}
    assert seen[-1].epoch < 100
    before = [p for p in seen if p.epoch == seen[-1].epoch - 1]
    assert before[-1].error_rate > 0


def test_what_is_right_from_the_start_converges_at_once():
    seen: list[Progress] = []
    data = [("x", ("A",)), ("yy", ("A", "A"))]
    model = fit(Tagging(), data, update=perceptron(), progress=seen.append)
    assert model.converged
    assert model.updates == 0
    assert [p.epoch for p in seen] == [1, 1]
    assert model.predict("z") == ("A",)


def test_what_cannot_be_learned_does_not_converge():
    seen: list[Progress] = []
    torn = [("x", ("A",)), ("x", ("B",))]
    model = fit(Tagging(), torn, epochs=4, progress=seen.append)
    assert not model.converged
    assert len(seen) == 8
    assert model.updates == seen[-1].updates > 0


def test_an_epoch_that_ends_with_a_right_example_need_not_converge():
    model = fit(Tagging(), DATA, epochs=1)
    assert model.updates > 0
    assert not model.converged


def test_progress_counts_epochs_examples_updates_and_errors():
    seen: list[Progress] = []
    data = [("x", ("B",)), ("y", ("A",)), ("zw", ("B", "B"))]
    options = {"queue": greedy(), "update": perceptron(), "seed": None}
    fit(Tagging(), data, epochs=2, progress=seen.append, **options)
    # x is wrong; then B leads at the beginning, so y is wrong; zw is wrong at both of its words.
    assert seen == [
        Progress(epoch=1, epochs=2, example=1, examples=3, updates=1, error_rate=1.0),
        Progress(epoch=1, epochs=2, example=2, examples=3, updates=2, error_rate=1.0),
        Progress(epoch=1, epochs=2, example=3, examples=3, updates=4, error_rate=1.0),
        Progress(epoch=2, epochs=2, example=1, examples=3, updates=4, error_rate=0.0),
        Progress(epoch=2, epochs=2, example=2, examples=3, updates=4, error_rate=0.0),
        Progress(epoch=2, epochs=2, example=3, examples=3, updates=4, error_rate=0.0),
    ]


def test_the_error_rate_is_a_part_of_the_examples_so_far():
    seen: list[Progress] = []
    data = [("x", ("B",)), ("x", ("B",)), ("x", ("B",)), ("x", ("A",))]
    fit(Tagging(), data, queue=greedy(), seed=None, epochs=1, progress=seen.append)
    assert [p.error_rate for p in seen] == [1.0, 1 / 2, 1 / 3, 2 / 4]


def test_without_a_seed_examples_come_as_they_are():
    visited: list[int] = []
    fit(
        Tagging(),
        [(n, None) for n in range(5)],
        update=perceptron(),
        seed=None,
        epochs=2,
        strategy=always_wrong(visited),
    )
    assert visited == [0, 1, 2, 3, 4] * 2


def test_a_seed_shuffles_every_epoch_and_always_alike():
    orders = []
    for seed in (0, 0, 1):
        visited: list[int] = []
        data = [(n, None) for n in range(8)]
        rule, strategy = perceptron(), always_wrong(visited)
        fit(Tagging(), data, update=rule, seed=seed, epochs=3, strategy=strategy)
        assert data == [(n, None) for n in range(8)]
        orders.append(visited)
    assert orders[0] == orders[1] != orders[2]
    epochs = [orders[0][i : i + 8] for i in (0, 8, 16)]
    assert all(sorted(epoch) == list(range(8)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_training_leaves_the_random_numbers_of_others_alone():
    random.seed(7)
    expected = random.random()
    random.seed(7)
    fit(Tagging(), DATA, epochs=2, seed=3)
    assert random.random() == expected


def test_two_trainings_with_one_rule_do_not_touch_each_other():
    rule, queue = perceptron(), beam(2)
    first = fit(Tagging(), DATA, queue=queue, update=rule, epochs=2)
    weights = dict(first.w.weights)  # type: ignore[attr-defined]
    second = fit(Tagging(), DATA, queue=queue, update=rule, epochs=2)
    assert second.w.weights == weights  # type: ignore[attr-defined]
    assert first.w.weights == weights  # type: ignore[attr-defined]


def test_data_may_be_any_iterable():
    once = fit(Tagging(), iter(DATA), epochs=5)
    assert once.w.weights == fit(Tagging(), DATA, epochs=5).w.weights  # type: ignore[attr-defined]


def collins(data, first, epochs):
    """The averaged structured perceptron: the last vector, and the mean of those after examples."""
    w, total, count = dict(first), dict.fromkeys(first, 0.0), 0
    for _ in range(epochs):
        for x, y in data:
            best = max(labellings("AB", len(x)), key=lambda z: dot(w, tagging_phi(x, z)))
            for name in tagging_phi(x, y):
                w[name] += 1.0
            for name in tagging_phi(x, best):
                w[name] -= 1.0
            total = {name: total[name] + w[name] for name in w}
            count += 1
    return w, {name: value / count for name, value in total.items()}


@pytest.mark.parametrize("seed", range(4))
def test_the_averaged_structured_perceptron(seed):
    draw = random.Random(seed)
    names = [("word", word, label) for word in "pqrs" for label in "AB"]
    names += [("pair", before, label) for before in "^AB" for label in "AB"]
    first = {name: draw.randrange(2**30) / 2**30 for name in names}
    data = []
    for _ in range(5):
        x = tuple(draw.sample("pqrs", 3))
        data.append((x, tuple(draw.choice("AB") for _ in x)))
    plain, mean = collins(data, first, 4)
    for average, expected in ((False, plain), (True, mean)):
        model = fit(
            Tagging(),
            data,
            queue=exact(last),
            update=From(first),
            strategy=standard,
            epochs=4,
            seed=None,
            average=average,
        )
        assert not model.converged
        assert isinstance(model.w, Linear)
        assert model.w.weights == pytest.approx(expected)
    assert plain != pytest.approx(mean)


class Stop:
    """Presses Ctrl-C after so many examples."""

    def __init__(self, after):
        self.after, self.seen = after, 0

    def __call__(self, progress):
        self.seen += 1
        if self.seen == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("average", [True, False])
def test_ctrl_c_keeps_what_was_learned(average):
    options = {"seed": None, "average": average, "queue": greedy(), "update": perceptron()}
    stopped = fit(Tagging(), DATA, epochs=50, progress=Stop(3), **options)
    straight = fit(Tagging(), DATA[:3], epochs=1, **options)
    assert stopped.w.weights == straight.w.weights  # type: ignore[attr-defined]
    assert stopped.updates == straight.updates > 0
    assert not stopped.converged


def test_ctrl_c_before_anything_was_learned_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        fit(Tagging(), [("x", ("A",))] * 3, update=perceptron(), progress=Stop(1))


def test_other_errors_of_the_callback_are_passed_on():
    def fails(progress):
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        fit(Tagging(), DATA, progress=fails)


def test_ctrl_c_within_an_example_keeps_the_updates_made():
    class Slow(Tagging):
        calls = 0

        def initial(self, x):
            Slow.calls += 1
            if Slow.calls == 3:
                raise KeyboardInterrupt
            return super().initial(x)

    options = {"seed": None, "queue": greedy(), "average": False, "update": perceptron()}
    stopped = fit(Slow(), DATA, epochs=9, **options)
    straight = fit(Tagging(), DATA[:2], epochs=1, **options)
    assert stopped.w.weights == straight.w.weights  # type: ignore[attr-defined]


def test_exact_search_compares_goals_of_unequal_depth():
    edges = {"s": {"x": 1.0, "a": 0.5}, "a": {"b": 0.0}, "b": {"t": 5.0}}
    graph = Graph(edges, frozenset("xt"), "s")
    assert Model(GraphProblem(), graph.vector(), exact(str)).predict(graph) == "t"
    assert Model(GraphProblem(), graph.vector(), beam(5)).predict(graph) == "x"


def test_a_model_predicts_with_the_queue_it_was_learned_in():
    # The first step looks bad, and only a beam of two sees what comes of it.
    edges = {"s": {"a": 1.0, "b": 0.0}, "a": {"x": 0.0}, "b": {"t": 5.0}}
    graph = Graph(edges, frozenset("xt"), "s")
    narrow = Model(GraphProblem(), graph.vector(), greedy())
    wide = Model(GraphProblem(), graph.vector(), beam(2))
    assert (narrow.predict(graph), wide.predict(graph)) == ("x", "t")
    assert (narrow.updates, narrow.converged) == (0, False)
    assert predict(GraphProblem(), graph, narrow.w, beam(2)) == "t"


def test_a_model_gives_outputs_not_states():
    model = fit(Orderings(), [("ab", {"a": "B", "b": "A"})], epochs=20, average=False)
    assert model.predict("ab") == {"a": "B", "b": "A"}


@pytest.mark.parametrize("epochs", [0, -3])
def test_epochs_begin_at_one(epochs):
    with pytest.raises(ValueError, match=f"^epochs must be at least 1, found {epochs}$"):
        fit(Tagging(), DATA, epochs=epochs)


@pytest.mark.parametrize("data", [[], (), iter([])])
def test_no_data_are_an_error(data):
    with pytest.raises(
        ValueError, match=r"^there is nothing to learn from: no pair \(x, y\) was given$"
    ):
        fit(Tagging(), data)


def test_errors_of_a_problem_come_through():
    with pytest.raises(Unreachable, match="'Q'"):
        fit(Tagging(), [("x", ("Q",))], queue=greedy())

    class Odd(Tagging):
        def features(self, x, state, operator):
            return {"odd": float("nan")}

    with pytest.raises(BadFeature, match="a feature must be a finite number, found 'odd' = nan"):
        fit(Odd(), DATA)
    graph = Graph({"s": {"t": -1.0}}, frozenset("t"), "s")
    model = Model(GraphProblem(), graph.vector(), hill_climbing())
    with pytest.raises(SearchFailed, match="GraphProblem: the queue ran empty"):
        model.predict(graph)
