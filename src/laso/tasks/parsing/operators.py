"""Operators of all transition systems: their kinds and labels, and gold trees as numbers.

A gold output has three numbers for each word: its head (the number of words stands for the
artificial root), the label of its arc, and its last child.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from laso.tasks.parsing.configuration import OPERATORS

SHIFT, LEFT, RIGHT, ROOT_ARC, REDUCE = range(5)  # kinds of operators
HEADS, LABELS, LAST_CHILD, PARTS = range(4)  # parts of an output, each with a number per word
UNKNOWN = -1  # of heads and labels


def kind_of(x, label):
    """Return the kind of an operator."""
    return x.spec[x.spec[OPERATORS] + 2 * label]


def arc_label_of(x, label):
    """Return the number of the arc label of an operator."""
    return x.spec[x.spec[OPERATORS] + 2 * label + 1]


def is_arc(n, y, word, head, label):
    """Return whether an arc is gold, or unknown."""
    if y[HEADS * n + word] == UNKNOWN:
        return True
    if y[LABELS * n + word] == UNKNOWN:
        return y[HEADS * n + word] == head
    return y[HEADS * n + word] == head and y[LABELS * n + word] == label


def is_complete(n, y, word, front):
    """Return whether no word of the buffer has this one as its gold head."""
    return y[LAST_CHILD * n + word] < front
