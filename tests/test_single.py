"""Calls with one sentence: the same results as for many, by arrays that are kept."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laso import CRF, SearchEstimator, Tagger, alma, beam, bounded_best_first, exact
from laso.data import load_bundled
from laso.data.table import Features
from laso.engine import thresholds
from laso.engine.lattice.exact import ExactMachine
from laso.engine.layout import STEPS
from laso.engine.machine import all_of
from laso.engine.text import layout as lt
from laso.errors import LasoError
from laso.estimators.decoding import decoders_of
from laso.examples.segmentation import LINES, Segmentation
from laso.features import feature_lists, inputs
from tests.spaces import quick
from tests.test_own_tasks import Tagging as OwnTagging

TRAIN, TEST = load_bundled()
LABELS = [[token[2] for token in sentence] for sentence in TRAIN[:30]]
WORDS = [[token[:2] for token in sentence] for sentence in TEST[:12]]


def dicts(sentences):
    return [[{"w": word, "pos": pos, "n": 1.5} for word, pos, *_ in s] for s in sentences]


@cache
def crf():
    return CRF("ap", max_iterations=3).fit(dicts(TRAIN[:30]), LABELS)


@cache
def tagger(**parameters):
    return Tagger(epochs=2, **parameters).fit(TRAIN[:30])


# Feature lists from marshalled bytes


def general(read, X):
    """What the general code reads, or its error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "read_marshalled", lambda *_, **__: None)
        return told(read, X)


def told(read, X):
    try:
        found = read(X)
    except LasoError as error:
        return type(error), str(error)
    if not isinstance(found, Features):
        return repr(found)
    arrays = (found.lengths, found.counts, found.keys, found.values)
    return [None if a is None else (a.dtype, a.tolist()) for a in arrays], list(found.names)


names = st.one_of(st.sampled_from(["w", "w:a", "", "a\0b", "ä", "\ud800", "x" * 9]), st.text())
numbers = st.one_of(
    st.booleans(),
    st.sampled_from([0, 1, -1, 255, 2**31 - 1, -(2**31), 2**31, 2**70, 1e-60, 1e39, -0.0]),
    st.floats(),
    st.integers(),
)
plain_values = st.one_of(names, numbers)
odd_values = st.one_of(
    plain_values,
    st.sampled_from([None, b"a", np.float32(2.5), np.str_("a"), 1j, object]),
    st.lists(names, max_size=2),
    st.dictionaries(names, numbers, max_size=2),
)


def tokens(values):
    return st.one_of(
        st.dictionaries(names, values, max_size=4),
        st.lists(names, max_size=4),
        st.sets(names, max_size=3),
        st.lists(names, max_size=3).map(tuple),
    )


def corpora(values):
    """Sentences of tokens, some of which are the same objects."""
    return st.lists(tokens(values), min_size=1, max_size=4).flatmap(
        lambda some: st.lists(st.lists(st.sampled_from(some), max_size=4), max_size=4)
    )


SHARED = {"w": "a", "n": 2.0}


@quick
@given(st.one_of(corpora(plain_values), corpora(odd_values)))
@example([[SHARED, SHARED], [SHARED]])
@example([[{"w": "a"}], [["w"]]])
def test_compiled_code_reads_what_the_general_code_reads(X):
    for read in (inputs.read_attributes, inputs.read_input):
        assert told(read, X) == general(read, X)
    for x in X:
        found = told(lambda X: inputs.read_attributes(X, named=False), [x])
        assert found[:1] == general(inputs.read_attributes, [x])[:1]


@quick
@given(st.lists(st.lists(st.dictionaries(names, st.one_of(names, st.booleans())), min_size=1)))
def test_strings_and_flags_need_no_general_code(X):
    for some in (X, X[:1]):
        assert feature_lists.read_marshalled(some, lt.AS_DICT, named=False) is not None


def test_many_sentences_and_long_names():
    X = [
        [{"w": f"{i % 700}" * (i % 90), "x" * 70_000: True}] for i in range(3 * feature_lists.SLICE)
    ]
    assert told(inputs.read_attributes, X) == general(inputs.read_attributes, X)
    assert told(inputs.read_attributes, X[:1]) == general(inputs.read_attributes, X[:1])
    assert feature_lists.read_marshalled(X, lt.AS_DICT, named=True) is not None


@quick
@given(corpora(odd_values))
def test_iterators_are_read_in_parts(X):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "TOGETHER", 2)
        assert told(inputs.read_attributes, iter(X)) == told(inputs.read_attributes, X)


def test_subclasses_of_strings_are_their_characters():
    class Odd(str):
        def __format__(self, _):
            return "other"

    odd = [[{Odd("w"): Odd("a")}]]
    assert told(inputs.read_attributes, odd) == told(inputs.read_attributes, [[{"w": "a"}]])


def test_another_format_is_noticed(monkeypatch):
    monkeypatch.setattr(feature_lists, "FORMAT", 1)  # numbers are text there
    assert not feature_lists.is_usable.__wrapped__()


# Chains without a lattice


@quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from(["float32", "float64"]))
def test_chains_equal_lattices_also_where_paths_are_equally_good(seed, most, dtype):
    random = np.random.default_rng(seed)
    model = crf()
    weights = random.integers(-most, most + 1, model.weights_.v.shape).astype(
        model.weights_.v.dtype
    )
    model = model.with_weights(model.weights_._replace(v=weights))
    _, dataset = model.encoded([[], *dicts(TEST[:8])])
    engine, order = model.engine(dataset), all_of(dataset)
    assert engine.promises_chains(dataset, order)
    found = engine.decode(dataset, order, model.weights_)
    probabilities = engine.label_probabilities(dataset, order, model.weights_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExactMachine, "promises_chains", lambda *_: False)
        expected = engine.decode(dataset, order, model.weights_)
        likewise = engine.label_probabilities(dataset, order, model.weights_)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    np.testing.assert_allclose(probabilities, likewise, atol=1e-5)


def test_probabilities_beyond_floats_are_those_of_the_lattice():
    model = crf()
    model = model.with_weights(model.weights_._replace(v=model.weights_.v * np.float32(1e4)))
    (found,) = model.predict_marginals(dicts(TEST[:1]))
    assert all(sum(each.values()) == pytest.approx(1) for each in found)
    assert found == model.predict_marginals_single(dicts(TEST[:1])[0])


@pytest.mark.parametrize(
    ("features", "constraints", "expected"),
    [
        (["w[0]", "label[-1]"], None, True),
        (["w[0]"], None, True),
        (["w[0]", "label[-1]"], "BIO", False),
        (["w[0]", "label[-2]"], None, False),
        (["w[0]", "label[-1]|w[0]"], None, False),
        (["label[-1]", "label[-1]|label[-1]"], None, False),
    ],
)
def test_which_taggers_promise_chains(features, constraints, expected):
    made = Tagger(features=features, constraints=constraints, queue=exact()).make_task()
    made.observe([made.read(TRAIN[:5], None)])
    dataset = made.encode(*made.read(TRAIN[:5], None))
    engine = ExactMachine(made.problem_for(dataset))
    assert engine.promises_chains(dataset, all_of(dataset)) == expected


# One input at a time


def own():
    return SearchEstimator(OwnTagging(), epochs=2).fit(
        [[token[0] for token in s] for s in TRAIN[:9]], LABELS[:9]
    )


def segmentation():
    Y = [line.split() for line in LINES]
    return SearchEstimator(Segmentation(), queue=exact()).fit(["".join(words) for words in Y], Y)


def lists(sentences):
    return [[[f"w={word}", f"pos={pos}"] for word, pos, *_ in s] for s in sentences]


@cache
def tagger_of_lists(**parameters):
    return Tagger(epochs=2, dropout=0, **parameters).fit(lists(TRAIN[:30]), LABELS)


MODELS: dict[str, Any] = {
    "crf": (crf, lambda: dicts(TEST[:12])),
    "lists": (lambda: tagger_of_lists(queue=beam(5)), lambda: lists(TEST[:12])),
    "lists, best-first": (
        lambda: tagger_of_lists(queue=bounded_best_first(5)),
        lambda: lists(TEST[:12]),
    ),
    "greedy": (lambda: tagger(queue=1), lambda: WORDS),
    "beam": (lambda: tagger(queue=beam(5)), lambda: WORDS),
    "best-first": (lambda: tagger(queue=bounded_best_first(5)), lambda: WORDS),
    "constraints": (lambda: tagger(queue=exact(), constraints="BIO"), lambda: WORDS),
    "own": (own, lambda: [[token[0] for token in s] for s in TEST[:12]]),
    "own exact": (segmentation, lambda: ["thedogisonamat", "acatsat", "", "a"]),
}


@pytest.mark.parametrize("name", MODELS)
def test_one_input_has_the_output_that_it_has_among_many(name, monkeypatch):
    model, inputs_of = (make() for make in MODELS[name])
    expected = [list(y) for y in model.predict([*inputs_of, *inputs_of])]
    found = [list(model.predict_single(x)) for x in (*inputs_of, *reversed(inputs_of))]
    assert found == [*expected[: len(inputs_of)], *reversed(expected[: len(inputs_of)])]
    assert [list(model.predict([x])[0]) for x in inputs_of] == expected[: len(inputs_of)]
    with ThreadPoolExecutor(4) as pool:
        assert [list(y) for y in pool.map(model.predict_single, 3 * inputs_of)] == (
            3 * expected[: len(inputs_of)]
        )
    # What is kept decodes without the engine for many inputs.
    monkeypatch.setattr(type(model.engine(model.encoded(inputs_of[:1])[1])), "decode", None)
    assert list(model.predict_single(inputs_of[0])) == expected[0]


LENGTHS = (1, 0, 7, 3, 60, 2, thresholds.KEPT_STEPS + 5, 4)


def test_inputs_of_all_lengths_in_any_order():
    x, model = WORDS[0] * 400, tagger(queue=1)
    for n in LENGTHS:
        assert model.predict_single(x[:n]) == list(model.predict([x[:n], x[:1] * (n + 1)])[0])
    known = decoders_of(model)._by_problem.values()
    kept = [space.limits[STEPS] for each in known for space in each._free]
    assert 60 <= max(kept) <= thresholds.KEPT_STEPS


def general_labels(model, x):
    """The twin of what ``predict_single`` does with feature lists, or its error."""
    try:
        return model.decode(*model.encoded([x]))[0]
    except LasoError as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", ["crf", "lists", "lists, best-first"])
def test_feature_lists_of_all_lengths_take_the_short_way(name):
    model, inputs_of = (make() for make in MODELS[name])
    x = inputs_of[0] * 400
    for n in LENGTHS:
        found = decoders_of(model).labels_of_lists(model, x[:n])
        assert (found is not None) == (0 < n <= 100), n  # a long one has too many bytes
        assert model.predict_single(x[:n]) == general_labels(model, x[:n])
    longer = [[f"{i}" for i in range(n)] for n in (3, 90, 0, 1)]
    for tokens in (longer, longer[:1], longer[1:]):
        assert model.predict_single(tokens) == general_labels(model, tokens)


@quick
@given(st.lists(st.dictionaries(names, odd_values, max_size=3), max_size=3))
@example([{"n": 3e38}, {"w": "a"}])
def test_the_short_way_equals_the_general_code(x):
    model = crf()
    try:
        found = model.predict_single(x)
    except LasoError as error:
        found = type(error), str(error)
    assert found == general_labels(model, x)


def test_values_come_and_go():
    model, x = crf(), dicts(TEST)[0]
    plain = [{"w": token["w"]} for token in x]
    some: Any
    for some in (x, plain, x[:3], plain[:4], [{"w": 2**70}], [{"w": ["a", "b"]}], [{}]):
        assert model.predict_single(some) == list(model.predict([some, x[:1] * 99])[0])


def test_later_weights_and_parameters_count():
    model = Tagger(epochs=2, seed=None).fit(TRAIN[:20])
    x = WORDS[0]

    def is_right(model):
        return model.predict_single(x) == model.predict([x, WORDS[1]])[0]

    assert is_right(model)
    assert is_right(model.biased({"O": 50.0}))
    assert set(model.biased({"O": 500.0}).predict_single(x)) == {"O"}
    assert is_right(model)
    model.partial_fit(TRAIN[20:30])
    assert is_right(model)
    model.set_params(queue=1)
    assert is_right(model)
    model.queue, model.update = exact(), alma()
    assert is_right(model)
    model.fit(TRAIN[5:9])
    assert is_right(model)


def test_copies_and_pickles_hold_nothing_that_is_kept():
    model, x = crf(), dicts(TEST)[0]
    expected = model.predict_single(x)
    assert "_prepared" in vars(model)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert "_prepared" not in vars(other)
        assert other.predict_single(x) == expected


def test_marginals_of_one_sentence_are_those_among_many():
    model = crf()
    many = model.predict_marginals(dicts(TEST[:12]))
    assert many == [model.predict_marginals_single(x) for x in dicts(TEST[:12])]
    few = model.predict_marginals(dicts(TEST[:2]), least=0.2)
    assert few == [[{k: p for k, p in t.items() if p >= 0.2} for t in s] for s in many[:2]]
