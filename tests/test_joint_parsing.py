"""Tags and trees in one search: the step that tags, both engines, and what Parser makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laso import BadData, BadTemplate, Parser, beam, load_model, perceptron, restart, worst
from laso.engine.layout import Dataset, Input
from laso.tasks.parsing.systems import JOINT, TAG
from laso.tasks.parsing.templates import joint_templates
from tests.commands import Laso
from tests.engine_inputs import (
    OPERATORS,
    Task,
    configuration_size,
    corpus_of,
    lengths,
    tree_encoder,
    tree_of,
)
from tests.engine_twins import Twins
from tests.test_parser import TEXT, X, Y
from tests.test_parsing import Space, Tree, all_trees

SYSTEM = JOINT["arc-eager"]
LABELS = (*OPERATORS, "reduce", "tag N", "tag V")
WORDS = [[(word,) for word, _ in sentence] for sentence in X]
TAGS = [[(tag,) for _, tag in sentence] for sentence in X]


# --------------------------------------------------------------------------- the problem


class TaggedSpace(Space):
    """All states, trees and tags of n words, by brute force."""

    def __init__(self, n: int, ahead: int) -> None:
        self.encoder = tree_encoder([], LABELS, ahead=ahead)
        super().__init__(SYSTEM, n)

    def make_input(self, n: int, **given: Any) -> Input:
        none, reals = np.zeros(0, np.int64), np.zeros(0, np.float32)
        return Input(np.zeros((n, 2), np.int32), none, reals, self.encoder.spec_for(0, None))

    @property
    def names(self) -> tuple[str, ...]:
        return LABELS

    def arcs(self, path: tuple[int, ...]) -> Iterator[Any]:
        return SYSTEM.arcs([self.encoder.operators[label] for label in path], self.n)

    def tree(self, path: tuple[int, ...]) -> Tree:
        steps = [self.encoder.operators[label] for label in path]
        assert len(steps) == SYSTEM.steps * self.n
        return (*super().tree(path), *[(TAG, name) for kind, name in steps if kind == TAG])

    def is_good(self, tree: Tree, state: tuple[int, ...], label: int) -> bool:
        tags = [name for kind, name in tree if kind == TAG]
        y = self.encoder.numbers(list(tree[: self.n]), tags)
        return bool(self.problem.is_good(self.x, y, np.array(state, np.int32), 0, label))


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_the_search_reaches_all_trees_with_all_tags(ahead):
    space = TaggedSpace(2, ahead)
    found = space.trees_from((), space.initial)
    trees = all_trees(2, single_root=True)
    tags = [((TAG, a), (TAG, b)) for a in "NV" for b in "NV"]
    assert found == {(*tree, *both) for tree in trees for both in tags}


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_step_is_good_if_tree_and_tags_stay_within_reach(ahead):
    space = TaggedSpace(2, ahead)
    for tree in sorted(space.trees_from((), space.initial)):
        level: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), space.initial)]
        while level:
            after = []
            for path, state in level:
                for label, new in space.steps(state):
                    good = tree in space.trees_from((*path, label), new)
                    # Arcs of an empty buffer are not counted on: see arc_eager.
                    assert good or not space.is_good(tree, state, label)
                    if space.is_good(tree, state, label):
                        after.append(((*path, label), new))
                assert after or space.is_goal(state)
            level = after


@st.composite
def tagged_corpora(draw: Any) -> Dataset:
    sizes = draw(lengths(4))
    some = draw(st.lists(st.sampled_from(joint_templates("w")), min_size=3, max_size=12))
    some = [each for each in some if "." not in each.partition("[")[0].split("|")[0]]
    simple = [each for each in some if "suffix" not in each]
    encoder = tree_encoder(
        ["w[t0]|predicted[t-1]", *simple], LABELS, static=draw(st.booleans()), ahead=2
    )
    rows = [[[draw(st.integers(0, 2)), 0] for _ in range(n)] for n in sizes]
    tag = st.sampled_from("NV?")
    outputs = [
        encoder.numbers(tree_of(draw, n), [draw(tag) for _ in range(n)]).tolist() for n in sizes
    ]
    return corpus_of(rows, outputs, encoder.spec_for(0, None), columns=2)


@settings(deadline=None, derandomize=True, max_examples=20, suppress_health_check=list(HealthCheck))
@given(tagged_corpora())
def test_both_engines_are_equal(corpus):
    task = Task(
        SYSTEM.problem,
        len(LABELS),
        tagged_corpora(),
        False,
        used=configuration_size,
        tolerance=1e-9,
    )
    Twins(task, corpus, beam(2), perceptron(weighting=worst), restart, tolerance=1e-9).compare()


# --------------------------------------------------------------------------- the estimator


@cache
def fitted() -> Parser:
    return Parser(tagger="joint", epochs=10).fit(X, Y)


def test_words_are_enough():
    model = fitted()
    assert model.predict(WORDS) == model.predict(X) == Y
    assert model.predict_tags(WORDS) == TAGS
    assert model.task_.encoder_.names == ("w",)
    assert model.score(WORDS, Y) == model.score(X, Y) == 1.0
    assert model.predict([["cat"], []]) == [[(0, "root")], []]
    long = [[("cat",)] * 300]
    assert len(model.predict(long)[0]) == len(model.predict_tags(long)[0]) == 300


def test_the_file_has_tags_and_trees(tmp_path):
    path = tmp_path / "joint.laso"
    fitted().save(path)
    loaded = load_model(path)
    assert isinstance(loaded, Parser)
    assert loaded.tagger == "joint"
    assert (loaded.predict(WORDS), loaded.predict_tags(WORDS)) == (Y, TAGS)
    loaded.save(tmp_path / "again.laso")
    assert (tmp_path / "again.laso").read_bytes() == path.read_bytes()


def test_other_methods():
    model = fitted()
    assert model.predict_nbest(WORDS[1:2], 2)[0][0][1] == Y[1]
    assert model.predict_confidence(WORDS[1:2])[0].output == Y[1]
    assert model.predict_forced(WORDS[1:2], known=[[(2, "amod"), None, None]])[0][0] == (2, "amod")
    decisions = model.explain(WORDS[1])["decisions"]
    names = {f["name"] for d in decisions for f in d["features"]}
    assert any("predicted[s0]=NOUN" in name for name in names)
    assert any(name.startswith("w[t0]=cat") for name in names)


def test_training_goes_on_and_tags_may_be_unknown():
    model = Parser(tagger="joint", epochs=2).fit(X, Y, dev=(WORDS, Y))
    assert len(model.scores_) == 2
    assert model.resume(X, Y, epochs=10).predict(WORDS) == Y


def test_what_is_refused():
    with pytest.raises(ValueError, match="system must be one of arc-eager with tagger='joint'"):
        Parser(tagger="joint", system="arc-hybrid").fit(X, Y)
    with pytest.raises(ValueError, match="tagger must be None, 'joint', an estimator"):
        Parser(tagger="both").fit(X, Y)
    with pytest.raises(BadData, match="expected words and tags"):
        Parser(tagger="joint").fit(WORDS, Y)
    with pytest.raises(BadTemplate, match="needs tagger='joint'"):
        Parser(features=["w[t0]", "w[s0]"]).fit(X, Y)
    with pytest.raises(BadTemplate, match="expected"):
        Parser(features=["label[t0]"], tagger="joint").fit(X, Y)


def test_the_command_line_writes_tags(tmp_path, monkeypatch, capsysbinary):
    laso = Laso(monkeypatch, capsysbinary)
    file, model = tmp_path / "trees.conllu", tmp_path / "trees.laso"
    file.write_text(TEXT * 4, encoding="utf-8")
    laso(
        "train",
        str(file),
        "--task",
        "parse",
        "--set",
        "tagger=joint",
        "--epochs",
        "10",
        "--model",
        str(model),
    )
    text = tmp_path / "text.txt"
    text.write_text("A cat sleeps\n", encoding="utf-8")
    expected = "A\tDET\t2\tdet\ncat\tNOUN\t3\tnsubj\nsleeps\tVERB\t0\troot\n\n"
    assert laso("tag", str(model), str(text)).out == expected
    found = json.loads(laso("tag", str(model), str(text), "--json").out)
    assert found["tags"] == [["DET"], ["NOUN"], ["VERB"]]
    assert "LAS 100.00" in laso("eval", str(model), str(file)).out
