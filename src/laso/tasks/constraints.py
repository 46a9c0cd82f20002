"""Which labels may follow each other: BIO, IOBES, or a table of the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from laso.data.table import position
from laso.engine.layout import Array
from laso.errors import BadData


@dataclass(frozen=True)
class Constraints:
    """Which labels may begin a sentence, follow each label, and end it, as flags."""

    follow: Array  # (labels + 1, labels): row 0 for the beginning, then one for each label
    end: Array  # (labels,)

    def reaching(self, longest: int) -> Array:
        """Row k: the labels from which k more words can be labelled to an end.

        It stops where the rows repeat themselves, or at the longest sentence.
        """
        rows = [self.end.astype(bool)]
        after = self.follow[1:].astype(bool)
        while len(rows) < max(longest, 1):
            row = (after & rows[-1]).any(axis=1)
            if (row == rows[-1]).all():
                break
            rows.append(row)
        return np.array(rows)

    def allows_length(self, length: int) -> bool:
        """Can a sentence of so many words be labelled at all?"""
        rows = self.reaching(length)
        return not length or bool((self.follow[0] & rows[min(length, len(rows)) - 1]).any())

    def good_sets(self, gold: Array) -> Array | None:
        """For each word the labels (flags) from which the gold labels after it can be reached.

        ``gold`` is -1 where no label is known. None if the labels known cannot be had at all.
        """
        n = len(self.end)
        sets = np.ones((len(gold), n), bool)
        sets[gold >= 0] = np.arange(n) == gold[gold >= 0, None]
        after = self.follow[1:].astype(bool)
        sets[-1:] &= self.end.astype(bool)
        for i in range(len(gold) - 2, -1, -1):
            sets[i] &= (after & sets[i + 1]).any(axis=1)
        return sets if not len(sets) or (self.follow[0].astype(bool) & sets[0]).any() else None


def bio(labels: Sequence[str]) -> Constraints:
    """I-x only after B-x or I-x."""
    return _scheme("BIO", labels, begins="OB", inside={"I": "BI"}, ends="OBI")


def iobes(labels: Sequence[str]) -> Constraints:
    """Chunks are S-x, or B-x, any number of I-x, and E-x."""
    return _scheme("IOBES", labels, begins="OBS", inside={"I": "BI", "E": "BI"}, ends="OES")


def _scheme(
    name: str, labels: Sequence[str], *, begins: str, inside: Mapping[str, str], ends: str
) -> Constraints:
    parts = [label.partition("-") for label in labels]
    for label, (mark, hyphen, kind) in zip(labels, parts, strict=True):
        if mark not in set(name) or (mark == "O" and hyphen) or (hyphen and not kind):
            raise ValueError(f"constraints={name!r}: found the label {label!r}, expected {name}")
    n = len(labels)
    follow = np.zeros((n + 1, n), np.int64)
    for b, (mark, _, kind) in enumerate(parts):
        follow[0, b] = mark in begins
        for a, (before, _, kind_before) in enumerate(parts):
            if mark in inside:
                follow[a + 1, b] = before in inside[mark] and kind_before == kind
            else:
                follow[a + 1, b] = before in ends
    return Constraints(follow, np.array([mark in ends for mark, _, _ in parts], np.int64))


def table(labels: Sequence[str], given: Mapping[str | None, Sequence[str | None]]) -> Constraints:
    """From a table: for each label those that may follow it, None standing for both ends.

    A label without an entry may be followed by any; without one for None, any may begin; and
    without a None among those that follow, any may end. Labels that do not occur are passed over.
    """
    n = len(labels)
    number = {label: i for i, label in enumerate(labels)}
    follow = np.ones((n + 1, n), np.int64)
    for label, after in given.items():
        if label is None or label in number:
            row = 0 if label is None else number[label] + 1
            follow[row] = 0
            follow[row, [number[b] for b in after if b is not None and b in number]] = 1
    end = np.ones(n, np.int64)
    if any(None in after for after in given.values()):
        end[:] = [label not in given or None in given[label] for label in labels]
    return Constraints(follow, end)


def constraints(
    labels: Sequence[str], given: str | Mapping[str | None, Sequence[str | None]]
) -> Constraints:
    """Constraints as users give them: "BIO", "IOBES" or a table."""
    if isinstance(given, str):
        return (bio if given == "BIO" else iobes)(labels)
    return table(labels, given)


def check_labels(rules: Constraints, labels: Sequence[str], gold: Array, starts: Array) -> None:
    """Raise an error that names the first gold label that the constraints forbid.

    ``gold`` has the labels of all tokens as numbers, -1 where none is known.
    """
    if not len(gold):
        return
    lengths = np.diff(starts)
    before = np.concatenate([[-1], gold[:-1]])
    firsts = starts[:-1][lengths > 0]
    before[firsts] = -1
    known = (gold >= 0) & (before >= 0)
    known[firsts] = gold[firsts] >= 0
    bad = known & (rules.follow[before + 1, gold] == 0)
    if bad.any():
        i = int(np.argmax(bad))
        after = labels[before[i]] if before[i] >= 0 else "the beginning"
        raise BadData(
            f"found the label {labels[gold[i]]} after {after}, which the constraints forbid",
            **position(lengths, i),
        )
    lasts = starts[1:][lengths > 0] - 1
    bad_ends = (gold[lasts] >= 0) & (rules.end[gold[lasts]] == 0)
    if bad_ends.any():
        i = int(lasts[np.argmax(bad_ends)])
        raise BadData(
            f"found the label {labels[gold[i]]} at the end, which the constraints forbid",
            **position(lengths, i),
        )
