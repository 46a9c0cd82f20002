"""The corpora of the benchmarks: read as users of the peers would, and in other sizes."""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path

from laso.data import Sentence
from laso.experiments.corpus import Files, files, held_out, load, warmup_file, write_files

__all__ = [
    "Files",
    "files",
    "held_out",
    "load",
    "plain_read",
    "rejoined",
    "relabelled",
    "respelled",
    "times",
    "warmup_file",
    "write_files",
]


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
