"""The examples are what they say: short, runnable, and right."""

import subprocess
import sys
from collections import Counter
from importlib import import_module
from itertools import pairwise, permutations, product
from math import dist, inf
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso import Linear, Node, a_star, beam, best_first, perceptron, predict
from laso.examples import chunking, clustering, eight_puzzle, kernel, route, tagging
from laso.examples.chunking import Chunking, to_bio, to_chunks, words_covered
from laso.problem import make_node, operators
from laso.trace import trace_learn

NAMES = ["tagging", "chunking", "route", "eight_puzzle", "clustering", "kernel"]
quick = settings(deadline=None, derandomize=True, max_examples=60)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_one_short_file(name):
    source = Path(str(import_module(f"laso.examples.{name}").__file__)).read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 60


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_as_a_program(name):
    command = [sys.executable, "-m", f"laso.examples.{name}"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert 1 <= len(run.stdout.splitlines()) <= 10


# tagging


def test_tagging_learns_its_sentences_and_tells_the_two_meanings_of_can_apart():
    model = tagging.train()
    assert model.converged
    for line in tagging.SENTENCES.splitlines():
        words, labels = tagging.columns(line)
        assert model.predict(words) == labels
    held_out = ("we", "can", "see", "the", "old", "can")
    assert model.predict(held_out) == ("PRP", "MD", "VB", "DT", "JJ", "NN")


# chunking

shapes = st.lists(
    st.one_of(st.just(("O", 1)), st.tuples(st.sampled_from(["NP", "VP", "O-X"]), st.integers(1, 4)))
)


def spans(sizes):
    ends = [sum(n for _, n in sizes[: i + 1]) for i in range(len(sizes))]
    return tuple((label, end - n, end) for (label, n), end in zip(sizes, ends, strict=True))


@quick
@given(shapes)
def test_chunks_survive_the_way_to_tags_and_back(sizes):
    chunks = spans(sizes)
    tags = to_bio(chunks)
    assert len(tags) == sum(n for _, n in sizes)
    assert to_chunks(tags) == chunks


@quick
@given(st.lists(st.sampled_from(["O", "B-NP", "I-NP", "B-VP", "I-VP"])))
def test_any_tags_make_chunks_that_cover_them_and_are_mended_once(tags):
    mended = to_bio(to_chunks(tags))
    assert [tag[2:] for tag in mended] == [tag[2:] for tag in tags]
    assert to_bio(to_chunks(mended)) == mended
    starts = [i for i, tag in enumerate(mended) if tag[0] == "B"]
    for i, tag in enumerate(tags):
        follows = i > 0 and tags[i - 1][2:] == tag[2:]
        assert (i in starts) == (tag[0] == "B" or (tag[0] == "I" and not follows))


X = (("She", "PRP"), ("saw", "VBD"), ("the", "DT"), ("saw", "NN"))
Y = (("NP", 0, 1), ("VP", 1, 2), ("NP", 2, 4))


def segmentations(problem, node):
    """Every path to a goal, by the problem's own operators."""
    if node.is_goal:
        yield node
    else:
        for child in operators(problem, X, node, Linear(), Y):
            yield from segmentations(problem, child)


def test_operators_are_the_shapes_seen_in_training():
    problem = Chunking.for_data([(X, Y)])
    assert problem.labels == [("NP", 1), ("NP", 2), ("VP", 1)]
    assert problem.operators(X, Y[:2]) == [("NP", 2, 3), ("NP", 2, 4), ("VP", 2, 3)]
    assert problem.operators(X, (("NP", 0, 2), ("VP", 2, 3))) == [("NP", 3, 4), ("VP", 3, 4)]


def test_good_nodes_are_the_prefixes_and_every_goal_covers_the_sentence():
    problem = Chunking.for_data([(X, Y)])
    goals = list(segmentations(problem, make_node(problem, X, Linear(), Y)))
    # a word is an NP or a VP, and two words can be an NP: 1, 2, 5, 12, 29 ways by length
    assert len({goal.state for goal in goals}) == len(goals) == 29
    for goal in goals:
        assert words_covered(goal) == len(X) == len(to_bio(goal.state))
        for node in goal.path:
            assert node.good == (node.state == Y[: len(node.state)])


def test_a_beam_wide_enough_finds_the_best_segmentation():
    problem = Chunking.for_data([(X, Y)])
    goals = list(segmentations(problem, make_node(problem, X, Linear(), Y)))
    phi = {goal.state: goal.phi() for goal in goals}
    names = sorted({name for features in phi.values() for name in features})
    rng = Random(0)
    for _ in range(30):
        weights = {name: rng.uniform(-1, 1) for name in names}
        score = {y: sum(weights[n] * v for n, v in features.items()) for y, features in phi.items()}
        found = predict(problem, X, Linear(weights), beam(1000, key=words_covered))
        assert score[found] == pytest.approx(max(score.values()))


def test_chunk_features_are_those_of_the_sentence_though_they_are_remembered():
    problem = Chunking.for_data([(X, Y)])
    features = set(problem.features(X, Y[:2], Y[2]))
    assert {"NP first DT after VP", "NP left VBD", "NP right $", "NP tags DT NN"} <= features
    assert {"NP 0 the", "NP 0 -the", "NP 1 NN", "NP length 2"} <= features
    assert {"NP 0 She", "NP 0 she", "NP left ^"} <= set(problem.features(X, (), Y[0]))
    other = (*X[:3], ("dog", "NN"))
    assert "NP 1 dog" in problem.features(other, Y[:2], Y[2])
    assert "NP 1 saw" in problem.features(X, Y[:2], Y[2])
    assert chunking.within.cache_info().maxsize is not None


def test_chunking_learns_its_sentences_and_a_new_one():
    model = chunking.train()
    assert model.converged
    for line in chunking.SENTENCES.splitlines():
        words, tags, bio = tagging.columns(line)
        assert to_bio(model.predict(tuple(zip(words, tags, strict=True)))) == list(bio)
    x = (("a", "DT"), ("red", "JJ"), ("cat", "NN"), ("will", "MD"), ("bark", "VB"), (".", "."))
    assert model.predict(x) == (("NP", 0, 3), ("VP", 3, 5), ("O", 5, 6))


# route


def shortest():
    """All shortest distances, by Floyd and Warshall."""
    towns = list(route.PLACE)
    km = {(a, b): route.KM.get((a, b), 0.0 if a == b else inf) for a in towns for b in towns}
    for via, a, b in product(towns, towns, towns):
        km[a, b] = min(km[a, b], km[a, via] + km[via, b])
    return km


def test_the_straight_line_never_promises_too_little():
    for (a, b), km in route.KM.items():
        assert km >= dist(route.PLACE[a], route.PLACE[b])
    for x, km in shortest().items():
        assert route.Route().h(x, x[0]) >= -km


def test_both_searches_find_the_shortest_route_between_any_towns():
    for (a, b), km in shortest().items():
        for discipline in (a_star(), best_first()):
            towns, length, _ = route.find(a, b, discipline)
            assert (towns[0], towns[-1]) == (a, b)
            assert sum(route.KM[step] for step in pairwise(towns)) == length == km


def test_a_star_dequeues_fewer_nodes():
    *same, few = route.find("Ashford", "Greywick", a_star())
    *also, many = route.find("Ashford", "Greywick", best_first())
    assert same == also == [["Ashford", "Coldwell", "Eastholm", "Greywick"], 197.0]
    assert few < many


# eight-puzzle


def after(x, moves):
    for move in moves:
        assert move in eight_puzzle.Puzzle().operators(x, x)
        x = eight_puzzle.Puzzle().apply(x, x, move)
    return x


@pytest.fixture(scope="module")
def puzzler():
    return eight_puzzle.train()


def test_a_star_solutions_are_as_short_as_breadth_first_ones():
    for x in eight_puzzle.HELD_OUT:
        clever = eight_puzzle.dequeued(eight_puzzle.A_STAR, x)
        blind = eight_puzzle.dequeued(eight_puzzle.BREADTH_FIRST, x)
        assert after(x, clever[-1].operators) == tuple(range(9))
        assert clever[-1].depth == blind[-1].depth


def test_learned_weights_solve_held_out_boards_with_far_fewer_nodes(puzzler):
    assert not set(eight_puzzle.HELD_OUT) & set(eight_puzzle.TRAINING)
    for x in eight_puzzle.HELD_OUT:
        few = eight_puzzle.dequeued(puzzler, x)
        assert after(x, few[-1].operators) == tuple(range(9))
        assert 10 * len(few) < len(eight_puzzle.dequeued(eight_puzzle.BREADTH_FIRST, x))


def test_learned_weights_solve_random_scrambles(puzzler):
    for seed in range(10):
        rng, x = Random(seed), tuple(range(9))
        for _ in range(30):
            x = after(x, [rng.choice(eight_puzzle.Puzzle().operators(x, x))])
        assert after(x, eight_puzzle.dequeued(puzzler, x)[-1].operators) == tuple(range(9))


@quick
@given(st.permutations(range(9)))
def test_puzzle_features_are_changes_of_the_whole_board(tiles):
    def measures(board):
        wrong = [(i, t) for i, t in enumerate(board) if t != 8 and i != t]
        return sum(eight_puzzle.FAR[i][t] for i, t in wrong), len(wrong)

    puzzle, x = eight_puzzle.Puzzle(), tuple(tiles)
    for move in puzzle.operators(x, x):
        step = puzzle.features(x, x, move)
        (d0, m0), (d1, m1) = measures(x), measures(puzzle.apply(x, x, move))
        assert step == {"moves": 1.0, "distance": d1 - d0, "misplaced": m1 - m0}


# clustering


def test_clusters_of_a_held_out_set_are_right():
    model = clustering.train()
    assert model.converged
    for y in (*clustering.TRAINING, clustering.HELD_OUT):
        assert model.predict(frozenset().union(*y)) == y


def test_good_states_are_those_from_which_the_clusters_can_be_reached():
    y = clustering.clusters([(0, 0), (1, 0)], [(5, 5), (6, 5)])
    x, problem = frozenset().union(*y), clustering.Clustering()
    paths: Counter[bool] = Counter()

    def reaches(node):
        if node.is_goal:
            paths[node.state == y] += 1
            return node.state == y
        reached = [reaches(child) for child in operators(problem, x, node, Linear(), y)]
        assert node.good == any(reached)
        return any(reached)

    assert reaches(make_node(problem, x, Linear(), y))
    assert paths[True] == len(list(permutations(x)))


def test_an_update_sees_several_good_siblings():
    y, rule = clustering.TRAINING[0], perceptron()
    x = frozenset().union(*y)
    _, events = trace_learn(clustering.Clustering(), x, y, rule.start(), beam(5), rule)
    updates = [event for event in events if event["event"] == "update"]
    assert max(len({sib["state"] for sib in event["sibs"]}) for event in updates) > 1
    assert all(sib["good"] for event in updates for sib in event["sibs"])


# kernel


def test_no_linear_weights_separate_right_marks_from_wrong_ones():
    total: Counter[str] = Counter()
    for bits in product((0, 1), repeat=2):
        (mark,) = kernel.changes(bits)
        total.update(kernel.Changes().features(bits, (), mark))
        total.subtract(kernel.Changes().features(bits, (), 1 - mark))
    # the sum of all that should be positive is zero for any weights
    assert set(total.values()) == {0}


@pytest.mark.parametrize("name", kernel.RULES)
def test_only_kernels_learn_where_bits_change(name):
    model = kernel.train(kernel.RULES[name])
    right = [model.predict(x) == y for x, y in kernel.DATA]
    assert model.converged == all(right) == ("kernel" in name)


def test_changes_are_marked_where_bits_differ():
    assert kernel.changes((0, 1, 1, 0)) == (1, 0, 1)
    node = Node((1, 0), depth=2)
    assert kernel.Changes().is_good((0, 1, 1, 0), (1, 0, 1), node)
    assert not kernel.Changes().is_good((0, 1, 1, 1), (1, 0, 0), Node((1, 1), depth=2))
