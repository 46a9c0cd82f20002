"""The corpora of the study of defaults: one list of attributes per token, the same for all systems.

Only the training parts are used to choose; the test parts serve the final settings.
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from laso.data import Format, find_corpus, load_bundled, read, read_columns

Tokens = list[tuple[str, ...]]
Example = tuple[Tokens, list[str]]
SHAPE = 8  # characters of a word's shape
HELD_OUT = 2000  # sentences at most


class Part(NamedTuple):
    """Sentences as attributes, and their labels."""

    X: list[list[list[str]]]
    y: list[list[str]]


class Data(NamedTuple):
    """What a system learns from, what its settings are chosen on, and what the result is for."""

    train: Part
    held_out: Part
    test: Part


# --------------------------------------------------------------------------- corpora


def columns(path: Path, inputs: int) -> Iterator[Example]:
    """Yield the sentences of a column file, with the label last."""
    for tokens in read_columns(path):
        yield [token[:inputs] for token in tokens], [token[-1] for token in tokens]


def chunks(part: str) -> Iterator[Example]:
    """Yield CoNLL-2000: words and tags, with chunks as labels."""
    return columns(find_corpus("conll2000") / f"{part}.txt", 2)


def emerging(part: str) -> Iterator[Example]:
    """Yield WNUT17: emerging entities in noisy text."""
    return columns(find_corpus("wnut17") / f"{part}.conll", 1)


def treebank(corpus: str, stem: str, column: int) -> Callable[[str], Iterator[Example]]:
    """Return a reader of a treebank in CoNLL-U with one of its columns as labels."""

    def tagged(part: str) -> Iterator[Example]:
        path = find_corpus(corpus) / f"{stem}-ud-{part}.conllu"
        for block in read(path, format="conllu"):
            if block.tokens:
                words: Tokens = [(row[1],) for row in block.tokens]
                yield words, [row[column] for row in block.tokens]

    return tagged


def fiction(part: str) -> Iterator[Example]:
    """Yield LitBank: the outermost mentions of entities that are no pronouns."""
    folder = find_corpus("litbank_coref")
    mentions: dict[tuple[str, int], list[tuple[int, int, str]]] = {}
    for row in _table(folder / "mentions.tsv"):
        if row["form"] != "PRON":
            at = (row["document"], int(row["sentence"]))
            mentions.setdefault(at, []).append((int(row["first"]), int(row["last"]), row["type"]))
    for row in _table(folder / "folds.tsv"):
        if (row["fold"], row["part"]) == ("0", part):
            text = (folder / f"{row['document']}.conll").read_text(encoding="utf-8")
            for n, block in enumerate(_blocks(text)):
                words: Tokens = [(line.split("\t")[3],) for line in block]
                yield words, _outermost(len(words), mentions.get((row["document"], n), []))


def _table(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        yield from csv.DictReader(file, delimiter="\t")


def _blocks(text: str) -> Iterator[list[str]]:
    for part in text.split("\n\n"):
        lines = [line for line in part.split("\n") if line and not line.startswith("#")]
        if lines:
            yield lines


def _outermost(n: int, mentions: list[tuple[int, int, str]]) -> list[str]:
    labels = ["O"] * n
    for first, last, kind in sorted(mentions, key=lambda mention: mention[0] - mention[1]):
        if set(labels[first : last + 1]) == {"O"}:
            labels[first : last + 1] = [f"B-{kind}", *[f"I-{kind}"] * (last - first)]
    return labels


def universal(stem: str) -> Callable[[str], Iterator[Example]]:
    """Return a reader of entities in a corpus of Universal NER."""

    def read_part(part: str) -> Iterator[Example]:
        path = find_corpus("uner") / f"{stem}-ud-{part}.iob2"
        for block in read(path, format=Format(separator="\t", comment="#")):
            if block.tokens:
                yield [(row[1],) for row in block.tokens], [row[2] for row in block.tokens]

    return read_part


def names(part: str) -> Iterator[Example]:
    """Yield UD English EWT with runs of proper nouns as chunks."""
    for tokens, tags in CORPORA["ewt upos"](part):
        pairs = zip(tags, ["", *tags], strict=False)
        marks = {True: "I-NAME", False: "B-NAME"}
        yield tokens, [marks[before == "PROPN"] if t == "PROPN" else "O" for t, before in pairs]


def bundled(part: str) -> Iterator[Example]:
    """Yield the bundled corpus: words and tags, with chunks as labels."""
    for tokens in load_bundled()[part == "test"]:
        yield [token[:2] for token in tokens], [token[2] for token in tokens]


CORPORA: dict[str, Callable[[str], Iterator[Example]]] = {
    "conll2000 chunks": chunks,
    "wnut17 entities": emerging,
    "litbank entities": fiction,
    "ewt upos": treebank("ud_ewt", "en_ewt", 3),
    "ewt xpos": treebank("ud_ewt", "en_ewt", 4),
    "ewt names": names,
    "turkish upos": treebank("ud_tr_imst", "tr_imst", 3),
    "danish entities": universal("da_ddt"),
    "croatian entities": universal("hr_set"),
    "portuguese entities": universal("pt_bosque"),
    "bundled chunks": bundled,
}


def load(name: str, divisor: int = 1) -> Data:
    """Return a corpus: a tenth of the training part is held out, of the rest 1/divisor is kept."""
    train, held_out = split(list(CORPORA[name]("train")), divisor)
    return Data(as_part(train), as_part(held_out), as_part(list(CORPORA[name]("test"))))


def split(
    examples: list[Example], divisor: int, *, seed: int = 0, held: int = 10
) -> tuple[list[Example], list[Example]]:
    """Hold out 1/held of the examples, by a seed; return 1/divisor of the rest, and those."""
    random.Random(5 + seed).shuffle(examples)
    n = len(examples) // held
    rest = examples[n:]
    return rest[: len(rest) // divisor], examples[:n][:HELD_OUT]


def as_part(examples: list[Example]) -> Part:
    """Return examples as attributes and labels."""
    return Part([attributes(tokens) for tokens, _ in examples], [labels for _, labels in examples])


def as_columns(examples: list[Example]) -> Part:
    """Return examples as columns and labels; one column alone is a list of strings."""
    X: list[Any] = [[t if len(t) > 1 else t[0] for t in tokens] for tokens, _ in examples]
    return Part(X, [labels for _, labels in examples])


# --------------------------------------------------------------------------- attributes


def shape(word: str) -> str:
    """Return the kinds of a word's characters."""
    kinds = (
        "X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word
    )
    return "".join(kinds)[:SHAPE]


def attributes(tokens: Tokens) -> list[list[str]]:
    """Return the attributes of tokens: windows, affixes and shapes, windows of other columns."""
    words = ["<2>", "<1>", *(token[0] for token in tokens), "</1>", "</2>"]
    found = []
    for i in range(2, len(words) - 2):
        word = words[i]
        own = [f"w{d}={words[i + d]}" for d in range(-2, 3)]
        own += [f"w-1w0={words[i - 1]}|{word}", f"w0w1={word}|{words[i + 1]}"]
        own += [f"l{d}={words[i + d].lower()}" for d in (-1, 0, 1)]
        own += [f"s{d}={shape(words[i + d])}" for d in (-1, 0, 1)]
        own += [f"p{k}={word[:k]}" for k in range(1, min(4, len(word)) + 1)]
        own += [f"x{k}={word[-k:]}" for k in range(1, min(4, len(word)) + 1)]
        found.append(own)
    for column in range(1, len(tokens[0]) if tokens else 0):
        values = ["<2>", "<1>", *(token[column] for token in tokens), "</1>", "</2>"]
        for own, i in zip(found, range(2, len(values) - 2), strict=True):
            a, b, c, d, e = values[i - 2 : i + 3]
            own += [f"c{column}{n}={v}" for n, v in enumerate((a, b, c, d, e))]
            own += [f"c{column}b{n}={v}|{w}" for n, (v, w) in enumerate(pairwise((a, b, c, d, e)))]
            own.append(f"c{column}t={b}|{c}|{d}")
    return found


def frequent(part: Part, least: int) -> Part:
    """Return sentences without the attributes that fewer than ``least`` tokens have."""
    counts = Counter(name for x in part.X for token in x for name in token)
    X = [[[name for name in token if counts[name] >= least] for token in x] for x in part.X]
    return Part(X, part.y)
