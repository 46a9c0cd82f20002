"""Column files: their lines in batches, the codes of their cells, and labels behind them.

It reads what ``laso.data.columns.read_blocks`` reads, line by line. Whatever else is there (a
carriage return inside a line, another number of columns, an empty cell) ends reading with OTHER, so
that the general code reads it, and reports what is wrong.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from laso.engine.text.layout import (
    BLOCK_END,
    ENOUGH,
    IN_BLOCK,
    IN_SENTENCE,
    LINE_END,
    LINE_KIND,
    LINE_START,
    LINES_AT,
    LINES_READ,
    LINES_STOP,
    MORE_TEXT,
    N_LINES,
    N_SENTENCES,
    N_WORDS,
    OTHER,
    OTHER_LINE,
    READ,
    SEPARATOR,
    TABBED,
    TOKEN,
)
from laso.engine.text.lexicon import code_of
from laso.engine.text.marshalled import copy_bytes

TAB, LINE_FEED, RETURN, SPACE = 9, 10, 13, 32


def is_blank(byte):
    """Return whether a byte is a space or a tab."""
    return (byte == SPACE) | (byte == TAB)


def starts_with(text, at, prefix):
    """Return whether the text has a prefix at a place, which is not empty."""
    n = prefix.shape[0]
    if n == 0 or at + n > text.shape[0]:
        return False
    same = True
    for i in range(n):
        same &= text[at + i] == prefix[i]
    return same


def find_batch(given):
    """Go to the end of a batch: the end of a block after enough tokens; return the status.

    The status is MORE_TEXT if the text ends before that. LINES_AT is where reading goes on.
    """
    text, meta = given.bytes, given.meta
    at, stop = meta[LINES_AT], meta[LINES_STOP]
    while at < stop:
        first = at
        while is_blank(text[at]) | (text[at] == RETURN):
            at += 1
        blank = text[at] == LINE_FEED
        while text[at] != LINE_FEED:
            at += 1
        at += 1
        meta[LINES_READ] += 1
        meta[LINES_AT] = at
        if not blank:
            meta[IN_BLOCK] += 1
            meta[N_WORDS] += not starts_with(text, first, given.comment)
        else:
            ended = meta[IN_BLOCK] > 0
            meta[IN_BLOCK] = 0
            if ended and meta[N_WORDS] >= meta[ENOUGH]:
                return READ, 0
    return MORE_TEXT, 0


def end_of_line(text, at):
    """Return the place of the line feed that ends a line, and the end of what is before it.

    The latter is -1 if the line has a carriage return inside.
    """
    while (text[at] != LINE_FEED) & (text[at] != RETURN):
        at += 1
    end = at
    while text[at] == RETURN:
        at += 1
    if text[at] == LINE_FEED:
        return at, end
    while text[at] != LINE_FEED:
        at += 1
    return at, -1


def add_line(given, start, end, kind):
    """Append a line to write."""
    n = given.meta[N_LINES]
    given.lines[n, LINE_START], given.lines[n, LINE_END] = start, end
    given.lines[n, LINE_KIND] = kind
    given.meta[N_LINES] = n + 1


def end_block(given, cells):
    """End the present block, if it has lines."""
    meta = given.meta
    if meta[IN_BLOCK] == 0:
        return
    add_line(given, 0, 0, BLOCK_END)
    if meta[IN_SENTENCE] > 0:
        cells.lengths[meta[N_SENTENCES]] = meta[IN_SENTENCE]
        meta[N_SENTENCES] += 1
    meta[IN_BLOCK] = meta[IN_SENTENCE] = 0


def read_lines(given, cells, known, others):
    """Read the lines of a batch, which is complete; return the status, and the number of tokens.

    After MORE_TEXT, the next call goes on with the line that lacked room.
    """
    text, meta, at = given.bytes, given.meta, given.meta[LINES_AT]
    while at < meta[LINES_STOP]:
        feed, end = end_of_line(text, at)
        if end < 0:
            return OTHER, 0
        meta[LINES_READ] += 1
        first = at
        while first < end and is_blank(text[first]):
            first += 1
        if first == end:
            end_block(given, cells)
        elif starts_with(text, at, given.comment):
            add_line(given, at, end, OTHER_LINE)
            meta[IN_BLOCK] += 1
        else:
            while text[end - 1] == SPACE:
                end -= 1
            if meta[SEPARATOR] < 0:
                status = read_blanks(given, cells, known, others, at, end)
            else:
                status = read_separated(given, cells, known, others, at, end)
            if status != READ:
                meta[LINES_AT] = at
                meta[LINES_READ] -= 1
                return status, 0
            given.numbers[meta[N_WORDS]] = meta[LINES_READ]
            meta[N_WORDS] += 1
            meta[IN_BLOCK] += 1
            meta[IN_SENTENCE] += 1
        at = feed + 1
    end_block(given, cells)
    return READ, meta[N_WORDS]


def read_blanks(given, cells, known, others, start, end):
    """Read the cells of a line between blanks; return the status."""
    text, roles, token = given.bytes, given.roles, given.meta[N_WORDS]
    width, column, at, tabbed = roles.shape[0], 0, start, False
    while at < end:
        if is_blank(text[at]):
            tabbed |= text[at] == TAB
            at += 1
            continue
        first = at
        while at < end and not is_blank(text[at]):
            at += 1
        if column == width:
            return OTHER
        if roles[column] >= 0:
            code = code_of(known, others, roles[column], text, first, at - first)
            if code < 0:
                return MORE_TEXT
            cells.codes[token, roles[column]] = code
        column += 1
    add_line(given, start, end, TABBED if tabbed else TOKEN)
    return READ if column == width else OTHER


def read_separated(given, cells, known, others, start, end):
    """Read the cells of a line between separators; return the status."""
    text, roles, token = given.bytes, given.roles, given.meta[N_WORDS]
    separator, width, at = np.int64(given.meta[SEPARATOR]), roles.shape[0], start
    for column in range(width):
        first = at
        while at < end and np.int64(text[at]) != separator:
            at += 1
        if at == first or (at == end) != (column == width - 1):
            return OTHER
        if roles[column] >= 0:
            code = code_of(known, others, roles[column], text, first, at - first)
            if code < 0:
                return MORE_TEXT
            cells.codes[token, roles[column]] = code
        at += 1
    add_line(given, start, end, TOKEN)
    return READ


def write_lines(given, labels, ends, text, out):
    """Write all lines, those of tokens with their labels; return the number of bytes.

    ``labels`` has the number of each token's label. The text of label i, with the separator before
    it, ends at ends[i + 1]; texts with a tab follow those with the other separator.
    """
    at, token, n_labels = 0, 0, (ends.shape[0] - 1) // 2
    for i in range(given.meta[N_LINES]):
        kind, start = given.lines[i, LINE_KIND], given.lines[i, LINE_START]
        n = given.lines[i, LINE_END] - start
        copy_bytes(given.bytes, start, out, at, n)
        at += n
        if kind <= TABBED:
            label = labels[token] + (n_labels if kind == TABBED else 0)
            token += 1
            start = ends[label]
            n = ends[label + 1] - start
            copy_bytes(text, start, out, at, n)
            at += n
        out[at] = LINE_FEED
        at += 1
    return at, token
