"""Chunking as search: its space, the features of a chunk, and both engines on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from laso import beam, delayed, early, greedy, perceptron, restart, worst
from laso.data.table import Columns
from laso.engine import layout as at
from laso.engine.layout import Dataset, Out
from laso.engine.machine import Machine, all_of, as_names, averaged, new_table
from laso.engine.options import options_for, own_key
from laso.engine.reference import Reference, State, input_of, output_of
from laso.engine.shared import capped
from laso.errors import BadTemplate
from laso.features.templates import parse_templates
from laso.problem import Node
from laso.tasks.chunking import problem as chunking
from laso.tasks.chunking.encoder import SegmentEncoder, kind_of
from laso.tasks.chunking.feature_sets import paper_features, rich_features
from laso.tasks.chunking.problem import Chunking, chunk_code
from tests.engine_inputs import Task
from tests.engine_twins import QUEUES, STRATEGIES, WEIGHTINGS, Twins, some_of_each, split

LABELS = ("A", "B", "O")
LIMITS = (3, 2, 1)  # of chunks of each label; O is outside
Segmentation = list[tuple[int, int]]  # of (length, label)


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


def encoder_for(features: list[str], sentences: list[Any], limit: int = 3) -> SegmentEncoder:
    templates, longest = parse_templates(features), {"B": LIMITS[1]}
    encoder = SegmentEncoder(templates, ("w", "pos"), LABELS, limit=limit, longest=longest)
    encoder.grow(data_of(sentences))
    return encoder


def data_of(sentences: list[Any]) -> Columns:
    tokens = [token for sentence in sentences for token in sentence]
    lengths = np.array([len(sentence) for sentence in sentences], np.int64)
    return Columns(lengths, [[w for w, _ in tokens], [pos for _, pos in tokens]])


def output(segmentation: Segmentation) -> list[int]:
    """The output of an input, written by hand from the description of the task."""
    y = []
    for length, label in segmentation:
        y += [int(chunk_code(length, label, len(LABELS))), *[-1] * (length - 1)]
    return y


def corpus_of(features: list[str], sentences: list[Any], outputs: Any = None) -> Dataset:
    flat = None if outputs is None else np.array([i for one in outputs for i in output(one)], int)
    return encoder_for(features, sentences).dataset(data_of(sentences), flat)


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


# --------------------------------------------------------------------------- features

SENTENCES = [
    [("The", "DT"), ("running", "VBG"), ("dogs", "NNS"), ("ran", "VBD"), (".", ".")],
    [("dogs", "NNS"), ("ran", "VBD"), ("the", "DT"), ("dogs", "NNS")],
    [("Ran", "NNP")],
    [("the", "DT")] * 5,
]


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


META = "[each,pair,triple,all,first-1,last+1]"
SMALL_PAPER = [
    *(f"{base}{META}" for base in ("w", "pos", "w.suffix1", "pos.prefix1")),
    "length",
    "label[-1]",
]


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


OTHERS = [
    "w[first-1]|w[first]",
    "w[last]|w[last+1]",
    "pos[first-2]|pos[first-1]|pos[first]",
    "pos[first-1]|pos[all]|pos[last+1]",
    "length|pos[first]",
    "label[-1]|w[first]",
    "w[last]|label[-1]|length",
    "w[any]|pos[any]",
    "w[each]|pos[each]",
    "w[pair]|pos[pair]",
    "w[first+2]",
    "bias",
]


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


# --------------------------------------------------------------------------- both engines

SOME = [*SMALL_PAPER, *OTHERS]


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


def features_of(problem: Reference, x: Any, chunks: Segmentation) -> Iterator[Any]:
    state = problem.initial(x)
    for operator in chunks:
        yield from problem.features(x, state, operator).items()
        state = problem.apply(x, state, operator)


def score(problem: Reference, x: Any, chunks: Segmentation, weights: Any) -> float:
    return float(sum(weights[name] * count for name, count in features_of(problem, x, chunks)))


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


WORDS = ["the", "a", "of", "dog", "cats", "ran", "runs", "quickly"]


PLAIN = "laso.engine.machine.with_segments"


def drawn_corpus(random: Any) -> Dataset:
    """Sentences of some words, with all features."""
    lengths = random.integers(1, 12, size=60)
    sentences = [
        [(WORDS[i], "xyz"[i % 3]) for i in random.integers(len(WORDS), size=n)] for n in lengths
    ]
    outputs: list[Segmentation] = []
    for n in lengths:
        chunks: Segmentation = []
        while (left := n - sum(length for length, _ in chunks)) > 0:
            length = int(random.integers(1, min(3, left) + 1))
            chunks.append((length, int(random.integers(0, 4 - length))))
        outputs.append(chunks)
    return corpus_of(list(rich_features(("w", "pos"))), sentences, outputs)


@pytest.mark.parametrize("width", [1, 5])
@pytest.mark.parametrize("kind", ["many", "whole", "few"])
def test_rounds_filled_when_they_open_have_the_nodes_of_the_plain_search(kind, width, monkeypatch):
    """The faster search of segments takes shared sums and bounds; both searches answer the same."""
    random = np.random.default_rng(width)
    corpus = drawn_corpus(random)
    options = options_for(Chunking, beam(width, key=own_key), perceptron(weighting=worst))
    engine, order = Machine(Chunking, options), all_of(corpus)
    table = new_table(3, dtype=np.float32)
    table, _, _ = engine.learn(corpus, order, table, engine.new_run(corpus, order, table))
    rows = int(table.ints[at.ROWS])
    if kind == "many":
        table.v[:rows] = random.standard_normal((rows, 3))
        table.v[random.integers(rows, size=3)] *= 20
    elif kind == "whole":  # many steps have equal scores
        table.v[:rows] = random.integers(-1, 2, size=(rows, 3))
    known = engine.decode(corpus, order, table)
    monkeypatch.setattr(PLAIN, lambda _, __, run: run)
    for mine, plain in zip(known, engine.decode(corpus, order, table), strict=True):
        assert np.array_equal(mine, plain)


@pytest.mark.parametrize("often", [False, True], ids=["once", "often"])
@pytest.mark.parametrize(
    ("width", "strategy"), [(1, restart), (2, restart), (5, restart), (5, early), (2, delayed)]
)
def test_learning_that_fills_rounds_when_they_open_makes_the_same_updates(
    width, strategy, often, monkeypatch
):
    """Whole weights are the same to the last digit, with bounds that are chosen once or often."""
    corpus = drawn_corpus(np.random.default_rng(width))
    if often:
        monkeypatch.setattr("laso.engine.shared.CAPS_PER_RAISED", 1 << 20)
    rule = perceptron(weighting=worst, margin=7.0)
    engine = Machine(Chunking, options_for(Chunking, beam(width, key=own_key), rule, strategy))

    def learnt(part: int) -> tuple[Any, Any]:
        order, table = all_of(corpus), new_table(3, margin=7.0, dtype=np.float32)
        run = engine.new_run(corpus, order, table)
        for _ in range(3):
            for first in range(0, len(order), part):
                table, run, _ = engine.learn(corpus, order[first : first + part], table, run)
        return table, run

    table, run = learnt(20)
    assert table.ints[at.GENERATION] > 20
    assert_bounded(run, table)
    monkeypatch.setattr(PLAIN, lambda _, __, run: run)
    plain, _ = learnt(60)
    assert as_names(table) == as_names(plain)
    assert as_names(averaged(table)) == as_names(averaged(plain))


def assert_bounded(run: Any, table: Any) -> None:
    """No weight exceeds the upper bound of its key."""
    used = table.slots[table.slots[:, at.SLOT_ROW] != 0]
    caps = run.levels[run.caps[used[:, at.SLOT_KEY] & (len(run.caps) - 1)]]
    assert len(run.caps) > 1
    assert np.all(table.v[used[:, at.SLOT_ROW] - 1].max(axis=1) <= caps)


def test_bounds_are_chosen_anew_for_other_weights(monkeypatch):
    monkeypatch.setattr("laso.engine.shared.CAPS_PER_RAISED", 0)  # not because many were raised
    corpus = drawn_corpus(np.random.default_rng(0))
    options = options_for(Chunking, beam(2, key=own_key), perceptron(weighting=worst, margin=7.0))
    engine, order = Machine(Chunking, options), all_of(corpus)
    table = new_table(3, margin=7.0, dtype=np.float32)
    table, run, _ = engine.learn(corpus, order, table, engine.new_run(corpus, order, table))
    other = table._replace(v=table.v * 100, u=table.u.copy(), mark=table.mark.copy())
    assert capped(Chunking, run, table) is run
    assert run.meta[at.CAPS_WANTED] == 0
    assert capped(Chunking, run, other).meta[at.CAPS_WANTED] == 1
    other, run, _ = engine.learn(corpus, order, other, run)
    assert_bounded(run, other)


@pytest.mark.parametrize(
    ("template", "by_state"),
    [("label[-1]|w[first+1]", True), ("label[-1]|length", False), ("label[-1]|w[last]", False)],
)
def test_features_that_do_not_depend_on_the_length_are_known_as_such(template, by_state):
    corpus = corpus_of([template, "label[-1]", "w[each]"], SENTENCES)
    x = input_of(corpus, 0)
    assert bool(Chunking.features_of_state(x)) == by_state
    written = [Out(np.zeros(4, np.int64), np.zeros(4)) for _ in range(2)]
    for length, out in enumerate(written, start=1):
        Chunking.features(x, np.array([0, 1], np.int32), length, out)
    assert np.array_equal(written[0].keys, written[1].keys) == by_state


def table_of(weights: dict[Any, float]) -> Any:
    from laso.model_file import make_table as table

    keys = sorted({key for key, _ in weights})
    v = np.zeros((len(keys), 3))
    for (key, label), weight in weights.items():
        v[keys.index(key), label] = weight
    return table(np.array(keys, np.int64), v)


def test_sums_of_a_learner_are_kept_up_to_date():
    """After each update the blocks are summed anew: the score answered is that of the weights."""
    chunks: list[Segmentation] = [
        [(2, 0), (1, 2), (2, 1)],
        [(1, 1), (3, 0)],
        [(1, 1)],
        [(3, 0), (2, 0)],
    ]
    corpus = corpus_of(SOME, SENTENCES, chunks)
    options = options_for(Chunking, beam(3, key=own_key), perceptron(weighting=worst, margin=1.0))
    machine = Machine(Chunking, options)
    table = new_table(3, margin=1.0, dtype=np.float64)
    run = machine.new_run(corpus, all_of(corpus), table)
    for _ in range(20):
        table, run, wrong = machine.learn(corpus, all_of(corpus), table, run)
    assert wrong == 0
    steps, ends, scores = machine.decode(corpus, all_of(corpus), table)
    assert split(steps, ends) == chunks
    weights: dict[Any, float] = defaultdict(float)
    for key, row in table.slots[table.slots[:, 1] != 0]:
        for label in range(3):
            weights[int(key), label] = table.v[row - 1, label]
    problem = Reference(Chunking, 3)
    for i, found in enumerate(chunks):
        assert scores[i] == score(problem, input_of(corpus, i), found, weights)


def test_limits_hold_for_a_sentence_shorter_than_the_limit_and_for_an_empty_one():
    encoder = encoder_for(SOME, SENTENCES, limit=60)
    for sentence in ([], SENTENCES[2], SENTENCES[0]):
        corpus = encoder.dataset(data_of([sentence]))
        machine = Machine(Chunking, options_for(Chunking, greedy(), perceptron()))
        steps, _, _ = machine.decode(corpus, all_of(corpus), new_table(3, dtype=float))
        assert steps[:, 0].sum() == len(sentence)
        x = input_of(corpus, 0)
        limits = np.zeros(5, np.int64)
        Chunking.limits(x, limits)
        blocks = {
            int(Chunking.block(x, np.array([start, 0], np.int32), length))
            for start in range(len(sentence))
            for length in range(1, len(sentence) - start + 1)
        }
        assert len(blocks) == len(sentence) * (len(sentence) + 1) // 2
        assert max(blocks, default=0) < max(1, limits[at.BLOCKS])
        for block in blocks:
            parts = [int(Chunking.sub_block(x, block, i)) for i in range(3)]
            assert parts.index(-1) >= 1
            assert all(0 <= part < block for part in parts[: parts.index(-1)])
