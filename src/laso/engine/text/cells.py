"""Columns of tokens as Python's ``marshal`` writes them: tuples of strings, or strings."""

# mypy: ignore-errors

from __future__ import annotations

from laso.engine.text.layout import (
    AS_STRING,
    AS_TUPLE,
    MORE_TEXT,
    N_FEATURES,
    N_REFERENCES,
    N_TOKENS,
    OTHER,
    READ,
    TOKEN_KINDS,
)
from laso.engine.text.lexicon import code_of
from laso.engine.text.marshalled import (
    LIST,
    SHORT_TUPLE,
    TUPLE,
    begin_object,
    int32_at,
    size_of,
    string_at,
)


def read_cells(given, roles, cells, known, others):
    """Append the codes of all tokens of a list of sentences; return the status, and their number.

    ``roles`` has the input column of each column of a token, -1 for none.
    """
    given.meta[N_REFERENCES] = 0
    kind, at, _ = begin_object(given, 0, True)
    if kind != LIST:
        return OTHER, 0
    n = int32_at(given.bytes, at)
    at += 4
    for i in range(n):
        kind, here, after = begin_object(given, at, True)
        if kind != LIST and kind != TUPLE and kind != SHORT_TUPLE:
            return OTHER, 0
        status, end = read_tokens(given, roles, cells, known, others, kind, here, after < 0)
        if status != READ:
            return status, 0
        cells.lengths[given.meta[N_FEATURES] + i] = size_of(given.bytes, kind, here)
        at = end if after < 0 else after
    given.meta[N_FEATURES] += n
    return READ, n


def read_tokens(given, roles, cells, known, others, kind, at, fresh):
    """Read the tokens of a sentence whose contents begin at a place; the status, and the end."""
    n = size_of(given.bytes, kind, at)
    at += 1 if kind == SHORT_TUPLE else 4
    token, codes = given.meta[N_TOKENS], cells.codes
    if token + n > codes.shape[0]:
        return OTHER, at
    for _ in range(n):
        kind, here, after = begin_object(given, at, fresh)
        is_new, end = fresh and after < 0, here
        if kind == SHORT_TUPLE:
            if given.bytes[here] != roles.shape[0]:
                return OTHER, at
            given.meta[TOKEN_KINDS] |= AS_TUPLE
            end = here + 1
            for column in range(roles.shape[0]):
                kind, here, next_one = begin_object(given, end, is_new)
                first, size = string_at(given.bytes, kind, here)
                if size < 0:
                    return OTHER, at
                end = first + size if next_one < 0 else next_one
                if roles[column] >= 0:
                    code = code_of(known, others, roles[column], given.bytes, first, size)
                    if code < 0:
                        return MORE_TEXT, at
                    codes[token, roles[column]] = code
        else:
            first, size = string_at(given.bytes, kind, here)
            if size < 0 or roles.shape[0] != 1:
                return OTHER, at
            given.meta[TOKEN_KINDS] |= AS_STRING
            end = first + size
            if roles[0] >= 0:
                code = code_of(known, others, roles[0], given.bytes, first, size)
                if code < 0:
                    return MORE_TEXT, at
                codes[token, 0] = code
        token += 1
        at = end if after < 0 else after
    given.meta[N_TOKENS] = token
    return READ, at
