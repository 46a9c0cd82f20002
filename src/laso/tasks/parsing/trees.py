"""Dependency trees: checks, projectivity, and trees from the steps of a search.

A tree is a list with (head, label) for each word, in the convention of CoNLL-U: words are counted
from 1, and 0 is the artificial root. A head or label that is not known is None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from laso.engine.layout import Array
from laso.errors import BadData, quoted
from laso.locks import cached_property

Arc = tuple[int | None, str | None]
Tree = list[Arc]
LIFTED = "^"  # between the label of a lifted arc and that of the arc to its head
FEW_WORDS = 200  # of a sentence whose arcs are compared pair by pair
MOST_LIFTS = 2000  # of the arcs of one tree
MOST_WORK = 5_000_000  # lifts times words of one tree
LONGEST_NUMBER = 20  # digits of a head
FEWEST = 10  # lifted arcs of a label and a head's label for which there is a mark


def checked_tree(arcs: Sequence[Any], sentence: int) -> Tree:
    """Return arcs as a tree; other heads than the words of the sentence raise BadData."""
    n, tree = len(arcs), []
    for i, arc in enumerate(arcs, start=1):
        pair = (None, None) if arc is None else arc
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise BadData(
                f"found {quoted(arc)}, expected (head, label) or None", sentence=sentence, token=i
            )
        head: Any
        label: Any
        head, label = pair
        if isinstance(head, str):
            # int() refuses thousands of digits with an error of its own.
            short = head.isdecimal() and len(head) < LONGEST_NUMBER
            head = int(head) if short else None if head == "_" else head
        if isinstance(label, str) and label == "_":
            label = None
        whole = isinstance(head, (int, np.integer)) and not isinstance(head, bool)
        if head is not None and not (whole and 0 <= head <= n and head != i):
            raise BadData(
                f"found the head {quoted(head)}, expected another word from 1 to {n}, or 0 for "
                "the root",
                sentence=sentence,
                token=i,
            )
        if label is not None and not (isinstance(label, str) and label):
            raise BadData(
                f"found the label {quoted(label)}, expected a string", sentence=sentence, token=i
            )
        tree.append((None if head is None else int(head), None if head is None else label))
    _check_cycles(tree, sentence)
    return tree


def _check_cycles(tree: Tree, sentence: int) -> None:
    seen = [0] * (len(tree) + 1)  # the word from which a word was reached
    for start in range(1, len(tree) + 1):
        word: int | None = start
        while word and not seen[word]:
            seen[word] = start
            word = tree[word - 1][0]
        if word and seen[word] == start:
            raise BadData("found a cycle of heads", sentence=sentence, token=word)


# --------------------------------------------------------------------------- projectivity


def crossing(heads: Sequence[int | None]) -> list[int]:
    """Return the words, counted from 1, whose arcs cross others; an unknown head has none."""
    n = len(heads)
    known = [i for i, head in enumerate(heads, start=1) if head is not None]
    if not known:
        return []
    ends = np.array([heads[i - 1] for i in known], np.int64)
    words = np.array(known, np.int64)
    ends = np.where(ends == 0, n + 1, ends)  # the root follows the last word
    low, high = np.minimum(words, ends), np.maximum(words, ends)
    crosses = (_crossing_few if n <= FEW_WORDS else _crossing_many)(low, high)
    return [int(word) for word in words[crosses]]


def _crossing_few(low: Array, high: Array) -> Array:
    """Compare all pairs of arcs."""
    first = (low[:, None] < low) & (low < high[:, None]) & (high[:, None] < high)
    return np.asarray((first | first.T).any(axis=1))


def _crossing_many(low: Array, high: Array) -> Array:
    """Ask for each arc whether one begins inside and ends behind it, or the other way round."""
    n = int(high.max())
    furthest, first = np.zeros(n + 1, np.int64), np.full(n + 1, n, np.int64)
    np.maximum.at(furthest, low, high)
    np.minimum.at(first, high, low)
    behind = _largest_between(furthest, low, high) > high
    before = -_largest_between(-first, low, high) < low
    return np.asarray(behind | before)


def _largest_between(values: Array, low: Array, high: Array) -> Array:
    """Return the maximum of values[low + 1 : high] for each pair; below all if that is empty."""
    lengths = high - low - 1
    result = np.full(len(low), -(1 << 62), np.int64)
    level, size = values, 1  # level[i] is the maximum of values[i : i + size]
    while True:
        here = np.flatnonzero((lengths >= size) & (lengths < 2 * size))
        result[here] = np.maximum(level[low[here] + 1], level[high[here] - size])
        if 2 * size > len(values) or not (lengths >= 2 * size).any():
            return result
        level, size = np.maximum(level[:-size], level[size:]), 2 * size


def is_projective(heads: Sequence[int | None]) -> bool:
    """Return whether no arcs cross, those of the root included."""
    return not crossing(heads)


def projective(tree: Tree, *, marked: bool = True) -> Tree:
    """Lift arcs that cross others until none do (Nivre & Nilsson 2005).

    The shortest arc that crosses another goes to the head of its head. If ``marked``, the label of
    a lifted arc becomes label^head's label, by which ``restored`` finds its head again. Arcs that
    cross others after MOST_LIFTS, fewer in a very long sentence, become unknown.
    """
    heads = [head for head, _ in tree]
    lifted: dict[int, int] = {}  # the head before
    crosses = crossing(heads)
    for _ in range(min(MOST_LIFTS, MOST_WORK // max(1, len(heads)))):
        # Not to the artificial root: another arc that the same one crosses can be lifted instead.
        can = [i for i in crosses if heads[i - 1] and heads[(heads[i - 1] or 0) - 1]]
        if not can:
            break
        word = min(can, key=lambda i: (abs(i - (heads[i - 1] or 0)), i))
        above = heads[word - 1] or 0
        lifted.setdefault(word, above)
        heads[word - 1] = heads[above - 1]
        crosses = crossing(heads)
    arcs: Tree = []
    for i, (head, (_, label)) in enumerate(zip(heads, tree, strict=True), start=1):
        if marked and i in lifted and label is not None:
            above_label = tree[lifted[i] - 1][1]
            label = label if above_label is None else f"{label}{LIFTED}{above_label}"
        arcs.append((head, label))
    left = {*crosses}
    return [(None, None) if i in left else arc for i, arc in enumerate(arcs, start=1)]


def depth(heads: Sequence[int | None]) -> int:
    """Return the number of words that a stack must hold for a projective tree.

    A word is there until its head has come and all the words below it have.
    """
    n = len(heads)
    last = list(range(n + 2))  # the last word of the subtree
    for word in range(n, 0, -1):
        head = heads[word - 1]
        if head and head < word:
            last[head] = max(last[head], last[word])
    change = [0] * (n + 3)
    for word, head in enumerate(heads, start=1):
        change[word] += 1
        change[max(last[word], n + 1 if head == 0 else head or 0) + 1] -= 1
    return int(np.cumsum(change).max())


def unmarked(label: str) -> str:
    """Return the label of an arc without its mark."""
    return label.partition(LIFTED)[0]


def restored(tree: Tree) -> Tree:
    """Undo ``projective``: a lifted arc goes to the nearest word below that has the label told."""
    if not any(label is not None and LIFTED in label for _, label in tree):
        return tree
    arcs = list(tree)
    children: dict[int, list[int]] = {}
    for i, (head, _) in enumerate(tree, start=1):
        children.setdefault(head or 0, []).append(i)
    for i, (head, label) in enumerate(tree, start=1):
        if label is None or LIFTED not in label or head is None:
            continue
        relation, _, wanted = label.rpartition(LIFTED)
        lower = _below(children, arcs, head, i, wanted) if head else None
        arcs[i - 1] = (head if lower is None else lower, relation)
    return [(head, None if label is None else unmarked(label)) for head, label in arcs]


def _below(
    children: dict[int, list[int]], tree: Tree, head: int, word: int, wanted: str
) -> int | None:
    """Return the nearest word below a head, but not below ``word``, that has the label."""
    level = [head]
    while level:
        level = [child for one in level for child in children.get(one, []) if child != word]
        for child in level:
            if unmarked(tree[child - 1][1] or "") == wanted and not _is_below(tree, child, word):
                return child
    return None


def _is_below(tree: Tree, child: int, word: int) -> bool:
    """Return whether a word is above another; arcs put back before may have brought it there."""
    at: int | None = child
    while at and at != word:
        at = tree[at - 1][0]
    return bool(at)


class Coverage(NamedTuple):
    """How many trees and arcs of the training data a transition system reaches as they are."""

    trees: int
    projective_trees: int
    arcs: int
    lifted_arcs: int


@dataclass(frozen=True)
class Trees:
    """The gold trees of many sentences, and the projective trees to learn from."""

    gold: list[Tree]
    marked: bool = True

    @cached_property
    def projective(self) -> list[Tree]:
        """The trees without crossing arcs; rare marks are left out, since each is an operator."""
        crossing_trees = {
            i: projective(tree, marked=self.marked)
            for i, tree in enumerate(self.gold)
            if not is_projective([head for head, _ in tree])
        }
        counts = Counter(label for tree in crossing_trees.values() for _, label in tree)
        for i, tree in crossing_trees.items():
            crossing_trees[i] = [
                (head, label if label is None or counts[label] >= FEWEST else unmarked(label))
                for head, label in tree
            ]
        return [crossing_trees.get(i, tree) for i, tree in enumerate(self.gold)]

    @property
    def coverage(self) -> Coverage:
        """How much of the trees is projective."""
        pairs = list(zip(self.gold, self.projective, strict=True))
        changed = [sum(a[0] != b[0] for a, b in zip(*pair, strict=True)) for pair in pairs]
        whole = sum(n == 0 for n in changed)
        return Coverage(len(pairs), whole, sum(map(len, self.gold)), sum(changed))

    def has_single_roots(self) -> bool:
        """Return whether no tree has more than one word below the artificial root."""
        return all(sum(head == 0 for head, _ in tree) <= 1 for tree in self.projective)

    def operators(self) -> Counter[str]:
        """Return how often each operator adds an arc, by its name."""
        counts: Counter[str] = Counter()
        for tree in self.projective:
            for i, (head, label) in enumerate(tree, start=1):
                if head is not None and label is not None:
                    side = "root" if head == 0 else "left" if head > i else "right"
                    counts[f"{side} {label}"] += 1
        return counts
