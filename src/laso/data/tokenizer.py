"""A small tokeniser for plain text in languages that separate words by spaces.

    >>> list(sentences("Don't panic. It's 3.5 km."))
    [['Do', "n't", 'panic', '.'], ['It', "'s", '3.5', 'km', '.']]

The tokens contain all characters of the text but its spaces. A sentence ends at . ! or ? before a
capital letter, a digit or a quotation mark, unless the word before the full stop is a common
abbreviation, and at the end of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

ABBREVIATIONS = frozenset(
    f"{word}."
    for line in (
        "mr mrs ms dr prof st sen rep gen gov lt col sgt capt jr sr co corp inc ltd bros vs etc",
        "e.g i.e cf fig no vol jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k a.m p.m",
    )
    for word in line.split()
)
APOSTROPHE = "['\u2019]"
TOKEN = re.compile(
    rf"""
      (?:https?://|www\.)[^\s<>"']*[\w/]           # URLs
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+                 # email addresses
    | [@\#]\w+
    | \d+(?:[.,:/]\d+)+                            # numbers, dates, times
    | (?:[^\W\d_]\.){{2,}}                           # U.S.
    | \w+?(?=n{APOSTROPHE}t\b)                             # do-n't
    | n{APOSTROPHE}t\b
    | {APOSTROPHE}(?:s|re|ve|ll|d|m)\b
    | \w+(?:[-&]\w+)*                              # a word, hyphens inside
    | \.{{2,}} | -{{2,}} | ``|''
    | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)
ENDS = re.compile("[.!?\u2026]+")
CLOSING = ('"', "''", "'", "\u201d", "\u2019", ")", "]", "\u00bb")
OPENING = ('"', "``", "'", "\u201c", "\u2018", "(", "[", "\u00ab")


def tokens(line: str) -> list[str]:
    """Split a text into tokens."""
    return [token for token, _ in _split(line)]


def sentences(line: str) -> Iterator[list[str]]:
    """Yield the sentences of a line, each a list of tokens."""
    sentence: list[str] = []
    ended = False
    for token, touches in _split(line):
        closes = touches and token in CLOSING
        begins = token in OPENING or token[0].isupper() or token[0].isdigit()
        if ended and begins and not closes:
            yield sentence
            sentence = []
        ended = ENDS.fullmatch(token) is not None or (ended and closes)
        sentence.append(token)
    if sentence:
        yield sentence


def _split(line: str) -> list[tuple[str, bool]]:
    """Return the tokens, and whether each follows the previous one without a space."""
    pairs: list[tuple[str, bool]] = []
    end = -1
    for match in TOKEN.finditer(line):
        token, touches = match[0], match.start() == end
        end = match.end()
        if token == "." and touches and (pairs[-1][0] + ".").lower() in ABBREVIATIONS:
            pairs[-1] = (pairs[-1][0] + ".", pairs[-1][1])
        else:
            pairs.append((token, touches))
    return pairs
