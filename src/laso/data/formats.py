"""Sentences from files of several formats, as the command line takes them, and written again.

columns  one token a line, its columns apart by a separator, a blank line after a sentence
conllu   CoNLL-U: ten columns, comments, multiword tokens
jsonl    a JSON object a line: {"tokens": ["The", ...], "labels": ["DT", ...]}, other lists of
         the same length are further columns; or {"text": "The ..."}
text     plain text, which ``laso.data.tokenizer`` cuts into sentences and tokens
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from laso.data.columns import BLANKS, Block, read_blocks, short_line
from laso.data.lines import BOM, LINE_END, Source, name_of, numbered_lines
from laso.data.tokenizer import sentences
from laso.errors import BadData

KINDS = ("columns", "conllu", "jsonl", "text")
CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
SEPARATORS = {"tab": "\t", "space": " ", "comma": ",", "semicolon": ";", "bar": "|"}
WORDS = ("tokens", "words")
LABELS = ("labels", "tags", "ner_tags")
_NO_WORD = re.compile(r"\d+[-.]\d+\t")  # a multiword token or an empty node
_NODE = re.compile(r"\d+(?:[-.]\d+)?")
_COMMENT = re.compile(r"# *(?:[\w.]+ *=|newdoc|newpar|text|sent_id)")
_MOST_OF = 0.9  # of the lines looked at must have equally many columns


@dataclass(frozen=True)
class Format:
    """How a file is to be read."""

    kind: str = "columns"
    separator: str | None = None  # None: blanks
    comment: str | None = None
    names: tuple[str, ...] = ()  # of the columns; by default they are numbered from 1

    def blocks(self, source: Source) -> Iterator[Block]:
        """The sentences, with what else stands between them, read when they are asked for."""
        return {
            "columns": self._columns,
            "conllu": self._conllu,
            "jsonl": self._jsonl,
            "text": self._text,
        }[self.kind](source)

    def _columns(self, source: Source) -> Iterator[Block]:
        n = len(self.names) or None
        read = read_blocks(source, columns=n, separator=self.separator, comment=self.comment)
        names: tuple[str, ...] = self.names
        for block in read:
            if not names and block.tokens:
                names = tuple(str(i) for i in range(1, len(block.tokens[0]) + 1))
            yield replace(block, names=names)

    def _conllu(self, source: Source) -> Iterator[Block]:
        read = read_blocks(
            source,
            columns=len(CONLLU),
            separator="\t",
            comment="#",
            passed_over=lambda line: _NO_WORD.match(line) is not None,
        )
        return (replace(block, names=CONLLU) for block in read)

    def _jsonl(self, source: Source) -> Iterator[Block]:
        for number, line in numbered_lines(source):
            if line.strip():
                yield _from_json(line, number, f"{name_of(source)}:{number}")

    def _text(self, source: Source) -> Iterator[Block]:
        for number, line in numbered_lines(source):
            for words in sentences(line):
                tokens = [(word,) for word in words]
                yield Block(tokens, [number] * len(tokens), {number: line}, ("tokens",))


def _from_json(line: str, number: int, place: str) -> Block:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadData(
            f"{place}: found {short_line(line)}, expected a JSON object ({error})"
        ) from None
    if not isinstance(fields, dict):
        raise BadData(f"{place}: found {short_line(line)}, expected a JSON object")
    name = next((name for name in WORDS if name in fields), None)
    if name is None and isinstance(fields.get("text"), str):
        words: Any = [token for sentence in sentences(fields["text"]) for token in sentence]
        name = WORDS[0]
    elif name is None:
        raise BadData(
            f"{place}: found the keys {', '.join(fields) or 'of nothing'}, "
            f"expected {' or '.join(WORDS)} or text"
        )
    else:
        words = fields[name]
    if not isinstance(words, list):
        raise BadData(f"{place}: found {short_line(repr(words))} for {name}, expected a list")
    columns = {name: [tuple(w) if isinstance(w, list) else w for w in words]}
    for key, value in fields.items():
        if key != name and isinstance(value, list) and len(value) == len(words):
            columns[key] = [tuple(w) if isinstance(w, list) else w for w in value]
        elif key in LABELS:
            found = f"{len(value)} of them" if isinstance(value, list) else repr(value)
            raise BadData(
                f"{place}: found {short_line(found)} for {key}, expected a list of {len(words)}"
            )
    tokens = list(zip(*columns.values(), strict=True))
    return Block(tokens, [number] * len(tokens), {number: line}, tuple(columns), fields)


# --------------------------------------------------------------------------- what a file is


def guessed(head: str, name: str = "") -> Format:
    """The format of a file that begins so, by its name and by what is in it."""
    end = name.rpartition(".")[2].lower()
    lines = [line for line in LINE_END.split(head.removeprefix(BOM)) if line.strip()]
    if end in ("jsonl", "ndjson", "json") or (lines and lines[0].lstrip().startswith('{"')):
        return Format("jsonl")
    tokens = [line for line in lines if not line.startswith("#")]
    if end == "conllu" or (tokens and all(map(_is_node, tokens))):
        return Format("conllu")
    comment = "#" if lines and _COMMENT.match(lines[0]) else None
    return Format("columns", guessed_separator(lines if comment is None else tokens), comment)


def _is_node(line: str) -> bool:
    columns = line.split("\t")
    return len(columns) == len(CONLLU) and _NODE.fullmatch(columns[0]) is not None


def guessed_separator(lines: Sequence[str]) -> str | None:
    """What stands between the columns of nearly all lines: a tab, blanks, or else ; | or , ."""
    if _is_constant([line.count("\t") for line in lines]):
        return "\t"
    if _is_constant([len(BLANKS.findall(line.strip(" \t"))) for line in lines]):
        return None
    for separator in (";", "|", ","):
        if _is_constant([line.count(separator) for line in lines]):
            return separator
    return None


def _is_constant(counts: Sequence[int]) -> bool:
    if not counts:
        return False
    value, times = Counter(counts).most_common(1)[0]
    return value > 0 and times >= _MOST_OF * len(counts)


# --------------------------------------------------------------------------- inputs and labels


@dataclass(frozen=True)
class Layout:
    """Which columns of a file are the inputs and which are labels, by name."""

    inputs: tuple[str, ...]
    labels: tuple[str, ...]
    width: int  # how many columns there are

    def tokens(self, block: Block) -> list[Any]:
        """The tokens as an estimator takes them."""
        return _chosen(block, self.inputs)

    def words(self, block: Block) -> list[Any]:
        """The first input of the tokens."""
        return _chosen(block, self.inputs[:1])

    def answers(self, block: Block) -> list[Any]:
        """The labels of the tokens."""
        return _chosen(block, self.labels)

    def fits(self, names: Sequence[str]) -> bool:
        """Are all its columns there?"""
        return set(self.inputs) | set(self.labels) <= set(names)

    def for_names(self, names: Sequence[str]) -> Layout | None:
        """The same inputs in another file, which may lack the labels; None: it has not got them."""
        width, known = len(names), set(self.inputs) <= set(names)
        if known and self.labels and set(self.labels) <= set(names) and width == self.width:
            return self
        last = {str(self.width - i) for i in range(len(self.labels))} == set(self.labels)
        numbered = names and names[0] == "1"
        if known and (not numbered or (last and width == self.width - len(self.labels))):
            labels = self.labels if set(self.labels) <= set(names) else ()
            return Layout(self.inputs, labels, width)
        if width == len(self.inputs):
            return Layout(tuple(names), (), width)
        return None


def _chosen(block: Block, names: tuple[str, ...]) -> list[Any]:
    places = [block.names.index(name) for name in names]
    if len(places) == 1:
        return [token[places[0]] for token in block.tokens]
    return [tuple(token[i] for i in places) for token in block.tokens]


def usual_layout(form: Format, names: tuple[str, ...]) -> Layout:
    """The last column is the label; of CoNLL-U upos, with the forms as inputs."""
    if form.kind == "conllu":
        return Layout(("form",), ("upos",), len(names))
    label = next((name for name in LABELS if name in names), names[-1])
    return Layout(tuple(name for name in names if name != label), (label,), len(names))


# --------------------------------------------------------------------------- written again


def written(
    block: Block,
    labels: Sequence[Any],
    more: dict[str, Any],
    form: Format,
    layout: Layout,
    to: str,
) -> str:
    """The sentence with labels found for it, in the format ``to`` (conllu only from conllu).

    ``more`` are further keys of a JSON object.
    """
    if to == "jsonl":
        return _as_json(block, labels, more, form, layout)
    if to == form.kind == "conllu":
        return _as_conllu(block, labels, layout)
    return _as_columns(block, labels, form, layout)


def _as_json(
    block: Block, labels: Sequence[Any], more: dict[str, Any], form: Format, layout: Layout
) -> str:
    name = layout.labels[0] if form.kind == "jsonl" and layout.labels else LABELS[0]
    fields = block.fields
    if fields is None or not any(key in fields for key in WORDS):
        fields = {**(fields or {}), WORDS[0]: layout.tokens(block)}
    return json.dumps({**fields, name: list(labels), **more}, ensure_ascii=False) + "\n"


def _as_conllu(block: Block, labels: Sequence[Any], layout: Layout) -> str:
    lines = dict(block.lines)
    for number, label in zip(block.places, labels, strict=True):
        columns = lines[number].rstrip(" ").split("\t")
        for name, cell in zip(layout.labels, cells(label), strict=True):
            columns[CONLLU.index(name)] = cell
        lines[number] = "\t".join(columns)
    return "\n".join([*lines.values(), "", ""])


def _as_columns(block: Block, labels: Sequence[Any], form: Format, layout: Layout) -> str:
    if form.kind != "columns":
        rows = [[*cells(t), *cells(a)] for t, a in zip(layout.tokens(block), labels, strict=True)]
        return "".join("\t".join(map(str, row)) + "\n" for row in rows) + "\n"
    lines = dict(block.lines)
    for number, label in zip(block.places, labels, strict=True):
        line = lines[number].rstrip(" ")
        separator = form.separator or ("\t" if "\t" in line else " ")
        lines[number] = separator.join([line, *cells(label)])
    return "\n".join([*lines.values(), "", ""])


def cells(label: Any) -> tuple[str, ...]:
    """A label as columns: one, or several of several layers."""
    return label if isinstance(label, tuple) else (label,)
