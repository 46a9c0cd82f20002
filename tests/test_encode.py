"""Encoding: any input as arrays, and that tokens share a key just if they share a feature."""

import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from laso.data import read_columns
from laso.data.table import Columns, Factor, Features
from laso.engine.hashing import mix
from laso.engine.layout import Limit, Out
from laso.engine.reference import input_of, output_of
from laso.errors import BadData, BadFeature, BadTemplate
from laso.features.base import TOGETHER, apply_bases, base_function
from laso.features.encoder import (
    View,
    distinct_labels,
    label_numbers,
    pack_strings,
    take_inputs,
    unpack_strings,
)
from laso.features.inputs import read_input, read_labels
from laso.features.keys import mix_arrays, string_keys
from laso.features.reading import read_table
from laso.features.templates import LABEL, parse_templates
from laso.tasks.tagging.encoder import TaggingEncoder
from laso.tasks.tagging.problem import Tagging, WeightedTagging
from tests.spaces import quick

# Keys


def key_of(string):
    """The twin of ``string_keys``."""
    data = string.encode("utf-8", "surrogatepass")
    key = mix(0, len(data))
    for at in range(0, len(data), 8):
        key = mix(key, int.from_bytes(data[at : at + 8], "little"))
    return key


@quick
@given(st.lists(st.text(st.characters(codec=None), max_size=20), max_size=6))
def test_keys_of_strings_are_those_of_their_twin(strings):
    assert string_keys(strings).tolist() == [key_of(string) for string in strings]
    assert unpack_strings(pack_strings(strings)) == strings


def test_keys_of_long_and_similar_strings_differ():
    strings = ["", "\0", "\0\0", "a" * 7, "a" * 8, "a" * 9, "a" * 1000, "a" * 1000 + "\0"]
    assert len(set(string_keys(strings).tolist())) == len(strings)


@quick
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_mixing_arrays_is_mixing(a, b):
    found = mix_arrays(np.array([a], np.uint64), np.array([b], np.uint64)).view(np.int64)
    assert found.tolist() == [mix(a, b)]


# Column files


def sentences_of(data):
    """Columns as lists of sentences of tuples."""
    columns = [
        [c.values[code] for code in c.codes] if isinstance(c, Factor) else list(c)
        for c in data.columns
    ]
    tokens = iter(zip(*columns, strict=True))
    return [[next(tokens) for _ in range(n)] for n in data.lengths.tolist()]


@pytest.fixture(scope="module")
def some_file(tmp_path_factory):
    return tmp_path_factory.mktemp("columns") / "file.txt"


def outcome(read):
    """What was read, or what is wrong."""
    try:
        return read()
    except BadData as error:
        return str(error)


PIECES = [
    "a",
    "b",
    "B-NP",
    "é",
    "\u2028",
    " ",
    " ",
    " ",
    "\t",
    "\n",
    "\n",
    "\n\n",
    "\r\n",
    "\v",
    "#",
]


@quick
@given(st.lists(st.sampled_from(PIECES), max_size=24).map("".join))
def test_a_column_file_is_read_as_the_precise_reader_reads_it(some_file, text):
    some_file.write_bytes(text.encode())
    assert outcome(lambda: sentences_of(read_table(some_file))) == outcome(
        lambda: read_columns(some_file)
    )


@pytest.mark.parametrize(
    "data", [b"a X\nb\xff Y\n", b"\xef\xbb\xbfa X\n", b"a X\rb Y\n", b"", b"\n"]
)
def test_unusual_files_are_left_to_the_precise_reader(some_file, data):
    some_file.write_bytes(data)
    assert outcome(lambda: sentences_of(read_table(some_file))) == outcome(
        lambda: read_columns(some_file)
    )


# Inputs


def test_strings_and_tuples_are_columns():
    words = read_input([["a", "b"], [], ["c"]])
    assert isinstance(words, Columns)
    assert words.lengths.tolist() == [2, 0, 1]
    assert sentences_of(words) == [[("a",), ("b",)], [], [("c",)]]
    pairs = [[("a", "X"), ("b", "Y")], [("c", "X")]]
    assert sentences_of(read_input(pairs)) == pairs
    assert sentences_of(read_input(iter(pairs))) == pairs
    arrays = [np.array(["a", "b"]), np.array(["c"])]
    assert sentences_of(read_input(arrays)) == [[("a",), ("b",)], [("c",)]]


def named(data):
    """The features of each token as {key: value}."""
    assert isinstance(data, Features)
    values = np.ones(len(data.keys)) if data.values is None else data.values
    ends = np.cumsum(data.counts)
    return [
        sorted(zip(data.keys[a:b].tolist(), values[a:b].tolist(), strict=True))
        for a, b in zip(ends - data.counts, ends, strict=True)
    ]


def as_keys(features):
    return sorted((key_of(name), value) for name, value in features.items())


def test_lists_sets_and_dicts_are_features():
    assert named(read_input([[["x", "y"], []], [["y"]]])) == [
        as_keys({"x": 1.0, "y": 1.0}),
        [],
        as_keys({"y": 1.0}),
    ]
    assert named(read_input([[{"x", "y"}]])) == [as_keys({"x": 1.0, "y": 1.0})]
    data = read_input([[{"w": "a", "up": True, "no": False, "none": 0}, {"w": "b", "up": 1}]])
    assert named(data) == [as_keys({"w:a": 1.0, "up": 1.0}), as_keys({"w:b": 1.0, "up": 1.0})]
    assert isinstance(data, Features)
    assert data.values is None


def test_numbers_are_weights():
    data = read_input([[{"n": 2.5, "m": -1}, {"n": np.float32(0.5), "flag": np.bool_(True)}]])
    assert named(data) == [as_keys({"n": 2.5, "m": -1.0}), as_keys({"n": 0.5, "flag": 1.0})]


def test_nested_features_have_their_names_before_them():
    data = read_input([[{"a": {"b": "c", "d": 2.0}, "e": ["f", "g"], "h": {"i": {"j": True}}}, {}]])
    expected = {"a:b:c": 1.0, "a:d": 2.0, "e:f": 1.0, "e:g": 1.0, "h:i:j": 1.0}
    assert named(data) == [as_keys(expected), []]
    flat = {"x": "y", "n": 0.5}
    assert named(read_input([[flat]])) == named(read_input([[{**flat, "empty": ()}]]))


def test_dense_and_sparse_matrices_are_the_same():
    rows = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    dense = read_input([rows, rows[:1]])
    for make in (scipy.sparse.csr_matrix, scipy.sparse.coo_array, scipy.sparse.csc_array):
        sparse = read_input([make(rows), make(rows[:1])])
        assert named(sparse) == named(dense)
        assert isinstance(sparse, Features)
        assert (sparse.width, sparse.lengths.tolist()) == (3, [3, 1])
    assert [[value for _, value in token] for token in named(dense)][3] == [1.5]
    first, second = (dict(token) for token in named(dense)[:2])
    assert not first.keys() & second.keys()
    assert named(dense)[0] == named(dense)[3]
    whole = read_input([np.array([[1, 0], [1, 1]])])
    assert isinstance(whole, Features)
    assert whole.values is None
    empty = scipy.sparse.csr_matrix(([0.0, 3.0], ([0, 0], [0, 1])), shape=(1, 2))
    assert [value for _, value in named(read_input([empty]))[0]] == [3.0]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (None, "found None for X, expected a list of sentences"),
        (7, "found 7 for X"),
        ([7], "found the sentence 7, expected a list of tokens"),
        (["ab"], "found the sentence 'ab', expected a list of tokens"),
        ([["a"], "bc"], "found the sentence 'bc', expected a list of tokens"),
        ([["a", 1]], "sentence 1, token 2: found the token 1, expected a str like the first token"),
        ([[1]], "sentence 1, token 1: found the token 1, expected a string, a tuple, a dict or a"),
        ([["a"], [("a", "b")]], "sentence 2, token 1: found the token ('a', 'b'), expected a str"),
        ([[], [("a", "b"), ("a",)]], "sentence 2, token 2: found 1 columns, expected 2 as in"),
        ([[()]], "sentence 1, token 1: found 0 columns, expected at least 1"),
        ([[["a"], [1]]], "sentence 1, token 2: found the feature 1, expected a string"),
        ([[{"a": None}]], "sentence 1, token 1: found None for the feature 'a', expected a string"),
        ([[{}, {"a": {"b": 1j}}]], "sentence 1, token 2: found 1j for the feature 'a:b'"),
        ([[{1: "a"}]], "sentence 1, token 1: found the feature name 1, expected a string"),
        ([np.ones((1, 2)), np.ones((1, 3))], "sentence 1: found 2 columns, expected a matrix of 3"),
        ([np.ones((1, 2)), ["a"]], "sentence 2: found ['a'], expected a matrix of 2 columns"),
    ],
)
def test_what_is_wrong_with_an_input(X, message):
    with pytest.raises(BadData) as error:
        read_input(X)
    assert message in str(error.value)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_features_are_finite(bad):
    with pytest.raises(BadFeature, match=r"sentence 1, token 2: found .* for the feature 'a'"):
        read_input([[{"a": 1.0}, {"a": bad}]])
    with pytest.raises(BadFeature, match="sentence 2, token 1: found NaN or infinity"):
        read_input([np.ones((1, 1)), np.array([[bad]])])


# Keys of templates

VALUES = ["a", "A", "ab", "b1", ""]
BASES = [(), ("lower",), ("prefix1",), ("lower", "suffix1"), ("isupper",)]


@st.composite
def template_lists(draw):
    column = st.sampled_from(["w", "pos", "1"])
    base = st.sampled_from(BASES)
    offset = st.integers(-2, 2)
    atoms = st.builds(lambda c, b, o: f"{'.'.join([c, *b])}[{o}]", column, base, offset)
    atoms |= st.integers(-3, -1).map(lambda o: f"label[{o}]")
    names = st.sampled_from(["", "", "one: ", "two: "])
    texts = st.lists(atoms, min_size=1, max_size=3).map("|".join) | st.just("bias")
    return draw(st.lists(st.builds(str.__add__, names, texts), min_size=1, max_size=6))


token = st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES))
corpora = st.lists(st.lists(token, max_size=4), min_size=1, max_size=4)


def named_features(encoder, words, position, history):
    """The twin: every feature of a token by what it says, and the column values it rests on."""
    result = []
    for template in encoder.templates:
        values = []
        for atom in template.atoms:
            at = position + atom.offset
            if atom.column == LABEL:
                values.append(history[at] if at >= 0 else "none")
            elif at < 0:
                values.append(("before", -at))
            elif at >= len(words):
                values.append(("after", at - len(words)))
            else:
                column = {"w": 0, "pos": 1, "1": 1}[atom.column]
                values.append((column, atom.bases, *apply_bases(atom.bases, [words[at][column]])))
        result.append((template.identity, tuple(values)))
    return sorted(result, key=repr)


def keys_at(corpus, i, position, history):
    """The keys that the engine makes, in the order of the twin's features being unknown."""
    x = input_of(corpus, i)
    limits = np.zeros(len(Limit), np.int64)
    Tagging.limits(x, limits)
    state = np.full(limits[0], -1, np.int32)
    state[0] = position
    for k, label in enumerate(reversed(history[:position])):
        if k + 1 < len(state):
            state[k + 1] = label
    out = Out(np.zeros(2 * limits[2], np.int64), np.ones(2 * limits[2]))
    n = Tagging.block_features(x, position, out)
    n += Tagging.features(x, state, 0, Out(out.keys[n:], out.values[n:]))
    return out.keys[:n].tolist()


def by_template(encoder, corpus, i, position, history):
    """Each template's key beside its feature: static templates come first."""
    keys = keys_at(corpus, i, position, history)
    static = [t for t in encoder.templates if all(a.column != LABEL for a in t.atoms)]
    dynamic = [t for t in encoder.templates if any(a.column == LABEL for a in t.atoms)]
    return dict(zip(static + dynamic, keys, strict=True))


@quick
@given(template_lists(), corpora, corpora, st.randoms(use_true_random=False))
def test_two_tokens_share_a_key_just_if_they_share_the_feature(texts, train, test, random):
    templates = parse_templates(texts)
    encoder = TaggingEncoder(templates, ("w", "pos"), ("X", "Y"))
    data = read_input(train)
    if data.lengths.sum():
        encoder.grow(data)
    for words in test:  # some values that training has not seen
        words[:1] = [("new", "New")] * len(words[:1])
    features: dict[object, int] = {}
    keys: dict[int, object] = {}
    known: set[object] = set()
    for sentences in (train, test):
        corpus = encoder.dataset(read_input(sentences))
        for i, words in enumerate(sentences):
            history = [random.randrange(2) for _ in words]
            for position in range(len(words)):
                found = by_template(encoder, corpus, i, position, history)
                for template, key in found.items():
                    one = TaggingEncoder((template,), ("w", "pos"), ("X", "Y"))
                    (feature,) = named_features(one, words, position, history)
                    values = {v for v in feature[1] if isinstance(v, tuple) and len(v) == 3}
                    if sentences is train:
                        known |= values
                        assert features.setdefault(feature, key) == key
                        assert keys.setdefault(key, feature) == feature
                    elif values <= known:
                        assert features.get(feature, key) == key
                        assert keys.get(key, feature) == feature
                    else:
                        assert key not in keys


def test_base_features_of_words_never_seen_are_known_if_other_words_have_them():
    encoder = TaggingEncoder(parse_templates(["w[0]", "w.suffix3[0]"]), ("w",), ("X",))
    encoder.grow(read_input([["walking", "cat"]]))
    corpus = encoder.dataset(read_input([["talking", "walking", "dog"]]))
    assert corpus.items.tolist() == [[-1, 0], [0, 0], [-1, -1]]


def test_the_same_from_a_file_and_from_lists(some_file):
    sentences = [[("a", "X", "B"), ("b", "Y", "I")], [("a", "Y", "O")]]
    some_file.write_text("a X B\nb Y I\n\na Y O\n", encoding="utf-8")
    made = []
    for data in (read_input(some_file), read_input(str(some_file)), read_input(sentences)):
        assert isinstance(data, Columns)
        words, labels = data.split()
        names = distinct_labels(labels, words.lengths)
        encoder = TaggingEncoder(
            parse_templates(["w[0]", "pos.lower[0]"]), ("w", "pos"), tuple(names)
        )
        encoder.grow(words)
        made.append(encoder.dataset(words, label_numbers(labels, names, words.lengths)))
    for corpus in made[1:]:
        assert all((a == b).all() for a, b in zip(corpus, made[0], strict=True))
    assert made[0].outputs.tolist() == [0, 1, 2]


def test_vocabularies_grow_and_old_numbers_stay():
    encoder = TaggingEncoder(parse_templates(["w[0]", "w.lower[0]"]), ("w",), ("X",))
    encoder.grow(read_input([["A", "b"]]))
    before = encoder.dataset(read_input([["A", "b"]])).items.tolist()
    encoder.grow(read_input([["B", "a", "c"]]))
    assert encoder.dataset(read_input([["A", "b"]])).items.tolist() == before
    assert encoder.dataset(read_input([["B", "a", "c"]])).items.tolist() == [[2, 1], [3, 0], [4, 2]]


@pytest.mark.parametrize(
    ("names", "text", "message"),
    [
        (("w",), "x[0]", "found the column 'x', expected one of w or a number below 1"),
        (("w",), "1[0]", "found the column '1', expected one of w or a number below 1"),
        ((), "w[0]", "found the column 'w', but the tokens have features of their own"),
    ],
)
def test_columns_that_are_not_there(names, text, message):
    with pytest.raises(BadTemplate) as error:
        TaggingEncoder(parse_templates([text]), names, ("X",))
    assert message in str(error.value)
    assert repr(text) in str(error.value)


def test_inputs_of_another_kind_than_learned_from():
    columns = TaggingEncoder(parse_templates(["w[0]"]), ("w", "pos"), ("X",))
    with pytest.raises(BadData, match="found 1 columns, expected 2"):
        columns.dataset(read_input([["a"]]))
    with pytest.raises(BadData, match="found 1 columns, expected 2"):
        columns.grow(read_input([["a"]]))
    with pytest.raises(BadData, match="sentence 1, token 2: found 3 in a column, expected a str"):
        columns.grow(read_input([[("a", "b"), (3, "b")]]))
    with pytest.raises(BadData, match="found tokens with features of their own, expected 2 col"):
        columns.dataset(read_input([[["a"]]]))
    own = TaggingEncoder(parse_templates(["bias"]), (), ("X",))
    with pytest.raises(BadData, match="found 1 columns, expected tokens with features"):
        own.dataset(read_input([["a"]]))
    with pytest.raises(BadData, match="found a matrix of 2 columns, expected feature names"):
        own.dataset(read_input([np.ones((1, 2))]))
    matrix = TaggingEncoder(parse_templates(["bias"]), (), ("X",), 3)
    with pytest.raises(BadData, match="found feature names, expected a matrix of 3 columns"):
        matrix.dataset(read_input([[["a"]]]))


def test_features_of_their_own_reach_the_engine_with_their_values():
    encoder = TaggingEncoder(parse_templates(["bias", "label[-1]"]), (), ("X", "Y"))
    corpus = encoder.dataset(read_input([[{"a": "b", "n": 2.5}, {}], [{"n": -1.0}]]))
    expected = [{"a:b": 1.0, "n": 2.5}, {}, {"n": -1.0}]
    for (i, position), own in zip([(0, 0), (0, 1), (1, 0)], expected, strict=True):
        x = input_of(corpus, i)
        out = Out(np.full(9, 7, np.int64), np.full(9, 7.0))
        n = WeightedTagging.block_features(x, position, out)
        found = sorted(zip(out.keys[:n].tolist(), out.values[:n].tolist(), strict=True))
        assert found == sorted([*as_keys(own), (key_of("bias"), 1.0)])
        more = Out(out.keys[n:], out.values[n:])
        assert WeightedTagging.features(x, np.array([position, -1], np.int32), 0, more) == 1
        assert more.values[0] == 1.0


# Labels


def test_labels_as_numbers():
    lengths = np.array([2, 1])
    labels = read_labels([["Y", None], ["X"]], lengths)
    names = distinct_labels(labels, lengths)
    assert names == ["X", "Y"]
    assert label_numbers(labels, names, lengths).tolist() == [1, -1, 0]
    with pytest.raises(BadData, match="sentence 2, token 1: found the label 'X', which training"):
        label_numbers(labels, ["Y"], lengths)
    with pytest.raises(BadData, match="sentence 1, token 2: found the label 3, expected a string"):
        distinct_labels(["X", 3, "X"], lengths)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["X", "X"]], "found labels for 1 sentences, expected 2"),
        ([["X"], ["X"]], "sentence 1: found 1 labels, expected 2 labels, one a token"),
        ([["X", "X"], "X"], "sentence 2: found 'X', expected 1 labels"),
    ],
)
def test_labels_that_do_not_fit(y, message):
    with pytest.raises(BadData, match=message):
        read_labels(y, np.array([2, 1]))


def test_some_of_the_sentences():
    encoder = TaggingEncoder(parse_templates(["w[0]"]), ("w",), ("X", "Y"))
    data = read_input([["a"], [], ["b", "c"], ["d"]])
    encoder.grow(data)
    corpus = encoder.dataset(data, np.array([0, 1, 0, 1]))
    part = take_inputs(corpus, np.array([3, 1, 2]))
    assert [input_of(part, i).items.ravel().tolist() for i in range(3)] == [[3], [], [1, 2]]
    assert [output_of(part, i).tolist() for i in range(3)] == [[1], [], [1, 0]]


@quick
@given(
    st.lists(st.lists(st.text("aAbß1-", max_size=5), unique=True, max_size=6), max_size=3),
    st.sampled_from([(), ("lower",), ("prefix2",), ("lower", "suffix1"), ("isupper",)]),
)
def test_base_features_are_numbered_as_they_first_occur(parts, bases):
    view = View(0, bases, {})
    ids: dict[str, int] = {}
    expected = []
    for values in parts:
        view.grow(values)
        for value in values:
            for name in bases:
                value = base_function(name)(value)
            expected.append(ids.setdefault(value, len(ids)))
    assert view.of_value.tolist() == expected
    assert view.ids == ids
    assert list(view.ids) == list(ids)


@quick
@given(st.lists(st.text(alphabet="aAbB10-\0é Σ", max_size=6), max_size=9))
def test_base_features_by_character_are_those_of_each_value(values):
    """Of many values they are computed as one text."""
    for name in TOGETHER:
        assert apply_bases([name], values) == [base_function(name)(value) for value in values]
