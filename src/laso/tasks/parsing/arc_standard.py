"""The arc-standard transition system (Nivre 2004), step by step.

Every path has two steps for each word.

SHIFT: the next word goes from the buffer to the stack
    Validity   the buffer has a word, and the stack has room
    Goodness   no other step is good
    Action     push the next word
LEFT label: the stack's top becomes the head of the word below it
    Validity   the stack has two words
    Goodness   this arc is gold, and no word of the buffer has the lower word as its head
    Action     remove the lower word
RIGHT label: the word below the stack's top becomes the head of the top
    Validity   the stack has two words
    Goodness   this arc is gold, and no word of the buffer has the top as its head
    Action     pop the top
ROOT label: the artificial root becomes the head of the stack's top
    Validity   the buffer is empty, the stack has a word: only one, if trees have a single root
    Goodness   this arc is gold
    Action     pop the top

The oracle is static, since losses of arcs are not independent of each other in this system: arcs
are added as soon as they can be. An arc of an unknown head is gold unless it makes another
impossible.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from laso.tasks.parsing.configuration import (
    FRONT,
    SIZE,
    STACK,
    WIDTH,
    add_left,
    add_right,
    copy_rows,
    pop,
    push,
    top,
)
from laso.tasks.parsing.operators import (
    HEADS,
    LEFT,
    RIGHT,
    ROOT_ARC,
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
    if kind == ROOT_ARC:
        return can_root(x, state)
    return state[SIZE] > 1


def dependent_of(state, kind):
    """Return the offset of the record of the word that gets a head."""
    return top(state) - WIDTH if kind == LEFT else top(state)


def head_of(x, state, kind):
    """Return the word that becomes a head."""
    if kind == ROOT_ARC:
        return x.items.shape[0]
    return state[top(state)] if kind == LEFT else state[top(state) - WIDTH]


def may_leave(x, y, state, kind):
    """Return whether the word of a valid arc is not needed any more, as a head of known arcs."""
    n, word = x.items.shape[0], state[dependent_of(state, kind)]
    if not is_complete(n, y, word, state[FRONT]):
        return False
    is_head = False
    for at in range(STACK, top(state) + 1, WIDTH):
        is_head |= y[HEADS * n + state[at]] == word
    return not is_head


def can_be_reduced(x, y, state):
    """Return whether an arc is good, whatever its label."""
    n = x.items.shape[0]
    for kind in range(LEFT, ROOT_ARC + 1):
        if can(x, state, kind) and may_leave(x, y, state, kind):
            gold = y[HEADS * n + state[dependent_of(state, kind)]]
            if gold == UNKNOWN or gold == head_of(x, state, kind):
                return True
    return False


class ArcStandard(Transitions):
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
        elif kind == LEFT:
            copy_rows(state[top(state) :], new[top(new) :], WIDTH)
            add_left(state, top(state) - WIDTH, new, top(new), arc_label)

    @staticmethod
    def is_good(x, y, state, group, label):
        n, kind = x.items.shape[0], kind_of(x, label)
        if not can(x, state, kind):
            return False
        if kind == SHIFT:
            return not can_be_reduced(x, y, state)
        word = state[dependent_of(state, kind)]
        arc = is_arc(n, y, word, head_of(x, state, kind), arc_label_of(x, label))
        return arc and may_leave(x, y, state, kind)


class DenseArcStandard(DenseTransitions, ArcStandard):
    """The same for words that have dense vectors, too."""
