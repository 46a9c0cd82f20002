"""What Parser tells of trees: n-best lists, confidences, explanations, scores with morphology."""

from __future__ import annotations

import random

import numpy as np
import pytest

from laso import BadData, Parser
from laso.estimators.capabilities.confidence import temperature_of
from laso.estimators.capabilities.nbest import ALL, nbest_paths, path_outputs
from laso.estimators.capabilities.render import as_text
from laso.metrics.trees import tree_scores
from laso.tasks.parsing.configuration import DEEPEST, state_size
from laso.tasks.parsing.trees import depth
from tests.test_parser import X, Y, fitted

# --------------------------------------------------------------------------- several paths


def test_nbest_trees_are_distinct():
    model, many = Parser(queue=32, epochs=1).fit(X, Y), some_sentences()
    inputs, dataset = model.encoded(many)
    paths = nbest_paths(model, dataset, ALL)
    trees = path_outputs(model, inputs, dataset, paths)
    bounds = np.cumsum([0, *paths.counts])
    repeated = 0
    for i, found in enumerate(model.predict_nbest(many, 32)):
        of_paths = trees[bounds[i] : bounds[i + 1]]
        scores = paths.scores[bounds[i] : bounds[i + 1]].tolist()
        outputs = [tree for _, tree in found]
        assert all(a != b for j, a in enumerate(outputs) for b in outputs[:j])
        assert all(tree in outputs for tree in of_paths)
        assert [score for score, _ in found] == [scores[of_paths.index(t)] for t in outputs]
        repeated += len(of_paths) - len(outputs)
    assert repeated  # else this test tests nothing
    assert [len(found) for found in model.predict_nbest(X, 1)] == [1] * len(X)


def some_sentences():
    draw = random.Random(0)
    words = [token for sentence in X for token in sentence]
    return [[draw.choice(words) for _ in range(12)] for _ in range(20)]


def test_a_tree_is_as_probable_as_all_its_paths():
    model, many = fitted(), some_sentences()
    inputs, dataset = model.encoded(many)
    paths = nbest_paths(model, dataset, ALL)
    trees = path_outputs(model, inputs, dataset, paths)
    bounds = np.cumsum([0, *paths.counts])
    for i, confidence in enumerate(model.predict_confidence(many)):
        some = slice(bounds[i], bounds[i + 1])
        scores = paths.scores[some] / temperature_of(model)
        shares = np.exp(scores - scores.max())
        same = [tree == confidence.output for tree in trees[some]]
        assert confidence.probability == pytest.approx(shares[same].sum() / shares.sum())


# --------------------------------------------------------------------------- explanations


def test_an_explanation_says_which_arc():
    shown = Parser(system="arc-hybrid", epochs=10).fit(X, Y).explain(X[0])
    texts = [decision["text"] for decision in shown["decisions"]]
    arcs = ["The: det of dogs", "dogs: nsubj of bark", "loudly: advmod of bark", "bark: root"]
    assert sorted(text for text in texts if "no arc yet" not in text) == sorted(arcs)
    assert "The: no arc yet" in texts
    text = as_text(shown)
    assert all(arc in text for arc in arcs)
    assert "next best: " in text


def test_an_explanation_of_arc_eager():
    texts = [decision["text"] for decision in fitted().explain(X[0])["decisions"]]
    assert "loudly: advmod of bark" in texts
    assert "loudly: no more children" in texts


# --------------------------------------------------------------------------- deep trees


def test_depth_by_hand():
    assert depth([]) == 0
    assert depth([0]) == 1
    assert depth([2, 3, 0]) == 2  # a word and the next one, which is its head
    assert depth([4, 4, 4, 0]) == 4
    assert depth([0, 1, 2, 3]) == 4  # no word is complete before the last one
    assert depth([0, 1, 1, 1]) == 2
    assert depth([None, None]) == 1


def test_long_sentences_need_no_longer_configurations():
    assert state_size(10_000) == state_size(DEEPEST)
    # Every word but the last waits for its head: no stack is deep enough.
    n = 2 * DEEPEST
    words = [("old", "ADJ")] * (n - 1) + [("cat", "NOUN")]
    flat = [(n, "amod")] * (n - 1) + [(0, "root")]
    model = Parser(epochs=3).fit([*X, words], [*Y, flat])
    assert model.predict(X) == Y
    tree = model.predict([words])[0]
    assert sum(head == 0 for head, _ in tree) == 1
    chain = [(i, "amod") for i in range(n)]  # each word is the child of the one before
    assert Parser(epochs=3).fit([*X, words], [*Y, [(0, "root"), *chain[1:]]]).predict(X) == Y


# --------------------------------------------------------------------------- MLAS


def test_mlas_by_hand():
    gold = [[(2, "det"), (3, "nsubj"), (0, "root"), (5, "case"), (3, "obl")]]
    words = [
        [("DET", "_"), ("NOUN", "Number=Sing"), ("VERB", "_"), ("ADP", "_"), ("NOUN", "_")],
    ]
    assert tree_scores(gold, gold).mlas is None
    assert tree_scores(gold, gold, morphology=(words, words)).mlas == 100

    def changed(i, tag, features):
        other = list(words[0])
        other[i] = (tag, features)
        return tree_scores(gold, gold, morphology=(words, [other])).mlas

    # Three content words: a wrong tag of one, or of its function word, costs that one.
    assert changed(1, "PROPN", "Number=Sing") == pytest.approx(200 / 3)
    assert changed(0, "PRON", "_") == pytest.approx(200 / 3)
    assert changed(1, "NOUN", "Number=Plur") == pytest.approx(200 / 3)
    assert changed(1, "NOUN", "Number=Sing|Typo=Yes") == 100  # no universal feature
    found = [[(3, "det"), *gold[0][1:]]]
    assert tree_scores(gold, found, morphology=(words, words)).mlas == pytest.approx(100 / 3)
    with pytest.raises(BadData, match="the morphology of 5 and 1 words, expected 5"):
        tree_scores(gold, gold, morphology=(words, [words[0][:1]]))


def test_scores_are_those_of_the_shared_task(tmp_path):
    udeval = pytest.importorskip("udtools.udeval")
    draw = random.Random(0)
    labels = ["nsubj", "obj", "nmod:poss", "case", "det", "aux:pass", "punct", "cc"]
    tags, features = ["NOUN", "VERB", "DET"], ["_", "Number=Sing|Typo=Yes", "Case=Nom"]
    files, trees, words = [], [], []
    for name in ("gold", "predicted"):
        some, morphology, text = [], [], ""
        for _ in range(40):
            n = 7
            order = draw.sample(range(1, n + 1), n)  # each after its head
            heads = {word: draw.choice(order[:i]) if i else 0 for i, word in enumerate(order)}
            sorted_heads = [heads[i] for i in range(1, n + 1)]
            tree = [(head, draw.choice(labels) if head else "root") for head in sorted_heads]
            of_words = [(draw.choice(tags), draw.choice(features)) for _ in tree]
            for i, ((head, label), (tag, f)) in enumerate(zip(tree, of_words, strict=True), 1):
                text += f"{i}\tw{i}\t_\t{tag}\t_\t{f}\t{head}\t{label}\t_\t_\n"
            some.append(tree)
            morphology.append(of_words)
            text += "\n"
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        files.append(path)
        trees.append(some)
        words.append(morphology)
    read = [udeval.load_conllu_file(str(path)) for path in files]
    expected = udeval.evaluate(*read)
    scores = tree_scores(*trees, morphology=(words[0], words[1]))
    for name in ("UAS", "LAS", "CLAS", "MLAS"):
        assert getattr(scores, name.lower()) == pytest.approx(100 * expected[name].f1)
