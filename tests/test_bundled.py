"""The bundled corpus: well-formed, varied, in two parts that share nothing, and our own."""

from collections import Counter
from importlib.resources import files

import pytest

from laso.data import find_corpus, load_bundled, read_columns
from laso.errors import MissingData
from laso.metrics import chunk_scores, chunks, majority_baseline

TRAIN, TEST = load_bundled()
PARTS = pytest.mark.parametrize("part", [TRAIN, TEST], ids=["train", "test"])

PENN = {"CC", "CD", "DT", "EX", "FW", "IN", "MD", "PDT", "POS", "SYM", "TO", "UH"}
PENN |= {"JJ", "JJR", "JJS", "NN", "NNS", "NNP", "NNPS", "RB", "RBR", "RBS", "RP"}
PENN |= {"VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "PRP", "PRP$", "WDT", "WP", "WP$", "WRB"}
PENN |= {"#", "$", "``", "''", "(", ")", ",", ".", ":"}
CONLL = {"NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"}


def words(sentence):
    return tuple(word for word, _, _ in sentence)


def column(sentence, i):
    return [token[i] for token in sentence]


def test_size_and_split():
    assert len(TRAIN) + len(TEST) >= 400
    assert len(TRAIN) == 4 * len(TEST)


@PARTS
def test_the_files_are_in_the_plain_form(part):
    name = "train.txt" if part is TRAIN else "test.txt"
    text = files("laso.data").joinpath("bundled", name).read_bytes().decode("utf-8")
    assert text == "\n".join("".join(" ".join(t) + "\n" for t in sentence) for sentence in part)


@PARTS
def test_tags_are_the_known_ones(part):
    assert {pos for sentence in part for pos in column(sentence, 1)} <= PENN
    tags = {tag for sentence in part for tag in column(sentence, 2)}
    assert tags <= {"O"} | {f"{mark}-{kind}" for mark in "BI" for kind in CONLL}


@PARTS
def test_no_chunk_begins_with_i(part):
    for sentence in part:
        tags = column(sentence, 2)
        for before, tag in zip(["O", *tags], tags, strict=False):
            assert tag[0] != "I" or before in (tag, "B" + tag[1:]), words(sentence)


@PARTS
def test_punctuation_is_tagged_as_such(part):
    fixed = {",": ",", ".": ".", "?": ".", "!": ".", ";": ":", "--": ":", "(": "(", ")": ")"}
    fixed |= {"``": "``", "''": "''", "$": "$", "%": "NN", "to": "TO", "n't": "RB"}
    for sentence in part:
        for word, pos, tag in sentence:
            assert fixed.get(word.lower(), pos) == pos, words(sentence)
            assert pos not in (".", ":", "``", "''", "(", ")") or tag == "O", words(sentence)


@PARTS
def test_quotes_and_brackets_are_balanced(part):
    for sentence in part:
        n = Counter(column(sentence, 1))
        assert n["``"] == n["''"], words(sentence)
        enumerated = sentence[0][2] == "B-LST" and sentence[1][0] == ")"
        assert n["("] == n[")"] - enumerated, words(sentence)


@PARTS
def test_sentences_end_as_sentences_do(part):
    for sentence in part:
        assert sentence[-1][1] in (".", "''", ")"), words(sentence)
        assert 4 <= len(sentence) <= 30, words(sentence)


@PARTS
def test_particles_and_verbs_are_in_the_chunks_they_belong_to(part):
    for sentence in part:
        assert [t for t in sentence if t[1] == "RP"] == [t for t in sentence if t[2] == "B-PRT"]
        for chunk in chunks(column(sentence, 2)):
            inside = column(sentence[chunk.start : chunk.end], 1)
            if chunk.type == "VP":
                assert any(pos.startswith("VB") for pos in inside), words(sentence)
            if chunk.type == "SBAR":
                assert inside[-1] == "IN", words(sentence)


def test_nothing_occurs_twice():
    seen = Counter(map(words, TRAIN + TEST))
    assert [sentence for sentence, n in seen.items() if n > 1] == []
    assert not set(map(words, TRAIN)) & set(map(words, TEST))


@PARTS
@pytest.mark.parametrize(
    ("least", "has"),
    [
        (0.10, lambda s: "?" in words(s)),
        (0.10, lambda s: "``" in column(s, 1)),
        (0.25, lambda s: "CD" in column(s, 1)),
        (0.04, lambda s: (",", ",", "I-NP") in s or s[0][2] == "B-LST"),
        (0.05, lambda s: {"not", "n't", "never"} & set(words(s))),
        (0.03, lambda s: s[0][1] == "VB"),
    ],
    ids=["questions", "quotes", "numbers", "lists", "negation", "commands"],
)
def test_kinds_of_sentences_are_present(part, least, has):
    assert sum(map(bool, map(has, part))) >= least * len(part)


@PARTS
def test_every_type_of_chunk_is_present(part):
    found = {chunk.type for sentence in part for chunk in chunks(column(sentence, 2))}
    assert found == CONLL - {"UCP"}


def test_there_is_something_to_learn_from_pos_tags_and_more_beyond_them():
    gold = [column(sentence, 2) for sentence in TEST]
    n = chunk_scores(gold, map(majority_baseline(TRAIN), TEST))
    assert 70 < n.f < 90


def test_no_sentence_is_from_conll2000():
    try:
        folder = find_corpus("conll2000")
    except MissingData as missing:
        pytest.skip(str(missing))
    theirs = read_columns(folder / "train.txt") + read_columns(folder / "test.txt")
    assert len(theirs) > 10_000
    assert not set(map(lowered, TRAIN + TEST)) & set(map(lowered, theirs))
    # Nor is a longer piece of one: set phrases such as "before the end of the year" are shorter.
    ours = set(runs(TRAIN + TEST))
    assert len(ours) > 1000
    assert not [run for run in runs(theirs) if run in ours]


def lowered(sentence):
    return tuple(word.lower() for word in words(sentence))


def runs(sentences, n=8):
    return (run[i : i + n] for run in map(lowered, sentences) for i in range(len(run) - n + 1))
