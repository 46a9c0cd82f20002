"""Chunking as search: its space, the features of a chunk, and both engines on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from laso import beam, perceptron, worst
from laso.engine.layout import Dataset
from laso.engine.machine import Machine, all_of
from laso.engine.options import options_for, own_key
from laso.engine.reference import Reference, State, input_of, output_of
from laso.errors import BadTemplate
from laso.features.templates import parse_templates
from laso.problem import Node
from laso.tasks.chunking import problem as chunking
from laso.tasks.chunking.encoder import kind_of
from laso.tasks.chunking.feature_sets import paper_features, rich_features
from laso.tasks.chunking.problem import Chunking
from tests.chunk_corpora import (
    LIMITS,
    META,
    OTHERS,
    SENTENCES,
    SMALL_PAPER,
    SOME,
    Segmentation,
    corpus_of,
    data_of,
    encoder_for,
    features_of,
    score,
)
from tests.engine_inputs import Task
from tests.engine_twins import QUEUES, STRATEGIES, WEIGHTINGS, Twins, some_of_each, split


def few(examples: int) -> Any:
    return settings(
        deadline=None,
        derandomize=True,
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
    )


def segmentations(n: int) -> Iterator[Any]:
    """All ways to cut n words into labelled chunks."""
    if n == 0:
        yield []
    for label, limit in enumerate(LIMITS):
        for length in range(1, min(limit, n) + 1):
            for rest in segmentations(n - length):
                yield [(length, label), *rest]


FEW = ["w[each]", "label[-1]"]


@pytest.mark.parametrize("n", range(6))
def test_the_space_has_every_segmentation_once(n):
    corpus = corpus_of(FEW, [[("a", "x")] * n])
    problem, x = Reference(Chunking, 3), input_of(corpus, 0)
    found: list[Segmentation] = []

    def follow(state: State, path: Segmentation) -> None:
        if problem.is_goal(x, state):
            found.append(path)
            return
        for operator in problem.operators(x, state):
            after = problem.apply(x, state, operator)
            assert after.row == (state.row[0] + operator[0], operator[1])
            assert (after.key, after.signature) == after.row
            follow(after, [*path, operator])

    follow(problem.initial(x), [])
    expected = [tuple(s) for s in segmentations(n)]
    assert Counter(map(tuple, found)) == Counter(expected)
    assert len(set(expected)) == len(expected)


@pytest.mark.parametrize("segmentation", list(segmentations(4)), ids=str)
def test_one_path_is_good(segmentation):
    corpus = corpus_of(FEW, [[("a", "x")] * 4], [segmentation])
    problem, x, y = Reference(Chunking, 3), input_of(corpus, 0), output_of(corpus, 0)
    node, path = Node(problem.initial(x)), []
    while not problem.is_goal(x, node.state):
        good = [
            operator
            for operator in problem.operators(x, node.state)
            if problem.is_good(x, y, Node(problem.apply(x, node.state, operator)))
        ]
        (operator,) = good
        path.append(operator)
        node = Node(problem.apply(x, node.state, operator))
    assert path == segmentation


def at_word(sentence: Any, i: int, column: int) -> Any:
    """The value of a column; beyond the ends, how far beyond."""
    if 0 <= i < len(sentence):
        return sentence[i][column]
    return ("out", i if i < 0 else i - len(sentence) + 1)


def section_4_1(values: Any, start: int, length: int) -> Iterator[Any]:
    """The meta features of one base feature (``values`` of it, by word), for one chunk."""
    inside = [values(start + i) for i in range(length)]
    for i, value in enumerate(inside):
        yield "at", i, value
    yield "before", values(start - 1)
    yield "after", values(start + length)
    yield "sequence", tuple(inside)
    for n in (2, 3):
        for i in range(length - n + 1):
            yield "gram", tuple(inside[i : i + n])


def paper(sentence: Any, start: int, length: int, label: Any) -> Iterator[Any]:
    for column, base in [(0, str), (1, str), (0, lambda v: v[-1:]), (1, lambda v: v[:1])]:

        def values(i: int, column: int = column, base: Any = base) -> Any:
            value = at_word(sentence, i, column)
            return base(value) if isinstance(value, str) else value

        for feature in section_4_1(values, start, length):
            yield (column, base is str, *feature)
    yield "length", length
    yield "label", label


def others(sentence: Any, start: int, length: int, label: Any) -> Iterator[Any]:
    """What the templates in OTHERS say, in plain Python."""
    last = start + length - 1

    def w(i: int) -> Any:
        return at_word(sentence, i, 0)

    def pos(i: int) -> Any:
        return at_word(sentence, i, 1)

    words = range(start, last + 1)
    yield 1, w(start - 1), w(start)
    yield 2, w(last), w(last + 1)
    yield 3, pos(start - 2), pos(start - 1), pos(start)
    yield 4, pos(start - 1), tuple(map(pos, words)), pos(last + 1)
    yield 5, length, pos(start)
    yield 6, label, w(start)
    yield 7, w(last), label, length
    for i in words:
        yield 8, w(i), pos(i)
        yield 9, i - start, w(i), pos(i)
    for i in range(start + 1, last + 1):
        yield 10, w(i - 1), w(i), pos(i - 1), pos(i)
    yield 11, w(start + 2)
    yield (12,)


@pytest.mark.parametrize(
    ("features", "plain"), [(SMALL_PAPER, paper), (OTHERS, others)], ids=["paper", "others"]
)
def test_the_features_of_a_chunk_are_those_of_a_plain_enumeration(features, plain):
    """Keys and names occur in the same chunks equally often, so each key stands for one name."""
    corpus = corpus_of(features, SENTENCES)
    problem = Reference(Chunking, 3)
    of_key: dict[Any, list[Any]] = defaultdict(list)
    of_name: dict[Any, list[Any]] = defaultdict(list)
    chunks = 0
    for number, sentence in enumerate(SENTENCES):
        for start in range(len(sentence)):
            for length in range(1, min(3, len(sentence) - start) + 1):
                for label in (-1, 0, 1) if start else (-1,):
                    state = State((start, label))
                    chunk = (number, start, length, label)
                    vector = problem.features(input_of(corpus, number), state, (length, 0))
                    for (key, _), count in vector.items():
                        of_key[key].append((chunk, count))
                    for name, count in Counter(plain(sentence, start, length, label)).items():
                        of_name[name].append((chunk, float(count)))
                    chunks += 1
    assert chunks > 50
    occurrences = [Counter(map(tuple, found.values())) for found in (of_key, of_name)]
    assert occurrences[0] == occurrences[1]


def test_an_unknown_word_has_keys_that_no_known_word_has():
    encoder = encoder_for(["w[each,pair,all,first-1]"], SENTENCES)
    problem = Reference(Chunking, 3)

    def keys(sentence: Any, start: int, length: int) -> set[int]:
        x = input_of(encoder.dataset(data_of([sentence])), 0)
        return {key for key, _ in problem.features(x, State((start, 0)), (length, 0))}

    known = {
        key
        for sentence in SENTENCES
        for start in range(len(sentence))
        for length in range(1, min(3, len(sentence) - start) + 1)
        for key in keys(sentence, start, length)
    }
    assert not keys([("dogs", "NNS"), ("new", "JJ")], 1, 1) & known - keys(SENTENCES[1], 1, 1)
    assert not keys([("new", "JJ"), ("new", "JJ")], 1, 1) & known
    assert keys([("new", "JJ"), ("the", "DT"), ("dogs", "NNS")], 1, 2) & known


def test_the_sets_of_features():
    names = ("w", "pos")
    assert "w.stem" + META in paper_features(names)
    assert paper_features(("w",)) == [f for f in paper_features(names) if not f.startswith("pos")]
    assert set(rich_features(names)) > set(paper_features(names))
    assert 'w.list("places")' + META in paper_features(names, ["places"])
    assert "w.cluster6" + META in rich_features(names, ["clusters"])
    for features in (paper_features(names), rich_features(names)):
        kinds = {kind_of(template) for template in parse_templates(features)}
        assert {chunking.EACH, chunking.PAIR, chunking.WHOLE, chunking.STEP} <= kinds


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("w[0]", r"'w\[0\]', expected a place in the chunk"),
        ("label[-2]", r"'label\[-2\]', expected a place in the chunk"),
        ("w[each]|w[first]", "expected nothing beside each but its like"),
        ("label[-1]|w[pair]", "expected nothing beside pair but its like"),
        ("tag[first]", "found the column 'tag', expected one of w, pos"),
    ],
)
def test_templates_that_no_chunk_has(template, message):
    with pytest.raises(BadTemplate, match=message):
        encoder_for([template], SENTENCES).spec  # noqa: B018


@st.composite
def corpora(draw: Any) -> Dataset:
    features = draw(st.lists(st.sampled_from(SOME), min_size=1, max_size=5, unique=True))
    word = st.tuples(st.sampled_from("abc"), st.sampled_from("xy"))
    sentences = draw(st.lists(st.lists(word, max_size=5), min_size=1, max_size=3))
    outputs = []
    for sentence in sentences:
        chunks: Segmentation = []
        while (left := len(sentence) - sum(length for length, _ in chunks)) > 0:
            length = draw(st.integers(1, min(3, left)))
            chunks.append((length, draw(st.integers(0, 3 - length))))
        outputs.append(chunks)
    return corpus_of(features, sentences, outputs)


CHUNKING = Task(Chunking, 3, corpora(), True)


@pytest.mark.parametrize("queue", list(QUEUES))
@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_whole_weights_are_equal_in_both_engines(queue, margin):
    @few(6)
    @given(CHUNKING.corpora)
    def same(corpus):
        # Averages over two or four examples are exact, and so are their sums in any order.
        assume(len(corpus.starts) - 1 in (1, 2))
        rule = perceptron(weighting=worst, margin=margin)
        Twins(CHUNKING, corpus, QUEUES[queue], rule, STRATEGIES[0]).compare()

    same()


@few(60)
@given(CHUNKING.corpora, st.sampled_from(some_of_each(CHUNKING, STRATEGIES[:2])))
def test_any_update_is_close_in_both_engines(corpus, choice):
    Twins(CHUNKING, corpus, *choice, tolerance=1e-9).compare()


@few(30)
@given(CHUNKING.corpora, st.sampled_from(WEIGHTINGS))
def test_arrays_grow_and_keys_are_cut(corpus, weighting):
    rule = perceptron(weighting=weighting)
    twins = Twins(CHUNKING, corpus, QUEUES["beam 2 by key"], rule, STRATEGIES[0], tolerance=1e-9)
    twins.compare(small=True)
    twins.compare(hash_bits=4)


@few(15)
@given(CHUNKING.corpora, st.integers(0, 2**32 - 1))
def test_a_wide_beam_finds_the_best_of_all_segmentations(corpus, seed):
    """Scores from blocks equal those of features one by one, and no segmentation scores higher."""
    problem = Reference(Chunking, 3)
    weights = random_weights(problem, corpus, seed)
    machine = Machine(Chunking, options_for(Chunking, beam(1000, key=own_key), perceptron()))
    steps, ends, scores = machine.decode(corpus, all_of(corpus), table_of(weights))
    for i, found in enumerate(split(steps, ends)):
        x = input_of(corpus, i)
        values = {
            tuple(chunks): score(problem, x, chunks, weights)
            for chunks in segmentations(len(x.items))
        }
        assert scores[i] == max(values.values()) == values[tuple(found)]


def random_weights(problem: Reference, corpus: Dataset, seed: int) -> dict[Any, float]:
    """Whole numbers for all features that occur, so that sums are exact in any order."""
    numbers = np.random.default_rng(seed)
    weights: dict[Any, float] = {}
    for i in range(len(corpus.starts) - 1):
        x = input_of(corpus, i)
        for chunks in segmentations(len(x.items)):
            for name, _ in features_of(problem, x, chunks):
                if name not in weights:
                    weights[name] = float(numbers.integers(-9, 10))
    return weights


def table_of(weights: dict[Any, float]) -> Any:
    from laso.engine.weights.compact import make_table as table

    keys = sorted({key for key, _ in weights})
    v = np.zeros((len(keys), 3))
    for (key, label), weight in weights.items():
        v[keys.index(key), label] = weight
    return table(np.array(keys, np.int64), v)
