"""Chunking passes over segments that cannot win: the same nodes, updates and sums."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from laso import beam, delayed, early, greedy, perceptron, restart, worst
from laso.engine import layout as at
from laso.engine import workspace
from laso.engine.decoder import Decoder
from laso.engine.kernels.upper_bounds import LEVELS
from laso.engine.layout import Dataset, Out
from laso.engine.machine import Machine, all_of, as_names, averaged, new_table
from laso.engine.options import options_for, own_key
from laso.engine.reference import Reference, input_of, limits_of
from laso.engine.weights.bloom import with_filter
from laso.engine.workspace import KeptCaps, capped
from laso.tasks.chunking.feature_sets import rich_features
from laso.tasks.chunking.problem import Chunking
from tests.chunk_corpora import (
    SENTENCES,
    SOME,
    Segmentation,
    corpus_of,
    data_of,
    encoder_for,
    score,
)
from tests.engine_twins import split

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
    monkeypatch.setattr(PLAIN, lambda _, __, run, ___: run)
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
        monkeypatch.setattr("laso.engine.thresholds.CAPS_PER_RAISED", 1 << 20)
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
    monkeypatch.setattr(PLAIN, lambda _, __, run, ___: run)
    plain, _ = learnt(60)
    assert as_names(table) == as_names(plain)
    assert as_names(averaged(table)) == as_names(averaged(plain))


def assert_bounded(run: Any, table: Any) -> None:
    """No weight exceeds the upper bound of its key."""
    used = table.slots[table.slots[:, at.SLOT_ROW] != 0]
    caps = LEVELS[run.caps[used[:, at.SLOT_KEY] & (len(run.caps) - 1)]]
    assert len(run.caps) > 1
    assert np.all(table.v[used[:, at.SLOT_ROW] - 1].max(axis=1) <= caps)


def test_decoding_keeps_bounds_for_the_same_weights_only(monkeypatch):
    corpus = drawn_corpus(np.random.default_rng(1))
    options = options_for(Chunking, beam(2, key=own_key), perceptron(weighting=worst, margin=7.0))
    engine, order, kept = Machine(Chunking, options), all_of(corpus), KeptCaps()
    table = new_table(3, margin=7.0, dtype=np.float32)
    for _ in range(3):  # weights change in place, so that nothing may be kept
        table, _, _ = engine.learn(corpus, order, table, engine.new_run(corpus, order, table))
        engine.decode(corpus, order, table)
    table = with_filter(averaged(table))
    found = [engine.decode(corpus, order, table, kept=kept)]
    assert kept.of is not None
    weights, caps = kept.of
    assert weights is table.v
    found += [engine.decode(corpus, order, table, kept=kept), engine.decode(corpus, order, table)]
    assert kept.of[1] is caps
    for one in found:
        assert all(map(np.array_equal, one, found[0]))
    louder = table._replace(v=table.v * 100)
    with monkeypatch.context() as patched:
        patched.setattr(workspace, "has_caps", lambda *_: False)
        plain = engine.decode(corpus, order, louder)
    assert all(map(np.array_equal, engine.decode(corpus, order, louder, kept=kept), plain))
    assert kept.of[0] is louder.v


def test_a_decoder_keeps_bounds_as_long_as_its_weights():
    corpus = drawn_corpus(np.random.default_rng(1))
    options = options_for(Chunking, beam(2, key=own_key), perceptron())
    engine, order = Machine(Chunking, options), all_of(corpus)
    table = new_table(3, dtype=np.float32)
    table, _, _ = engine.learn(corpus, order, table, engine.new_run(corpus, order, table))
    decoder = Decoder(engine, averaged(table))
    for _ in range(2):
        found = decoder.decode(corpus)
        assert all(map(np.array_equal, found, engine.decode(corpus, order, decoder.table)))
        assert decoder._caps.of is not None
        assert decoder._caps.of[0] is decoder.table.v


def test_bounds_are_chosen_anew_for_other_weights(monkeypatch):
    monkeypatch.setattr("laso.engine.thresholds.CAPS_PER_RAISED", 0)  # not because many were raised
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
    assert bool(limits_of(Chunking, x, 3)[at.FEATURES_OF_STATE]) == by_state
    written = [Out(np.zeros(4, np.int64), np.zeros(4)) for _ in range(2)]
    for length, out in enumerate(written, start=1):
        Chunking.features(x, np.array([0, 1], np.int32), length, out)
    assert np.array_equal(written[0].keys, written[1].keys) == by_state


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
        limits = np.zeros(len(at.Limit), np.int64)
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
