"""Chunk scores: cases counted by hand, conlleval's rules line by line, and a known result."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso import metrics
from laso.data import find_corpus, read_columns
from laso.errors import BadData, MissingData
from laso.features.schemes import chunks_of
from laso.metrics import Counts, accuracy, are_tags, chunk_scores, chunks, majority_baseline
from laso.metrics.evaluation import evaluated, main_score
from tests.spaces import quick


def counts(gold, predicted):
    n = chunk_scores([gold.split()], [predicted.split()])
    return n.correct, n.predicted, n.gold


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("", []),
        ("O O", []),
        ("B-A", [(0, 1, "A")]),
        ("B-A I-A O", [(0, 2, "A")]),
        ("B-A B-A", [(0, 1, "A"), (1, 2, "A")]),
        ("I-A", [(0, 1, "A")]),
        ("O I-A I-A", [(1, 3, "A")]),
        ("B-A I-B", [(0, 1, "A"), (1, 2, "B")]),
        ("B-A I-B I-A", [(0, 1, "A"), (1, 2, "B"), (2, 3, "A")]),
        ("I-A I-A B-A O I-A", [(0, 2, "A"), (2, 3, "A"), (4, 5, "A")]),
        ("B-A O I-A", [(0, 1, "A"), (2, 3, "A")]),
        ("B-A-x I-A-x I-A-y", [(0, 2, "A-x"), (2, 3, "A-y")]),
        ("I I B I-A", [(0, 2, ""), (2, 3, ""), (3, 4, "A")]),
        ("S-A B-A I-A E-A", [(0, 1, "A"), (1, 4, "A")]),
        ("E-A E-A I-A", [(0, 1, "A"), (1, 2, "A"), (2, 3, "A")]),
        ("B-A S-A I-A", [(0, 1, "A"), (1, 2, "A"), (2, 3, "A")]),
        ("B- I B-", [(0, 2, ""), (2, 3, "")]),
        ("B-A O-A I-A", [(0, 1, "A"), (2, 3, "A")]),
    ],
)
def test_chunks(tags, expected):
    assert chunks(tags.split()) == expected


@pytest.mark.parametrize("tag", ["", "b-A", "-A", "BA", "NN", "OO"])
def test_other_tags_are_refused(tag):
    with pytest.raises(BadData, match="expected O, or B, I, E or S with a type"):
        chunks(["O", tag])
    assert not are_tags(["O", tag])


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        ("B-A I-A", "B-A I-A", (1, 1, 1)),
        ("B-A I-A", "I-A I-A", (1, 1, 1)),  # an I without its B is forgiven
        ("B-A I-A", "B-A B-A", (0, 2, 1)),
        ("B-A I-A", "B-A O", (0, 1, 1)),
        ("B-A I-A", "B-A I-B", (0, 2, 1)),
        ("B-A B-A", "B-A I-A", (0, 1, 2)),
        ("B-A B-B", "I-A I-B", (2, 2, 2)),  # a change of type ends a chunk and begins one
        ("B-A", "B-B", (0, 1, 1)),
        ("O", "B-B", (0, 1, 0)),
        ("B-A", "O", (0, 0, 1)),
        ("B-A I-A O B-B", "B-A I-A B-B I-B", (1, 2, 2)),
        ("O B-A I-A", "B-A I-A I-A", (0, 1, 1)),
    ],
)
def test_counts_by_hand(gold, predicted, expected):
    assert counts(gold, predicted) == expected


def test_a_chunk_ends_with_its_sentence():
    n = chunk_scores([["B-A"], ["I-A"]], [["I-A"], ["I-A"]])
    assert (n.correct, n.predicted, n.gold) == (2, 2, 2)
    assert n.correct_tags == 1


GOLD = [["B-NP", "I-NP", "B-VP", "O"], ["B-NP", "B-PP", "B-NP", "I-NP"]]
PREDICTED = [["B-NP", "I-NP", "B-NP", "O"], ["B-NP", "B-PP", "B-NP", "B-ADVP"]]


def test_all_the_numbers_of_one_case():
    n = chunk_scores(GOLD, PREDICTED)
    # correct: the first NP of each sentence and the PP; the last NP is cut short.
    assert (n.correct, n.predicted, n.gold) == (3, 6, 5)
    assert dict(n.types) == {
        "ADVP": Counts(0, 1, 0),
        "NP": Counts(2, 4, 3),
        "PP": Counts(1, 1, 1),
        "VP": Counts(0, 0, 1),
    }
    assert (n.correct_tags, n.tokens) == (6, 8)
    assert (n.precision, n.recall, n.accuracy) == (50.0, 60.0, 75.0)
    assert n.f == pytest.approx(2 * 50 * 60 / 110)
    assert accuracy(GOLD, PREDICTED) == 75.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        n.correct = 6  # type: ignore[misc]


def test_the_report_has_conllevals_layout():
    assert str(chunk_scores(GOLD, PREDICTED)) == "\n".join(
        [
            "processed 8 tokens with 5 phrases; found: 6 phrases; correct: 3.",
            "accuracy:  75.00%; precision:  50.00%; recall:  60.00%; FB1:  54.55",
            "             ADVP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1",
            "               NP: precision:  50.00%; recall:  66.67%; FB1:  57.14  4",
            "               PP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1",
            "               VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0",
        ]
    )


def test_nothing_to_count_is_zero():
    n = chunk_scores([], [])
    assert (n.precision, n.recall, n.f, n.accuracy) == (0, 0, 0, 0)
    assert str(n) == "processed 0 tokens with 0 phrases; found: 0 phrases; correct: 0."
    assert accuracy([[]], [[]]) == 0


def test_sequences_that_do_not_match():
    with pytest.raises(ValueError, match="found 1 predicted sentences, expected 2 as in gold"):
        chunk_scores([["O"], ["O"]], [["O"]])
    with pytest.raises(
        ValueError, match="sentence 2: found 2 predicted tags, expected 1 as in gold"
    ):
        accuracy([["O"], ["O"]], [["O"], ["O", "O"]])


def conlleval(gold, predicted):
    """The official script's way: one pass over all lines, a pair of tags remembered.

    Returns correct, predicted, gold by type, and the number of correct tags.
    """

    def parse(tag):
        mark, _, kind = tag.partition("-")
        return mark, kind

    def ends(before, now):
        (b_mark, b_kind), (mark, kind) = before, now
        return (
            (b_mark == "B" and mark in "BO")
            or (b_mark == "I" and mark in "BO")
            or (b_mark != "O" and b_kind != kind)
        )

    def starts(before, now):
        (b_mark, b_kind), (mark, kind) = before, now
        return mark == "B" or (mark == "I" and b_mark == "O") or (mark != "O" and b_kind != kind)

    lines = []
    for tags, guesses in zip(gold, predicted, strict=True):
        lines += [*zip(tags, guesses, strict=True), None]
    tables: tuple[dict[str, int], dict[str, int], dict[str, int]] = ({}, {}, {})
    correct, n_predicted, n_gold = tables
    right = 0
    inside = False
    last_gold = last_guess = ("O", "")
    for line in lines:
        gold, guess = map(parse, line or ("O", "O"))
        gold_ends, guess_ends = ends(last_gold, gold), ends(last_guess, guess)
        if inside:
            if gold_ends and guess_ends and last_gold[1] == last_guess[1]:
                inside = False
                correct[last_gold[1]] = correct.get(last_gold[1], 0) + 1
            elif gold_ends != guess_ends or gold[1] != guess[1]:
                inside = False
        gold_starts, guess_starts = starts(last_gold, gold), starts(last_guess, guess)
        if gold_starts and guess_starts and gold[1] == guess[1]:
            inside = True
        if gold_starts:
            n_gold[gold[1]] = n_gold.get(gold[1], 0) + 1
        if guess_starts:
            n_predicted[guess[1]] = n_predicted.get(guess[1], 0) + 1
        right += line is not None and gold == guess
        last_gold, last_guess = gold, guess
    return correct, n_predicted, n_gold, right


TAG = st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B", "I-A-x", "B-", "I-", "O-A"])
PAIRS = st.lists(st.lists(st.tuples(TAG, TAG), max_size=7), max_size=3)
NEAR = st.lists(st.lists(TAG.flatmap(lambda t: st.tuples(st.just(t), st.just(t) | TAG))))


@quick
@given(PAIRS | NEAR)
def test_the_same_counts_as_conllevals_rules(pairs):
    gold = [[gold for gold, _ in sentence] for sentence in pairs]
    predicted = [[guess for _, guess in sentence] for sentence in pairs]
    n = chunk_scores(gold, predicted)
    correct, n_predicted, n_gold, right = conlleval(gold, predicted)
    assert {k: v.correct for k, v in n.types.items() if v.correct} == correct
    assert {k: v.predicted for k, v in n.types.items() if v.predicted} == n_predicted
    assert {k: v.gold for k, v in n.types.items() if v.gold} == n_gold
    assert (n.correct, n.predicted, n.gold) == tuple(
        sum(table.values()) for table in (correct, n_predicted, n_gold)
    )
    assert n.correct_tags == right
    assert list(n.types) == sorted(n.types)
    assert accuracy(gold, predicted) == n.accuracy


IOBES = st.sampled_from([f"{mark}-{kind}" for mark in "BIES" for kind in "AB"] + ["O"])


@quick
@given(st.lists(IOBES, max_size=8))
def test_iobes_is_read_as_the_chunker_reads_it(tags):
    inside = [(a, b, kind) for kind, a, b in chunks_of(tags) if kind != "O"] if tags else []
    assert chunks(tags) == inside


ANY = st.sampled_from(["O", "B-A", "I-A", "E-A", "S-A", "B-", "O-X", "B", "S", "NN", ""])
BOTH = st.lists(st.lists(st.tuples(ANY | st.none(), ANY), max_size=4), max_size=3)


@quick
@given(BOTH | PAIRS)
def test_score_is_that_of_the_evaluation(pairs):
    """``score`` of an estimator and ``laso eval`` agree, whatever the labels are."""
    gold = [[gold for gold, _ in sentence] for sentence in pairs]
    predicted = [[guess for _, guess in sentence] for sentence in pairs]
    assert main_score(gold, predicted) == pytest.approx(evaluated(gold, predicted).score / 100)


def test_f_is_0_where_nothing_is_found():
    assert main_score([["O", "O"]], [["O", "O"]]) == evaluated([["O"]], [["O"]]).score == 0.0
    assert main_score([["NN", "O"]], [["NN", "O"]]) == 1.0


# Scores of sklearn-crfsuite

Y = [["A", "B", "C"], ["A", "A"]], [["B", "B", "C"], ["A", "B"]]


def test_flat_scores_are_those_of_all_tokens():
    assert metrics.flat_accuracy_score(*Y) == 3 / 5
    for score in (metrics.flat_precision_score, metrics.flat_recall_score, metrics.flat_f1_score):
        assert score(*Y, average="micro") == 3 / 5
    macro = metrics.flat_f1_score(*Y, average="macro")
    assert metrics.flat_fbeta_score(*Y, beta=1, average="macro") == macro
    report = metrics.flat_classification_report(*Y, labels=["A", "C"], digits=3)
    assert "B" not in report.split()
    assert "1.000" in report


def test_accuracy_of_sequences():
    assert metrics.sequence_accuracy_score([], []) == 0
    assert metrics.sequence_accuracy_score([[1, 2], [3], [4]], [[1, 2], [4], [4]]) == 2 / 3
    rows = np.array([["A", "B"], ["B", "A"]], dtype=object)  # as CRF.predict returns them
    assert metrics.sequence_accuracy_score([["A", "B"], ["A", "A"]], rows) == 0.5
    with pytest.raises(ValueError, match="shorter"):
        metrics.sequence_accuracy_score([["A"]], [])


@quick
@given(PAIRS)
def test_swapping_the_sides_swaps_precision_and_recall(pairs):
    gold = [[gold for gold, _ in sentence] for sentence in pairs]
    predicted = [[guess for _, guess in sentence] for sentence in pairs]
    there, back = chunk_scores(gold, predicted), chunk_scores(predicted, gold)
    assert (there.precision, there.recall) == (back.recall, back.precision)
    assert there.f == pytest.approx(back.f)


def test_the_majority_baseline_by_hand():
    train = [
        [("the", "DT", "B-NP"), ("cat", "NN", "I-NP"), ("sat", "VBD", "B-VP")],
        [("cats", "NN", "B-NP"), ("ran", "VBD", "B-VP"), ("home", "NN", "I-NP")],
        [("to", "TO", "B-PP"), ("to", "TO", "B-VP"), ("!", ".", "B-VP")],
    ]
    tag = majority_baseline(train)
    # TO is a tie that B-PP, seen first, wins; UH is new, and B-VP is the most frequent tag.
    assert tag([("a", "DT"), ("b", "NN"), ("c", "TO"), ("d", "UH")]) == [
        "B-NP",
        "I-NP",
        "B-PP",
        "B-VP",
    ]
    with pytest.raises(BadData, match="no token"):
        majority_baseline([[]])


def test_the_shared_tasks_baseline_on_conll2000():
    try:
        folder = find_corpus("conll2000")
    except MissingData as missing:
        pytest.skip(str(missing))
    train, test = (read_columns(folder / name, columns=3) for name in ("train.txt", "test.txt"))
    tag = majority_baseline(train)
    gold = [[chunk for _, _, chunk in sentence] for sentence in test]
    n = chunk_scores(gold, map(tag, test))
    assert [round(x, 2) for x in (n.precision, n.recall, n.f)] == [72.58, 82.14, 77.07]
    assert (n.tokens, n.gold) == (47377, 23852)
