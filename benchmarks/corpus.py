"""The corpora that the systems are measured on, as column files that every process reads itself."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import NamedTuple

from laso.data import Sentence, find_corpus, load_bundled, read_columns, write_columns


class Files(NamedTuple):
    """What to train on and what to decode."""

    train: Path
    test: Path


def plain_read(path: str | Path) -> list[Sentence]:
    """A column file as a user of the peers would read it: as fast as plain Python can."""
    text = Path(path).read_text(encoding="utf-8").strip()
    return [[tuple(line.split()) for line in part.split("\n")] for part in text.split("\n\n")]


def load(name: str) -> tuple[list[Sentence], list[Sentence]]:
    """Train and test sentences of ``conll2000`` or of the ``bundled`` corpus."""
    if name == "bundled":
        return load_bundled()
    folder = find_corpus(name)
    return read_columns(folder / "train.txt"), read_columns(folder / "test.txt")


def files(name: str, work: Path, *, quick: bool) -> Files:
    """The corpus as files; a small slice of it if ``quick``."""
    if name != "bundled" and not quick:
        folder = find_corpus(name)
        return Files(folder / "train.txt", folder / "test.txt")
    train, test = load(name)
    if quick:
        train, test = train[:150], test[:40]
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


def few(path: Path, work: Path) -> Path:
    """A file with the first sentences of a file: enough to have code compiled or loaded."""
    result = work / "few.txt"
    write_columns(result, read_columns(path)[:20])
    return result


def times(sentences: list[Sentence], factor: float) -> list[Sentence]:
    """The first part of the sentences, or all of them several times over."""
    whole, part = divmod(factor, 1)
    return sentences * int(whole) + sentences[: round(part * len(sentences))]


def relabelled(sentences: list[Sentence], labels: int) -> list[Sentence]:
    """Other labels, so many of them, that depend on the word and the POS tag before it."""

    def label(sentence: Sentence, i: int) -> str:
        before = sentence[i - 1][1] if i else ""
        return f"L{zlib.crc32(f'{sentence[i][0].lower()} {before}'.encode()) % labels}"

    return [
        [(*token[:2], label(sentence, i)) for i, token in enumerate(sentence)]
        for sentence in sentences
    ]


def rejoined(sentences: list[Sentence], length: int) -> list[Sentence]:
    """The same tokens in sentences of exactly ``length``, less what is left over."""
    tokens = [token for sentence in sentences for token in sentence]
    ends = range(length, len(tokens) + 1, length)
    return [tokens[end - length : end] for end in ends]
