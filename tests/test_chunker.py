"""The chunker: schemes, whole chunks in and out, what is saved, and what is refused."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from laso import Chunker, Tagger, adagrad, alma, beam, exact, lbfgs, max_violation, perceptron
from laso.data import load_bundled
from laso.errors import BadData, BadModel, BadTemplate
from laso.features.schemes import SCHEMES, convert_tags, read_tags
from laso.metrics import chunk_scores, chunks
from tests.spaces import quick

TRAIN, TEST = load_bundled()
WORDS = [[token[:2] for token in sentence] for sentence in TEST]
TAGS = [[token[2] for token in sentence] for sentence in TEST]
FEATURES = ("pos[each,pair,all,first-1,last+1]", "w[each]", "length", "label[-1]")


def small(**given: Any) -> Chunker:
    parameters: dict[str, Any] = {"features": FEATURES, "epochs": 3, "threads": 1}
    return Chunker(**(parameters | given))


@pytest.fixture(scope="module")
def fitted():
    return small().fit(TRAIN)


# Schemes


def tags_of(drawn, scheme):
    """Tags of drawn chunks (type or None for outside, length), written plainly."""
    tags: list[str] = []
    before = None
    for kind, length in drawn:
        if kind is None:
            tags.append("O")
        elif scheme == "IOBES":
            inside = ["B", *["I"] * (length - 2), "E"] if length > 1 else ["S"]
            tags += [f"{mark}-{kind}" for mark in inside]
        else:
            first = "B" if scheme == "BIO" or before == kind else "I"
            tags += [f"{first}-{kind}", *[f"I-{kind}"] * (length - 1)]
        before = kind
    return tags


drawn_chunks = st.lists(
    st.tuples(st.sampled_from(["x", "y", "x-y"]), st.integers(1, 4)) | st.just((None, 1))
)


@quick
@given(st.lists(drawn_chunks, max_size=4), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_every_scheme_is_read_and_written(sentences, one, other):
    tags = [tags_of(drawn, one) for drawn in sentences]
    assert convert_tags(tags, other) == [tags_of(drawn, other) for drawn in sentences]
    lengths = np.array([len(sentence) for sentence in tags], np.int64)
    spans, _ = read_tags([tag for sentence in tags for tag in sentence], lengths)
    expected = [chunk for drawn in sentences for chunk in drawn]
    names = [spans.names[i] if spans.names[i] != "O" else None for i in spans.types]
    assert list(zip(names, spans.lengths.tolist(), strict=True)) == expected


@quick
@given(st.lists(st.sampled_from(["O", "B-x", "I-x", "B-y", "I-y", "B", "I"])))
def test_tags_are_read_as_conlleval_reads_them(tags):
    (bio,) = convert_tags([tags], "BIO")
    assert chunks(bio) == chunks(tags)


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("B-x I-x O B-x", "BIO"),
        ("I-x I-x O I-x B-x", "IOB1"),
        ("I-x I-x O B-x", "BIO"),  # an I without its B is forgiven
        ("B-x E-x O S-y", "IOBES"),
        ("O O", "BIO"),
    ],
)
def test_the_scheme_is_recognised(tags, scheme):
    tags = tags.split()
    assert read_tags(tags, np.array([len(tags)]))[1] == scheme


def test_a_change_of_label_inside_a_chunk_begins_another():
    assert convert_tags([["B-x", "I-y", "I-y", "I-x"]], "IOBES") == [["S-x", "B-y", "E-y", "S-x"]]


@pytest.mark.parametrize("tag", ["X-x", "B-", "b-x", "", "B-O", 3])
def test_tags_that_are_none(tag):
    with pytest.raises(BadData, match="sentence 2, token 1: found the tag"):
        small().fit([["a"], ["b"]], [["O"], [tag]])


# Learning


def test_chunks_are_learned(fitted):
    score = fitted.score(TEST)
    assert score > 0.85
    assert score == fitted.score(WORDS, TAGS) == chunk_scores(TAGS, fitted.predict(WORDS)).f / 100
    longest = {"O": 1}
    for chunk in (c for s in TRAIN for c in spans(s)):
        longest[chunk.type] = max(longest.get(chunk.type, 1), chunk.end - chunk.start)
    assert fitted.task_.state_["longest"] == longest
    assert fitted.task_.state_["max_chunk_length"] == max(longest.values())
    assert sorted(fitted.classes_) == sorted({"O"} | {c.type for s in TRAIN for c in spans(s)})


def spans(sentence):
    return chunks([token[2] for token in sentence])


def test_whole_chunks_are_answered(fitted):
    expected = [[(c.type, c.start, c.end) for c in chunks(tags)] for tags in fitted.predict(WORDS)]
    assert fitted.predict_chunks(WORDS) == expected
    assert fitted.predict_chunks([[], WORDS[0]]) == [[], expected[0]]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_answers_are_in_the_scheme_of_the_data_or_in_the_one_asked_for(fitted, scheme):
    X = [[token[:2] for token in sentence] for sentence in TRAIN]
    y = convert_tags([[token[2] for token in sentence] for sentence in TRAIN], scheme)
    same = small().fit(X, y)
    assert same.predict(WORDS) == convert_tags(fitted.predict(WORDS), scheme)
    asked = small(scheme=scheme).fit(TRAIN)
    assert asked.predict(WORDS) == same.predict(WORDS)
    assert same.score(TEST) == asked.score(TEST) == fitted.score(TEST)
    assert asked.predict_chunks(WORDS) == fitted.predict_chunks(WORDS)


def test_what_is_learned_by_heart():
    X = [["a", "b", "c", "d"], ["b"], ["c", "c", "a"], ["d"] * 9]
    y = [["B-x", "I-x", "B-x", "O"], ["O"], ["B-y", "B-y", "I-y"], ["O"] * 9]
    chunker = Chunker(features=["w[all]", "w[each]", "label[-1]"], epochs=50).fit(X, y)
    assert chunker.converged_
    assert chunker.predict(X) == y
    assert chunker.predict([["a"], ["zzz"] * 3])[0] != []  # no longer than the sentence
    assert len(chunker.predict_single(["zzz"] * 50)) == 50


def test_nothing_outside_or_nothing_inside():
    inside = Chunker(features=["w[each]"]).fit([["a", "b"]], [["B-x", "I-x"]])
    assert inside.classes_.tolist() == ["x"]
    assert inside.predict([["a", "b"], ["b"]]) == [["B-x", "I-x"], ["B-x"]]
    outside = Chunker(features=["w[each]"]).fit([["a", "b"]], [["O", "O"]])
    assert outside.predict([["a", "b", "c"]]) == [["O"] * 3]
    assert outside.score([["a"]], [["O"]]) == 0.0  # conlleval: nothing to find


def test_plain_marks_have_no_label():
    chunker = Chunker(features=["w[each,pair]"]).fit([["a", "b", "c"]], [["B", "I", "O"]])
    assert chunker.predict([["a", "b", "c"]]) == [["B", "I", "O"]]
    assert chunker.predict_chunks([["a", "b", "c"]]) == [[("", 0, 2)]]


def test_the_beam_is_by_words_covered_or_by_chunks(fitted):
    from laso.queues import depth, own_key

    def engine(model):
        return model.engine_for(model.task_, model.task_.problem)

    by_words = small(queue=beam(5, key=own_key)).fit(TRAIN)
    assert by_words.predict(WORDS) == fitted.predict(WORDS)
    by_chunks = small(queue=beam(5, key=depth)).fit(TRAIN)
    assert engine(by_chunks) != engine(by_words)
    assert by_chunks.score(TEST) > 0.8


@pytest.mark.parametrize(
    "given",
    [{"update": alma()}, {"strategy": max_violation}, {"hash_bits": 12}],
    ids=lambda given: next(iter(given)),
)
def test_other_ways_to_learn(given):
    assert small(**given).fit(TRAIN).score(TEST) > 0.75


# Exact search


@pytest.mark.parametrize(
    "update",
    [None, perceptron(), alma(), adagrad(), lbfgs(iterations=8)],
    ids=lambda update: type(update).__name__,
)
def test_exact_search_learns_with_every_update(update, tmp_path):
    chunker = small(queue=exact(), update=update).fit(TRAIN)
    assert chunker.score(TEST) > 0.8
    chunker.save(tmp_path / "exact.laso")
    assert Chunker.load(tmp_path / "exact.laso").predict(WORDS) == chunker.predict(WORDS)


def test_weights_are_averaged_unless_the_likelihood_is_climbed():
    for update, usual in [(None, True), (adagrad(), False)]:
        one, same, other = (
            small(queue=exact(), update=update, average=average, epochs=1).fit(TRAIN)
            for average in (None, usual, not usual)
        )
        assert np.array_equal(one.weights_.v, same.weights_.v)
        assert not np.array_equal(one.weights_.v, other.weights_.v)


def test_the_likelihood_needs_exact_search():
    with pytest.raises(ValueError, match="the likelihood needs exact search"):
        small(update=adagrad()).fit(TRAIN)
    with pytest.raises(ValueError, match="predict_marginals needs exact search"):
        small(epochs=1).fit(TRAIN).predict_marginals(WORDS)


def test_probabilities_of_chunks_are_those_of_all_segmentations():
    X = [["a", "b"], ["b", "a", "c"], ["c"]]
    y = [["B-x", "I-x"], ["B-y", "B-x", "O"], ["O"]]
    chunker = Chunker(
        features=["w[each,all]", "length", "label[-1]"], queue=exact(), update=adagrad(), epochs=3
    ).fit(X, y)
    sentences = [*X, ["c", "b", "a"], []]
    lists = chunker.predict_nbest(sentences, 1000)
    assert [paths[0][1] for paths in lists] == chunker.predict(sentences)
    for sentence, paths, found in zip(
        sentences, lists, chunker.predict_marginals(sentences, least=0.0), strict=True
    ):
        assert len({tuple(tags) for _, tags in paths}) == len(paths) < 1000  # these are all
        total = sum(np.exp(score) for score, _ in paths)
        expected: dict[tuple[str, int, int], float] = {}
        for score, tags in paths:
            for chunk in chunks(tags):
                key = (chunk.type, chunk.start, chunk.end)
                expected[key] = expected.get(key, 0.0) + np.exp(score) / total
        assert found == pytest.approx(expected), sentence
    (likely,) = chunker.predict_marginals([X[0]], least=0.3)
    (every,) = chunker.predict_marginals([X[0]], least=0.0)
    assert likely == {chunk: p for chunk, p in every.items() if p >= 0.3} != every


def test_held_out_sentences_and_a_development_set():
    held_out = small(held_out=0.2).fit(TRAIN)
    assert len(held_out.scores_) == 3
    other = small(epochs=2).fit(TRAIN, dev=TEST)
    assert other.scores_[other.best_epoch_ - 1] == other.score(TEST)
    small(epochs=1).fit(
        TRAIN, dev=([[("a", "NN")]], [["B-new"]])
    )  # a label never seen is merely wrong


def test_going_on_is_identical(fitted):
    short = small(epochs=1).fit(TRAIN).resume(TRAIN, epochs=3)
    assert np.array_equal(short.weights_.v, fitted.weights_.v)
    assert short.predict(WORDS) == fitted.predict(WORDS)


def test_passes_one_by_one():
    labels = sorted({c.type for s in TRAIN for c in spans(s)} | {"O"})
    chunker = small(max_chunk_length=12).partial_fit(TRAIN[:50], classes=labels)
    chunker.partial_fit(TRAIN[50:])
    assert chunker.n_iter_ == 2
    assert chunker.score(TEST) > 0.6


def test_chunks_may_be_as_long_as_any_of_their_label():
    X = [[("x", "n"), ("y", "n"), ("z", "n")]]
    short, long = ["B-a", "O", "B-b"], ["B-a", "I-a", "I-a"]
    chunker = small().partial_fit(X, [short])
    assert chunker.task_.state_["longest"] == {"a": 1, "b": 1, "O": 1}
    chunker.partial_fit(X, [long])
    assert chunker.task_.state_["longest"] == {"a": 3, "b": 1, "O": 1}
    assert (chunker.task_.encoder_.limit, chunker.task_.encoder_.limits) == (3, [1, 3, 1])
    with pytest.raises(BadData, match="found a chunk of 2 words, expected at most max_chunk"):
        chunker.resume(X, [["B-b", "I-b", "O"]], epochs=9)
    partly = chunker.partial_fit(X, [["B-b", None, "O"]])
    assert (partly.task_.state_["longest"], partly.task_.encoder_.limits) == ({}, [1, 3, 3])


@pytest.mark.parametrize("features", ["paper", "rich"])
def test_the_sets_of_features_are_printable_and_may_be_given_back(features):
    named = Chunker(features=features, epochs=2, threads=1).fit(TRAIN)
    texts = list(map(str, named.task_.encoder_.templates))
    spelt = Chunker(features=texts, epochs=2, threads=1).fit(TRAIN)
    joined = Chunker(features="\n".join(texts), epochs=2, threads=1).fit(TRAIN)
    assert named.predict(WORDS) == spelt.predict(WORDS) == joined.predict(WORDS)
    assert named.score(TEST) > 0.9


def test_a_list_of_ones_own_is_a_feature(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rivers.txt").write_text("Rhine\nElbe\nTiber\n", encoding="utf-8")
    X, y = [["the", "Rhine"], ["the", "man"], ["Elbe"]], [["O", "B-r"], ["O", "O"], ["B-r"]]
    chunker = Chunker(features="paper", resources=["rivers.txt"]).fit(X, y)
    assert 'w.list("rivers.txt")[each]' in map(str, chunker.task_.encoder_.templates)
    own = Chunker(features=['w.list("rivers.txt")[each]']).fit(X, y)
    assert own.predict([["Tiber", "man"]]) == [["B-r", "O"]]
    own.save("rivers.laso")
    (tmp_path / "rivers.txt").unlink()  # a model file contains its lists
    from laso.features.base import base_function

    base_function.cache_clear()
    assert Chunker.load("rivers.laso").predict([["Tiber", "man"]]) == [["B-r", "O"]]


# Files and parameters


@pytest.mark.parametrize("training", [False, True])
def test_a_model_is_the_same_after_save_and_load(fitted, tmp_path, training):
    path = tmp_path / "chunks.laso"
    assert fitted.save(path, training=training) == path.stat().st_size
    again = Chunker.load(path)
    assert again.predict(WORDS) == fitted.predict(WORDS)
    assert again.task_.state_ == fitted.task_.state_
    assert again.get_params() | {"features": list(FEATURES)} == again.get_params()
    if training:
        further = again.resume(TRAIN, epochs=4)
        assert np.array_equal(further.weights_.v, small(epochs=4).fit(TRAIN).weights_.v)
    with pytest.raises(BadModel, match=r"'chunking' \(Chunker\), expected Tagger"):
        Tagger.load(path)


@pytest.mark.parametrize(
    "facts",
    [
        {"max_chunk_length": 0},
        {"max_chunk_length": "7"},
        {"scheme": "BILOU"},
        {"longest": [3]},
        {"longest": {"NP": 0}},
        {"longest": {"NP": 99}},
    ],
    ids=str,
)
def test_a_model_with_impossible_facts_is_refused(fitted, tmp_path, facts):
    broken = pickle.loads(pickle.dumps(fitted))
    broken.task_.state_ |= facts
    broken.save(tmp_path / "broken.laso")
    with pytest.raises(BadModel, match=r"the (longest chunk .* and the scheme|longest chunks)"):
        Chunker.load(tmp_path / "broken.laso")


def test_a_fitted_chunker_can_be_pickled_and_cloned(fitted):
    assert pickle.loads(pickle.dumps(fitted)).predict(WORDS) == fitted.predict(WORDS)
    assert not hasattr(clone(fitted), "weights_")
    assert clone(fitted).get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        clone(fitted).predict_chunks(WORDS)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"scheme": "BILOU"}, ValueError, "scheme must be None or one of BIO, IOB1, IOBES"),
        (
            {"max_chunk_length": 0},
            ValueError,
            "must be None or from 1 to 100000, found 0",
        ),
        (
            {"max_chunk_length": 1},
            BadData,
            "a chunk of .* words, expected at most max_chunk",
        ),
        ({"resources": "names"}, ValueError, "resources must be a list of names or paths"),
        ({"resources": ["names"]}, ValueError, "are for the features paper and rich only"),
        ({"features": ["w[0]"]}, BadTemplate, "expected a place in the chunk"),
        ({"features": ["nonsense"]}, BadTemplate, r"expected '\['"),
        ({"features": ["tag[each]"]}, BadTemplate, "expected one of w, pos"),
    ],
    ids=str,
)
def test_parameters_are_checked_by_fit(given, error, message):
    with pytest.raises(error, match=message):
        small(**given).fit(TRAIN)


def test_data_are_checked_by_fit(fitted):
    with pytest.raises(BadData, match="features of their own"):
        small().fit([[{"a": 1}]], [["O"]])
    with pytest.raises(BadData, match="found no labels"):
        small().fit([["a"]])
    chunker = small(max_chunk_length=9).partial_fit(TRAIN[:50])
    with pytest.raises(BadData, match="sentence 1, token 2: found the chunk type 'new'"):
        chunker.resume([[("a", "NN"), ("b", "NN")]], [["O", "B-new"]], epochs=9)
    with pytest.raises(BadData, match="found 1 columns, expected 2"):
        fitted.predict([["a"]])
