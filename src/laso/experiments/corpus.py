"""Corpora as column files that every process reads itself."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from laso.data import Sentence, find_corpus, load_bundled, read, read_columns, write_columns

QUICK = (150, 40)  # sentences to train and to test on, where only the manner matters


class Files(NamedTuple):
    """What to train on and what to decode."""

    train: Path
    test: Path


def load(name: str) -> tuple[list[Sentence], list[Sentence]]:
    """Train and test sentences of ``conll2000``, ``ud_ewt`` or of the ``bundled`` corpus."""
    if name == "bundled":
        return load_bundled()
    folder = find_corpus(name)
    if name == "ud_ewt":
        return trees(folder / "en_ewt-ud-train.conllu"), trees(folder / "en_ewt-ud-test.conllu")
    return read_columns(folder / "train.txt"), read_columns(folder / "test.txt")


def trees(path: Path) -> list[Sentence]:
    """Words, UPOS, XPOS and features of a file in CoNLL-U."""
    return [
        [(row[1].replace(" ", "_"), row[3], row[4], row[5]) for row in block.tokens]
        for block in read(path, format="conllu")
        if block.tokens
    ]


def files(name: str, work: Path, *, quick: bool) -> Files:
    """The corpus as files; a small slice of it if ``quick``."""
    if name == "conll2000" and not quick:
        folder = find_corpus(name)
        return Files(folder / "train.txt", folder / "test.txt")
    train, test = load(name)
    if quick:
        train, test = train[: QUICK[0]], test[: QUICK[1]]
    return written(work, "all", train, test)


def held_out(given: Files, work: Path) -> Files:
    """Every tenth sentence of the training data to choose settings on, the rest to train on."""
    sentences = read_columns(given.train)
    rest = [sentence for i, sentence in enumerate(sentences) if i % 10 != 9]
    return written(work, "held-out", rest, sentences[9::10])


def written(work: Path, name: str, train: list[Sentence], test: list[Sentence]) -> Files:
    """The sentences as two files in the folder ``work``."""
    result = Files(work / f"{name}.train.txt", work / f"{name}.test.txt")
    for path, sentences in zip(result, (train, test), strict=True):
        write_columns(path, sentences)
    return result


def first(given: Files, work: Path, n: int) -> Files:
    """The first sentences of the training data, to train and to test on."""
    sentences = read_columns(given.train)[:n]
    return written(work, "first", sentences, sentences)


def few(path: Path, work: Path) -> Path:
    """A file with the first sentences of a file: enough to have code compiled or loaded."""
    result = work / "few.txt"
    write_columns(result, read_columns(path)[:20])
    return result
