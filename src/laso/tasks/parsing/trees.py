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

from laso.errors import BadData, quoted
from laso.locks import cached_property

Arc = tuple[int | None, str | None]
Tree = list[Arc]
LIFTED = "^"  # between the label of a lifted arc and that of the arc to its head
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
            head = int(head) if head.isdecimal() else None if head == "_" else head
        if label == "_":
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
    ends = np.array([heads[i - 1] for i in known], np.int64)
    words = np.array(known, np.int64)
    ends = np.where(ends == 0, n + 1, ends)  # the root follows the last word
    low, high = np.minimum(words, ends), np.maximum(words, ends)
    first = (low[:, None] < low) & (low < high[:, None]) & (high[:, None] < high)
    crosses = (first | first.T).any(axis=1)
    return [int(word) for word in words[crosses]]


def is_projective(heads: Sequence[int | None]) -> bool:
    """Return whether no arcs cross, those of the root included."""
    return not crossing(heads)


def projective(tree: Tree, *, marked: bool = True) -> Tree:
    """Lift arcs that cross others until none do (Nivre & Nilsson 2005).

    The shortest arc that crosses another goes to the head of its head. If ``marked``, the label of
    a lifted arc becomes label^head's label, by which ``restored`` finds its head again.
    """
    heads = [head for head, _ in tree]
    lifted: dict[int, int] = {}  # the head before
    crosses = crossing(heads)
    while crosses:
        # Not to the artificial root: another arc that the same one crosses can be lifted instead.
        can = [i for i in crosses if heads[i - 1] and heads[(heads[i - 1] or 0) - 1]]
        if not can:
            break
        word = min(can, key=lambda i: (abs(i - (heads[i - 1] or 0)), i))
        above = heads[word - 1] or 0
        lifted.setdefault(word, above)
        heads[word - 1] = heads[above - 1]
        crosses = crossing(heads)
    made: Tree = []
    for i, (head, (_, label)) in enumerate(zip(heads, tree, strict=True), start=1):
        if marked and i in lifted and label is not None:
            above_label = tree[lifted[i] - 1][1]
            label = label if above_label is None else f"{label}{LIFTED}{above_label}"
        made.append((head, label))
    return [(None, None) if i in crosses else arc for i, arc in enumerate(made, start=1)]


def unmarked(label: str) -> str:
    """Return the label of an arc without its mark."""
    return label.partition(LIFTED)[0]


def restored(tree: Tree) -> Tree:
    """Undo ``projective``: a lifted arc goes to the nearest word below that has the label told."""
    if not any(label is not None and LIFTED in label for _, label in tree):
        return tree
    made = list(tree)
    children: dict[int, list[int]] = {}
    for i, (head, _) in enumerate(tree, start=1):
        children.setdefault(head or 0, []).append(i)
    for i, (head, label) in enumerate(tree, start=1):
        if label is None or LIFTED not in label or head is None:
            continue
        own, _, wanted = label.rpartition(LIFTED)
        found = _below(children, made, head, i, wanted) if head else None
        made[i - 1] = (head if found is None else found, own)
    return [(head, None if label is None else unmarked(label)) for head, label in made]


def _below(
    children: dict[int, list[int]], tree: Tree, head: int, word: int, wanted: str
) -> int | None:
    """Return the nearest word below a head, but not below ``word``, that has the label."""
    level = [head]
    while level:
        level = [child for one in level for child in children.get(one, []) if child != word]
        for child in level:
            if unmarked(tree[child - 1][1] or "") == wanted:
                return child
    return None


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
