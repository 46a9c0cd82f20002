"""Which labels may follow each other: BIO, IOBES, or a table of the user's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from laso.data.table import position
from laso.engine.layout import Array
from laso.engine.memory_limit import check_room
from laso.errors import BadData
from laso.metrics.evaluation import are_chunks

OF_PAIR = 40.0  # bytes that a pair of labels takes in tables and lists


@dataclass(frozen=True)
class Constraints:
    """Flags for the labels that may begin a sentence, follow each label, and end a sentence."""

    follow: Array  # (labels + 1, labels): row 0 for the beginning, then one row for each label
    end: Array  # (labels,)

    def reaching(self, longest: int) -> Array:
        """Return rows of flags; row k has the labels after which k more words can be labelled.

        The rows end when they repeat, or at the longest sentence.
        """
        rows = [self.end.astype(bool)]
        after = self.follow[1:].astype(bool)
        while len(rows) < max(longest, 1):
            row = (after & rows[-1]).any(axis=1)
            if (row == rows[-1]).all():
                break
            rows.append(row)
        return np.array(rows)

    def allows(self, labels: Sequence[str], before: str | None, label: str | None) -> bool:
        """Return whether a label may follow another; None stands for both ends."""
        if label is None:
            return before is None or bool(self.end[labels.index(before)])
        row = 0 if before is None else labels.index(before) + 1
        return bool(self.follow[row, labels.index(label)])

    def allows_length(self, length: int) -> bool:
        """Return whether a sentence of this length has a valid label sequence."""
        rows = self.reaching(length)
        return not length or bool((self.follow[0] & rows[min(length, len(rows)) - 1]).any())

    def good_sets(self, gold: Array) -> Array | None:
        """Return flags for the labels of each word from which the later gold labels are reachable.

        ``gold`` is -1 for unknown labels. None if the known labels violate the constraints.
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
    """Return the constraints of BIO: I-x only after B-x or I-x."""
    return _scheme("BIO", labels, begins="OB", inside={"I": "BI"}, ends="OBI")


def iobes(labels: Sequence[str]) -> Constraints:
    """Return the constraints of IOBES: a chunk is S-x, or B-x, any number of I-x, and E-x."""
    return _scheme("IOBES", labels, begins="OBS", inside={"I": "BI", "E": "BI"}, ends="OES")


def _scheme(
    name: str, labels: Sequence[str], *, begins: str, inside: Mapping[str, str], ends: str
) -> Constraints:
    parts = [str(label).partition("-") for label in labels]
    for label, (mark, hyphen, kind) in zip(labels, parts, strict=True):
        if mark not in set(name) or (mark == "O" and hyphen) or (hyphen and not kind):
            raise ValueError(f"constraints={name!r}: found the label {label!r}, expected {name}")
    n = len(labels)
    check_pairs(n)
    marks = np.array([mark for mark, _, _ in parts], "U1")
    _, kinds = np.unique([kind for _, _, kind in parts] or [""], return_inverse=True)
    is_end = np.isin(marks, list(ends))
    follow = np.zeros((n + 1, n), np.int64)
    follow[0] = np.isin(marks, list(begins))
    for b, mark in enumerate(marks.tolist()):
        if mark in inside:
            follow[1:, b] = np.isin(marks, list(inside[mark])) & (kinds == kinds[b])
        else:
            follow[1:, b] = is_end
    return Constraints(follow, is_end.astype(np.int64))


def check_pairs(n: int) -> None:
    """Raise OutOfMemory if there is no room for constraints on all pairs of n labels."""
    what = f"constraints on all pairs of {n} labels"
    check_room(OF_PAIR * n * n, what, "fewer labels, or no constraints")


def table(labels: Sequence[str], given: Mapping[str | None, Sequence[str | None]]) -> Constraints:
    """Return constraints from a table of the labels that may follow each label.

    The key None stands for the beginning, the value None for the end. A label without an entry may
    be followed by any label; without an entry for None, any label may begin a sentence; without a
    value None, any label may end it. Labels that do not occur in ``labels`` are ignored.
    """
    n = len(labels)
    check_pairs(n)
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
    """Return the constraints for the argument of a user: "BIO", "IOBES" or a table."""
    if isinstance(given, str):
        return (bio if given == "BIO" else iobes)(labels)
    return table(labels, given)


def scheme_of(sequences: Iterable[Sequence[str | None]]) -> str | None:
    """Return "BIO" or "IOBES" if all label sequences keep to that scheme; None if they do not.

    Labels that are not known, and labels that mark no chunks, keep to none. Sentences of any length
    must have a valid label sequence.
    """
    pairs: set[tuple[str | None, str | None]] = set()
    labels: set[str | None] = set()
    for sequence in sequences:
        if len(sequence):
            labels.update(sequence)
            pairs.update(pairwise((None, *sequence, None)))
    names = [label for label in labels if label is not None]
    if len(names) < len(labels) or not are_chunks(names):
        return None
    for name, rules_for in (("BIO", bio), ("IOBES", iobes)):
        try:
            rules = rules_for(names)
        except ValueError:
            continue
        if rules.allows_length(1) and all(rules.allows(names, *pair) for pair in pairs):
            return name
    return None


def check_labels(rules: Constraints, labels: Sequence[str], gold: Array, starts: Array) -> None:
    """Raise BadData for the first gold label that violates the constraints.

    ``gold`` has the numbers of the labels of all tokens, -1 for unknown labels.
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
