"""The general reader of files: the sentences of every format, one by one."""

from __future__ import annotations

import errno
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import IO, Any

from laso.data.columns import Block, read_blocks
from laso.data.formats import CONLLU, KINDS, LABELS, WORDS, Format, guessed
from laso.data.lines import Source, name_of, numbered_lines
from laso.data.offsets import tokens_and_labels
from laso.data.tokenizer import sentences
from laso.errors import BadData, listed, quoted
from laso.files.opening import open_input

HEAD = 1 << 16  # bytes of a file by which its format is detected
NO_ARRAY = "expected a JSON object on each line: jq -c '.[]' FILE divides an array into lines"
_NO_WORD = re.compile(r"\d+[-.]\d+\t")  # a multiword token or an empty node


def read(source: Source, *, format: Format | str = "columns") -> Iterator[Block]:  # noqa: A002
    """Yield the sentences of a file as they are read.

    Parameters
    ----------
    source : path or open file
        The text must be UTF-8.
    format : Format or str, default="columns"
        The format, or the name of one: "columns", "conllu", "jsonl" or "text".

    Yields
    ------
    Block
        A sentence: ``tokens``, the ``line_numbers`` of the tokens, the ``names`` of the columns,
        and the file's name as ``source``. A block without tokens has comments only.

    Examples
    --------
    >>> import io
    >>> for sentence in read(io.StringIO("The DT\\ncat NN\\n")):
    ...     print(sentence.tokens, sentence.line_numbers)
    [('The', 'DT'), ('cat', 'NN')] [1, 2]
    """
    form = format_of(format)
    return READERS[form.kind](source, form)


def contents(path: str | os.PathLike[str]) -> tuple[io.BytesIO, Format]:
    """Return a file as a whole, which may be a pipe, and its format by name and first lines."""
    if not os.path.exists(path):
        hint = "no such file; to label a text, give a list of its sentences, each a list of words"
        raise FileNotFoundError(errno.ENOENT, hint, os.fspath(path))
    file = whole(path)
    head = file.getbuffer()[:HEAD].tobytes().decode("utf-8", "replace")
    return file, guessed(head[: head.rfind("\n") + 1] or head, file.name)


def check_format(name: str, form: Format) -> None:
    """Raise BadData for a file that has no columns, or special ones."""
    if form.kind == "jsonl" or name.lower().endswith(".conllu"):
        kind = "JSON" if form.kind == "jsonl" else "CoNLL-U"
        raise BadData(
            f"found a file of {kind}, expected one of columns: laso.data.read has a format, and "
            "the command line detects it",
            file=name,
        )


def format_of(given: Format | str) -> Format:
    """Return a format, which may be given by its name; ValueError if there is none of that kind."""
    form = Format(given) if isinstance(given, str) else given
    if form.kind not in KINDS:
        raise ValueError(f"format must be one of {', '.join(KINDS)}, found {quoted(form.kind)}")
    return form


def whole(source: str | os.PathLike[str] | IO[bytes]) -> io.BytesIO:
    """Return a file of bytes as a whole, in memory under the same name."""
    if isinstance(source, (str, os.PathLike)):
        with open_input(source) as file:
            data = file.read()
    else:
        data = source.read()
    in_memory = io.BytesIO(data)
    in_memory.name = name_of(source)
    return in_memory


# --------------------------------------------------------------------------- formats


def _read_columns(source: Source, form: Format) -> Iterator[Block]:
    n = len(form.names) or None
    for block in read_blocks(source, columns=n, separator=form.separator, comment=form.comment):
        block.names = form.names or block.names
        yield block


def _read_conllu(source: Source, form: Format) -> Iterator[Block]:
    read = read_blocks(
        source,
        columns=len(CONLLU),
        separator="\t",
        comment="#",
        skip=lambda line: _NO_WORD.match(line) is not None,
    )
    for block in read:
        block.names = CONLLU
        yield block


def _read_jsonl(source: Source, form: Format) -> Iterator[Block]:
    name = name_of(source)
    for number, line in numbered_lines(source):
        if line.strip():
            try:
                fields = _object(line)
                columns = _columns(fields)
            except BadData as error:
                raise error.at(file=name, line=number) from None
            tokens = list(zip(*columns.values(), strict=True))
            numbers = [number] * len(tokens)
            yield Block(tokens, numbers, {number: line}, tuple(columns), fields, name)


def _read_text(source: Source, form: Format) -> Iterator[Block]:
    name = name_of(source)
    for number, line in numbered_lines(source):
        for words in sentences(line):
            tokens = [(word,) for word in words]
            yield Block(tokens, [number] * len(tokens), {number: line}, WORDS[:1], source=name)


READERS: dict[str, Callable[[Source, Format], Iterator[Block]]] = {
    "columns": _read_columns,
    "conllu": _read_conllu,
    "jsonl": _read_jsonl,
    "text": _read_text,
}


def _object(line: str) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        if line.lstrip().startswith("["):
            raise BadData(f"found {quoted(line)}, {NO_ARRAY}") from None
        raise BadData(f"found {quoted(line)}, expected a JSON object ({error})") from None
    if not isinstance(fields, dict):
        raise BadData(f"found {quoted(line)}, {NO_ARRAY}")
    return fields


def _columns(fields: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the columns of a JSON object: its tokens, and all lists of the same length."""
    marked = tokens_and_labels(fields)
    if marked is not None:
        return dict(zip((WORDS[0], LABELS[0]), marked, strict=True))
    name = next((name for name in WORDS if name in fields), None)
    words: Any
    if name is not None:
        words = fields[name]
    elif isinstance(fields.get("text"), str):
        name = WORDS[0]
        words = [token for sentence in sentences(fields["text"]) for token in sentence]
    else:
        raise BadData(
            f"found the keys {listed(fields) or 'of nothing'}, expected {' or '.join(WORDS)} or "
            "text"
        )
    if not isinstance(words, list):
        raise BadData(f"found {quoted(words)} for {name}, expected a list")
    columns = {name: [tuple(w) if isinstance(w, list) else w for w in words]}
    for key, value in fields.items():
        if key != name and isinstance(value, list) and len(value) == len(words):
            columns[key] = [tuple(w) if isinstance(w, list) else w for w in value]
        elif key in LABELS:
            found = f"a list of {len(value)}" if isinstance(value, list) else quoted(value)
            raise BadData(f"found {found} for {key}, expected a list of {len(words)}")
    return columns
