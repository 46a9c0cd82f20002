"""The arc-eager transition system (Nivre 2003), with the root at the end of the buffer.

Every path has two steps for each word.

SHIFT: the next word goes from the buffer to the stack
    Validity   the buffer has a word, and the stack has room
    Goodness   neither is its head in the stack, nor is it the head of a word in the stack
    Action     push the next word
LEFT label: the next word becomes the head of the stack's top
    Validity   the buffer has a word, and the top has no head
    Goodness   this arc is gold, and no word of the buffer has the top as its head
    Action     pop the top
RIGHT label: the stack's top becomes the head of the next word
    Validity   the buffer and the stack have a word each, and the stack has room
    Goodness   this arc is gold, and the next word is not the head of a word in the stack
    Action     push the next word
RIGHT label, when the buffer is empty: the word below the stack's top becomes the head of the top
    Validity   the stack has two words, and the top has no head
    Goodness   this arc is gold
    Action     pop the top
REDUCE: the stack's top has all its children
    Validity   the top has a head
    Goodness   no word of the buffer has the top as its head
    Action     pop the top
ROOT label: the artificial root becomes the head of the stack's top
    Validity   the buffer is empty, the top has no head: it is the last word if roots are single
    Goodness   this arc is gold
    Action     pop the top

Goodness is the dynamic oracle of Goldberg & Nivre (2012), which does not count on the second kind
of RIGHT: that one is there so that every configuration leads to a tree. With the static oracle
SHIFT is good only if no other step is.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from laso.tasks.parsing.configuration import (
    DEEPEST,
    FRONT,
    FRONT_RECORD,
    LABEL,
    NOTHING,
    SINGLE_ROOT,
    SIZE,
    STACK,
    STATIC,
    WIDTH,
    add_left,
    add_right,
    pop,
    push,
    top,
)
from laso.tasks.parsing.operators import (
    HEADS,
    LEFT,
    REDUCE,
    RIGHT,
    SHIFT,
    UNKNOWN,
    arc_label_of,
    is_arc,
    is_complete,
    kind_of,
)
from laso.tasks.parsing.transitions import DenseTransitions, Transitions, can_root, can_shift


def can(x, state, kind):
    """Return whether an operator of this kind is valid."""
    n, front, size = x.items.shape[0], state[FRONT], state[SIZE]
    if kind == SHIFT:
        return can_shift(x, state)
    if size == 0:
        return False
    headless = state[top(state) + LABEL] == NOTHING
    if kind == REDUCE:
        return not headless
    if kind == RIGHT:
        return (front < n and size < DEEPEST) or (front == n and headless and size > 1)
    if kind == LEFT:
        return headless and front < n
    return headless and can_root(x, state)


def word_of(x, state, kind):
    """Return the word that gets a head."""
    if kind == RIGHT and state[FRONT] < x.items.shape[0]:
        return state[FRONT]
    return state[top(state)]


def head_of(x, state, kind):
    """Return the word that becomes a head."""
    if kind != RIGHT:
        return state[FRONT]
    return state[top(state)] if state[FRONT] < x.items.shape[0] else state[top(state) - WIDTH]


def has_dependent(x, y, state):
    """Return whether a word of the stack without a head has the next word as its gold head."""
    n, has = x.items.shape[0], False
    for at in range(STACK, top(state) + 1, WIDTH):
        has |= y[HEADS * n + state[at]] == state[FRONT] and state[at + LABEL] == NOTHING
    return has


def has_head(x, y, state):
    """Return whether the gold head of the next word is in the stack."""
    n, has = x.items.shape[0], False
    for at in range(STACK, top(state) + 1, WIDTH):
        has |= y[HEADS * n + state[FRONT]] == state[at]
    return has


def keeps_all(x, y, state, kind):
    """Return whether a valid step loses no gold arc but the one that it may replace."""
    n, front = x.items.shape[0], state[FRONT]
    if kind == SHIFT:
        rooted = y[HEADS * n + front] == n and x.spec[SINGLE_ROOT] and state[SIZE] > 0
        return not rooted and not has_head(x, y, state) and not has_dependent(x, y, state)
    if kind == RIGHT and front < n:
        return not has_dependent(x, y, state)
    return is_complete(n, y, state[top(state)], front)


def has_other(x, y, state):
    """Return whether another step than SHIFT is good, whatever its label."""
    n = x.items.shape[0]
    for kind in range(LEFT, REDUCE + 1):
        if can(x, state, kind) and keeps_all(x, y, state, kind):
            if kind == REDUCE:
                return True
            gold = y[HEADS * n + word_of(x, state, kind)]
            if gold == UNKNOWN or gold == head_of(x, state, kind):
                return True
    return False


class ArcEager(Transitions):
    """Find the head of every word of a sentence, and the label of the arc."""

    @staticmethod
    def allowed(x, state, group, label):
        return can(x, state, kind_of(x, label))

    @staticmethod
    def apply(x, state, group, label, new):
        kind, arc_label = kind_of(x, label), arc_label_of(x, label)
        if kind == SHIFT:
            push(state, new)
        elif kind == RIGHT and state[FRONT] < x.items.shape[0]:
            push(state, new)
            new[top(new) + LABEL] = arc_label
            add_right(state, FRONT_RECORD, new, top(state), arc_label)
        else:
            pop(state, new)
            if kind == LEFT:
                add_left(state, top(state), new, FRONT_RECORD, arc_label)
            elif kind == RIGHT:
                add_right(state, top(state), new, top(new), arc_label)

    @staticmethod
    def is_good(x, y, state, group, label):
        n, kind = x.items.shape[0], kind_of(x, label)
        if not can(x, state, kind) or not keeps_all(x, y, state, kind):
            return False
        if kind == SHIFT:
            return not (x.spec[STATIC] and has_other(x, y, state))
        if kind == REDUCE:
            return True
        head = head_of(x, state, kind)
        return is_arc(n, y, word_of(x, state, kind), head, arc_label_of(x, label))


class DenseArcEager(DenseTransitions, ArcEager):
    """The same for words that have dense vectors, too."""
