"""Corpora as column files, which every process reads for itself, and corpora of other sizes."""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path
from typing import NamedTuple

from laso.data import Sentence, find_corpus, load_bundled, read, read_columns, write_columns

TREES = (3, 4, 6, 7)
CONLLU = {"ud_ewt": (3, 4, 5), "ud_ewt_trees": TREES, "ud_ewt_tenth": TREES}
"""Columns beside the words: UPOS, XPOS and features; or UPOS, XPOS, heads and labels of arcs."""
PARTS = {"ud_ewt_tenth": 10}
"""Corpora that have every n-th training sentence of another, and all of its test sentences."""
QUICK = (150, 40)  # numbers of training and test sentences of a quick run


class Files(NamedTuple):
    """The files to train on and to test on."""

    train: Path
    test: Path


def load(name: str) -> tuple[list[Sentence], list[Sentence]]:
    """Return training and test sentences of ``conll2000``, ``bundled`` or one of CONLLU."""
    if name == "bundled":
        return load_bundled()
    if name in CONLLU:
        folder = find_corpus("ud_ewt")
        train, test = (folder / f"en_ewt-ud-{part}.conllu" for part in ("train", "test"))
        sentences = read_conllu(train, CONLLU[name])[:: PARTS.get(name, 1)]
        return sentences, read_conllu(test, CONLLU[name])
    folder = find_corpus(name)
    return read_columns(folder / "train.txt"), read_columns(folder / "test.txt")


def read_conllu(path: Path, columns: tuple[int, ...] = CONLLU["ud_ewt"]) -> list[Sentence]:
    """Return words and other columns of a CoNLL-U file."""
    return [
        [(row[1].replace(" ", "_"), *(row[i] for i in columns)) for row in block.tokens]
        for block in read(path, format="conllu")
        if block.tokens
    ]


def files(name: str, work: Path, *, quick: bool) -> Files:
    """Return the corpus as files; a small slice of it if ``quick``."""
    if name == "conll2000" and not quick:
        folder = find_corpus(name)
        return Files(folder / "train.txt", folder / "test.txt")
    train, test = load(name)
    if quick:
        train, test = train[: QUICK[0]], test[: QUICK[1]]
    return write_files(work, "all", train, test)


def held_out(given: Files, work: Path) -> Files:
    """Split the training data: every tenth sentence is held out, the rest is to train on."""
    sentences = read_columns(given.train)
    rest = [sentence for i, sentence in enumerate(sentences) if i % 10 != 9]
    return write_files(work, "held-out", rest, sentences[9::10])


def write_files(work: Path, name: str, train: list[Sentence], test: list[Sentence]) -> Files:
    """Write training and test sentences to two files in the folder ``work``."""
    result = Files(work / f"{name}.train.txt", work / f"{name}.test.txt")
    for path, sentences in zip(result, (train, test), strict=True):
        write_columns(path, sentences)
    return result


def first_sentences(given: Files, work: Path, n: int) -> Files:
    """Write the first n training sentences, to train and to test on."""
    sentences = read_columns(given.train)[:n]
    return write_files(work, "first", sentences, sentences)


def warmup_file(path: Path, work: Path) -> Path:
    """Write the first sentences of a file, enough to compile or load code; return the path.

    Of a shorter file no compiled code reads the lines.
    """
    result = work / "few.txt"
    write_columns(result, read_columns(path)[:100])
    return result


def plain_read(path: str | Path) -> list[Sentence]:
    """Read a column file as users of the peers would, as fast as plain Python can."""
    text = Path(path).read_text(encoding="utf-8").strip()
    return [[tuple(line.split()) for line in part.split("\n")] for part in text.split("\n\n")]


def times(sentences: list[Sentence], factor: float) -> list[Sentence]:
    """Return the first sentences, or all sentences repeated, as ``factor`` demands."""
    whole, part = divmod(factor, 1)
    return sentences * int(whole) + sentences[: round(part * len(sentences))]


def relabelled(sentences: list[Sentence], labels: int) -> list[Sentence]:
    """Replace the labels by ``labels`` others, which depend on word and previous POS tag."""

    def label(sentence: Sentence, i: int) -> str:
        before = sentence[i - 1][1] if i else ""
        return f"L{zlib.crc32(f'{sentence[i][0].lower()} {before}'.encode()) % labels}"

    return [
        [(*token[:2], label(sentence, i)) for i, token in enumerate(sentence)]
        for sentence in sentences
    ]


def respelled(sentences: list[Sentence], spellings: int) -> list[Sentence]:
    """Give each word one of several spellings, by its place: there are as many times more words."""
    place = itertools.count()
    return [
        [(f"{token[0]}~{7919 * next(place) % spellings}", *token[1:]) for token in sentence]
        for sentence in sentences
    ]


def rejoined(sentences: list[Sentence], length: int) -> list[Sentence]:
    """Cut the same tokens into sentences of exactly ``length``; the remainder is dropped."""
    tokens = [token for sentence in sentences for token in sentence]
    ends = range(length, len(tokens) + 1, length)
    return [tokens[end - length : end] for end in ends]
