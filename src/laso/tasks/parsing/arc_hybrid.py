"""The arc-hybrid transition system (Kuhlmann et al. 2011), step by step.

Every path has two steps for each word.

SHIFT: the next word goes from the buffer to the stack
    Validity   the buffer has a word, and the stack has room
    Goodness   its head is not below the stack's top, and it is not the head of a word in the stack
    Action     push the next word
LEFT label: the next word becomes the head of the stack's top
    Validity   the buffer and the stack have a word each
    Goodness   this arc is gold, and no word of the buffer has the top as its head
    Action     pop the top
RIGHT label: the word below the stack's top becomes the head of the top
    Validity   the stack has two words
    Goodness   this arc is gold, and no word of the buffer has the top as its head
    Action     pop the top
ROOT label: the artificial root becomes the head of the stack's top
    Validity   the buffer is empty, the stack has a word: only one, if trees have a single root
    Goodness   this arc is gold
    Action     pop the top

Goodness is the dynamic oracle of Goldberg & Nivre (2013): a step is good if it loses no gold arc,
and several paths may lead to one tree. It is exact for projective trees. An arc of an unknown head
is gold whatever it is, and so is the label of an unknown label. With the static oracle SHIFT is
good only if no other step is.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from laso.tasks.parsing.configuration import (
    FRONT,
    FRONT_RECORD,
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
    if kind == SHIFT:
        return can_shift(x, state)
    if kind == LEFT:
        return state[FRONT] < x.items.shape[0] and state[SIZE] > 0
    if kind == RIGHT:
        return state[SIZE] > 1
    return can_root(x, state)


def new_head(x, state, kind):
    """Return the word that becomes the head of the stack's top."""
    return state[top(state) - WIDTH] if kind == RIGHT else state[FRONT]


def shift_loses(x, y, state):
    """Return the number of gold arcs that SHIFT loses."""
    n, front, lost = x.items.shape[0], state[FRONT], 0
    head, last = y[HEADS * n + front], top(state)
    for at in range(STACK, last + 1, WIDTH):
        lost += y[HEADS * n + state[at]] == front
        lost += at < last and head == state[at]
    return lost


def arcs_lost(x, y, state, kind, label):
    """Return the number of gold arcs that a valid step loses (Goldberg & Nivre 2013).

    An arc with another label is lost, too.
    """
    if kind == SHIFT:
        return shift_loses(x, y, state)
    n, front, at = x.items.shape[0], state[FRONT], top(state)
    word, lost = state[at], 0
    for dependent in range(front, n):
        lost += y[HEADS * n + dependent] == word
    gold = y[HEADS * n + word]
    if gold == new_head(x, state, kind):
        return lost + (not is_arc(n, y, word, gold, label))
    # Another head that was still within reach: it is below the top, or in the buffer.
    return lost + (gold >= front or (kind != RIGHT and at > STACK and gold == state[at - WIDTH]))


def can_be_popped(x, y, state):
    """Return whether an arc to the stack's top is good, whatever its label."""
    n, at = x.items.shape[0], top(state)
    head = y[HEADS * n + state[at]]
    if not is_complete(n, y, state[at], state[FRONT]):
        return False
    if head == UNKNOWN or head == state[FRONT]:
        return True
    return state[SIZE] > 1 and head == state[at - WIDTH]


class ArcHybrid(Transitions):
    """Find the head of every word of a sentence, and the label of the arc."""

    @staticmethod
    def allowed(x, state, group, label):
        return can(x, state, kind_of(x, label))

    @staticmethod
    def apply(x, state, group, label, new):
        kind, arc_label = kind_of(x, label), arc_label_of(x, label)
        if kind == SHIFT:
            push(state, new)
            return
        pop(state, new)
        if kind == RIGHT:
            add_right(state, top(state), new, top(new), arc_label)
        else:
            add_left(state, top(state), new, FRONT_RECORD, arc_label)

    @staticmethod
    def is_good(x, y, state, group, label):
        n, kind = x.items.shape[0], kind_of(x, label)
        if not can(x, state, kind):
            return False
        if kind != SHIFT:
            word = state[top(state)]
            if not is_complete(n, y, word, state[FRONT]):
                return False
            return is_arc(n, y, word, new_head(x, state, kind), arc_label_of(x, label))
        size = state[SIZE]
        if x.spec[SINGLE_ROOT] and size > 0 and y[HEADS * n + state[FRONT]] == n:
            return False
        if x.spec[STATIC] and size > 0 and can_be_popped(x, y, state):
            return False
        return shift_loses(x, y, state) == 0

    @staticmethod
    def loss(x, y, state, group, label, was_good, good):
        return float(arcs_lost(x, y, state, kind_of(x, label), arc_label_of(x, label)))


class DenseArcHybrid(DenseTransitions, ArcHybrid):
    """The same for words that have dense vectors, too."""
