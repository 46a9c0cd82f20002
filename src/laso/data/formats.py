"""File formats: how to detect them, which columns are inputs and labels, and how to write labels.

columns  one token per line, columns with a separator between them, a blank line after a sentence
conllu   CoNLL-U: ten columns, comments, multiword tokens
jsonl    one JSON object per line: {"tokens": ["The", ...], "labels": ["DT", ...]}, other lists of
         the same length are further columns; or {"text": "The ..."}
text     plain text, which ``laso.data.tokenizer`` splits into sentences and tokens

``laso.data.reading`` reads all of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from laso.data.columns import BLANKS, Block
from laso.data.lines import BOM, LINE_END

KINDS = ("columns", "conllu", "jsonl", "text")
CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
SEPARATORS = {"tab": "\t", "space": " ", "comma": ",", "semicolon": ";", "bar": "|"}
FEATS, EMPTY = "feats", "_"  # the column of morphological features; a cell without a value
WORDS = ("tokens", "words")
LABELS = ("labels", "tags", "ner_tags")
_NODE = re.compile(r"\d+(?:[-.]\d+)?")
_COMMENT = re.compile(r"# *(?:[\w.]+ *=|newdoc|newpar|text|sent_id)")
_MOST_OF = 0.9  # share of the lines that must have the same number of columns


@dataclass(frozen=True)
class Format:
    """The format of a file.

    Parameters
    ----------
    kind : {"columns", "conllu", "jsonl", "text"}, default="columns"
        The format's name.
    separator : str, optional
        The text between two columns; by default any number of spaces and tabs.
    comment : str, optional
        Lines of a column file that begin with this text are skipped; by default ``-DOCSTART-``.
    names : tuple of str, optional
        The names of the columns; by default their numbers, counted from 1.

    Examples
    --------
    >>> import io
    >>> from laso.data import Format, read
    >>> commas = Format(separator=",", comment="#", names=("word", "tag"))
    >>> [block.tokens for block in read(io.StringIO("# one\\nThe,DT\\ncat,NN\\n"), format=commas)]
    [[('The', 'DT'), ('cat', 'NN')]]
    """

    kind: str = "columns"
    separator: str | None = None
    comment: str | None = None
    names: tuple[str, ...] = ()


# --------------------------------------------------------------------------- detection


def guessed(head: str, name: str = "") -> Format:
    """Detect the format of a file by its name and its first lines, ``head``."""
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
    """Detect the separator that nearly all lines have: a tab, blanks, or else ; | or , ."""
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
class ColumnRoles:
    """Which columns of a file are inputs and which are labels, by name."""

    inputs: tuple[str, ...]
    labels: tuple[str, ...]
    width: int  # the number of columns of the file

    def tokens(self, block: Block) -> list[Any]:
        """Return the inputs of a sentence as an estimator takes them."""
        return _chosen(block, self.inputs)

    def words(self, block: Block) -> list[Any]:
        """Return the first input of each token."""
        return _chosen(block, self.inputs[:1])

    def answers(self, block: Block) -> list[Any]:
        """Return the gold labels of a sentence."""
        return _chosen(block, self.labels)

    def fits(self, names: Sequence[str]) -> bool:
        """Return whether a file with columns of these names has all inputs and labels."""
        return set(self.inputs) | set(self.labels) <= set(names)

    def for_names(self, names: Sequence[str]) -> ColumnRoles | None:
        """Return the roles in another file, which may lack labels; None if it lacks inputs."""
        width, known = len(names), set(self.inputs) <= set(names)
        if known and self.labels and set(self.labels) <= set(names) and width == self.width:
            return self
        last = {str(self.width - i) for i in range(len(self.labels))} == set(self.labels)
        numbered = names and names[0] == "1"
        if known and (not numbered or (last and width == self.width - len(self.labels))):
            labels = self.labels if set(self.labels) <= set(names) else ()
            return ColumnRoles(self.inputs, labels, width)
        if width == len(self.inputs):
            return ColumnRoles(tuple(names), (), width)
        return None


def _chosen(block: Block, names: tuple[str, ...]) -> list[Any]:
    places = [block.names.index(name) for name in names]
    if len(places) == 1:
        return [token[places[0]] for token in block.tokens]
    return [tuple(token[i] for i in places) for token in block.tokens]


TREE = ("head", "deprel")
"""The columns of CoNLL-U that hold a dependency tree."""
OF_TREES = ("form", "upos", "xpos", FEATS)
"""The columns of CoNLL-U that a parser looks at."""


def default_roles(form: Format, names: tuple[str, ...], *, trees: bool = False) -> ColumnRoles:
    """Return the default roles: the last column is the label; in CoNLL-U, upos is that of form.

    Where ``trees`` are wanted, heads and labels of arcs are the last two columns, and words, tags
    and morphological features are the inputs.
    """
    if trees:
        if form.kind == "conllu":
            return ColumnRoles(OF_TREES, TREE, len(names))
        return ColumnRoles(names[:-2], names[-2:], len(names))
    if form.kind == "conllu":
        return ColumnRoles(("form",), ("upos",), len(names))
    label = next((name for name in LABELS if name in names), names[-1])
    return ColumnRoles(tuple(name for name in names if name != label), (label,), len(names))


# --------------------------------------------------------------------------- writing


def written(
    block: Block,
    labels: Sequence[Any],
    more: dict[str, Any],
    form: Format,
    roles: ColumnRoles,
    to: str,
) -> str:
    """Return a sentence with its predicted labels in the format ``to``.

    ``more`` has further keys of a JSON object.
    """
    if to == "jsonl":
        return _as_json(block, labels, more, form, roles)
    if to == "conllu":
        if form.kind == to:
            return _as_conllu(block.lines, block.line_numbers, labels, roles)
        lines = _conllu_lines(block, roles)
        return _as_conllu(lines, list(lines), labels, roles)
    return _as_columns(block, labels, form, roles)


def _as_json(
    block: Block, labels: Sequence[Any], more: dict[str, Any], form: Format, roles: ColumnRoles
) -> str:
    name = roles.labels[0] if form.kind == "jsonl" and roles.labels else LABELS[0]
    fields = block.fields
    if fields is None or not any(key in fields for key in WORDS):
        fields = {**(fields or {}), WORDS[0]: roles.tokens(block)}
    return json.dumps({**fields, name: list(labels), **more}, ensure_ascii=False) + "\n"


def _conllu_lines(block: Block, roles: ColumnRoles) -> dict[int, str]:
    """Return lines of CoNLL-U for the words of another format, and their tags if it has any."""
    lines = {}
    for i, token in enumerate(roles.tokens(block), start=1):
        names = dict(zip(("form", "upos", "xpos"), map(str, cells(token)), strict=False))
        lines[i] = "\t".join({**dict.fromkeys(CONLLU, "_"), "id": str(i), **names}.values())
    return lines


def _as_conllu(
    given: dict[int, str], numbers: Sequence[int], labels: Sequence[Any], roles: ColumnRoles
) -> str:
    lines = dict(given)
    for number, label in zip(numbers, labels, strict=True):
        columns = lines[number].rstrip(" ").split("\t")
        for name, cell in zip(roles.labels, cells(label), strict=True):
            columns[CONLLU.index(name)] = str(cell)
        lines[number] = "\t".join(columns)
    return "\n".join([*lines.values(), "", ""])


def _as_columns(block: Block, labels: Sequence[Any], form: Format, roles: ColumnRoles) -> str:
    if form.kind != "columns":
        rows = [[*cells(t), *cells(a)] for t, a in zip(roles.tokens(block), labels, strict=True)]
        return "".join("\t".join(map(str, row)) + "\n" for row in rows) + "\n"
    lines = dict(block.lines)
    for number, label in zip(block.line_numbers, labels, strict=True):
        line = lines[number].rstrip(" ")
        separator = form.separator or ("\t" if "\t" in line else " ")
        lines[number] = separator.join([line, *map(str, cells(label))])
    return "\n".join([*lines.values(), "", ""])


def cells(label: Any) -> tuple[str, ...]:
    """Return a label as columns: one for each layer of labels."""
    return label if isinstance(label, tuple) else (label,)
