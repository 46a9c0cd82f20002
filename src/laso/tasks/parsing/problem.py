"""Unlabelled dependency parsing as search: the arc-hybrid transition system, step by step.

State: the next word of the buffer, the size of the stack, the stack, and the heads so far.
The artificial root stands at the end of the buffer. Every path has two steps for each word.

SHIFT: the next word goes from the buffer to the stack
    Validity   the buffer has a word
    Goodness   its head is not below the stack's top, and it is not the head of a word in the stack
    Action     push the next word
LEFT: the next word (or the root) becomes the head of the stack's top
    Validity   the stack has a word
    Goodness   the top's head is neither the word below it nor later in the buffer, and no word of
               the buffer has the top as its head
    Action     pop the top
RIGHT: the word below the stack's top becomes the head of the top
    Validity   the stack has two words
    Goodness   no word of the buffer (nor the root) is the top's head or has the top as its head
    Action     pop the top

Goodness is the dynamic oracle of Goldberg & Nivre (2013): a step is good if it loses no arc of the
gold tree, and several paths may lead to one tree. It is exact for projective trees. An output
gives the head of each word, counted from 0, or ROOT.

Features are templates as in ``tagging``: lists of atoms (place, column), where a place is the top
of the stack, the front of the buffer, one of their children, ...
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from laso.engine.hashing import mix
from laso.engine.layout import BLOCKS, MAX_FEATURES, MAX_GROUPS, STATE_SIZE, STEPS, Array
from laso.engine.problem import CompiledProblem

SHIFT, LEFT, RIGHT, N_LABELS = 0, 1, 2, 3
ROOT, NO_HEAD, NOTHING = -1, -2, -3
FRONT, SIZE, STACK = 0, 1, 2  # offsets in a state; the heads follow the stack

# Places of template atoms; children are the outermost ones on that side.
TOP, SECOND, THIRD, NEXT, AFTER, TOP_LEFT, TOP_RIGHT, SECOND_LEFT, SECOND_RIGHT, NEXT_LEFT = range(
    10
)

Template = Sequence[tuple[int, int]]


# --------------------------------------------------------------------------- the transition system


def can(x, state, label):
    """Return whether a transition is valid."""
    if label == SHIFT:
        return state[FRONT] < x.items.shape[0]
    return state[SIZE] > (1 if label == RIGHT else 0)


def arcs_lost(x, y, state, label):
    """Return the number of gold arcs that a valid step loses (Goldberg & Nivre 2013)."""
    n, front, top = x.items.shape[0], state[FRONT], STACK + state[SIZE] - 1
    lost = 0
    if label == SHIFT:
        for i in range(STACK, top + 1):
            lost += y[state[i]] == front
            lost += i < top and y[front] == state[i]
        return lost
    word = state[top]
    for dependent in range(front, n):
        lost += y[dependent] == word
    if label == RIGHT:
        return lost + (y[word] >= front or y[word] == ROOT)
    if top > STACK:
        lost += y[word] == state[top - 1]
    return lost + (y[word] > front or (y[word] == ROOT and front < n))


def child(x, state, word, step):
    """Return the outermost child so far, from the left (step 1) or the right (step -1)."""
    n = x.items.shape[0]
    at = 0 if step > 0 else n - 1
    while at != word:
        if state[STACK + n + at] == word:
            return at
        at += step
    return NOTHING


def word_at(x, state, place):
    """Return the word at a place, ROOT, or NOTHING."""
    n, front, size = x.items.shape[0], state[FRONT], state[SIZE]
    if place in (NEXT, AFTER):
        word = front + place - NEXT
        if word < n:
            return word
        return ROOT if word == n else NOTHING
    if place == NEXT_LEFT:
        return child(x, state, front, 1) if front < n else NOTHING
    down = place
    if place >= SECOND_LEFT:
        down = SECOND
    elif place >= TOP_LEFT:
        down = TOP
    if size <= down:
        return NOTHING
    word = state[STACK + size - 1 - down]
    if place in (TOP_LEFT, SECOND_LEFT):
        return child(x, state, word, 1)
    if place in (TOP_RIGHT, SECOND_RIGHT):
        return child(x, state, word, -1)
    return word


class Parsing(CompiledProblem):
    """Find the head of every word of a sentence."""

    @staticmethod
    def limits(x, out):
        n = x.items.shape[0]
        out[STATE_SIZE] = STACK + 2 * n
        out[MAX_GROUPS] = 1
        out[MAX_FEATURES] = x.spec[0]
        out[BLOCKS] = 1
        out[STEPS] = 2 * n

    @staticmethod
    def initial(x, state):
        n = x.items.shape[0]
        state[FRONT] = state[SIZE] = 0
        for i in range(n):
            state[STACK + i] = 0
            state[STACK + n + i] = NO_HEAD

    @staticmethod
    def features(x, state, group, out):
        spec, items, keys = x.spec, x.items, out.keys
        at = 1
        for i in range(spec[0]):
            key = i
            atoms = spec[at]
            at += 1
            for _ in range(atoms):
                word = word_at(x, state, spec[at])
                key = mix(key, items[word, spec[at + 1]] if word >= 0 else word)
                at += 2
            keys[i] = key
        return spec[0]

    @staticmethod
    def allowed(x, state, group, label):
        return can(x, state, label)

    @staticmethod
    def apply(x, state, group, label, new):
        n = x.items.shape[0]
        for i in range(STACK + 2 * n):
            new[i] = state[i]
        front, size = state[FRONT], state[SIZE]
        if label == SHIFT:
            new[STACK + size] = front
            new[FRONT] = front + 1
            new[SIZE] = size + 1
            return
        word = state[STACK + size - 1]
        if label == RIGHT:
            head = state[STACK + size - 2]
        else:
            head = front if front < n else ROOT
        new[STACK + n + word] = head
        new[STACK + size - 1] = 0
        new[SIZE] = size - 1

    @staticmethod
    def is_goal(x, state):
        return state[FRONT] == x.items.shape[0] and state[SIZE] == 0

    @staticmethod
    def is_good(x, y, state, group, label):
        return can(x, state, label) and arcs_lost(x, y, state, label) == 0

    @staticmethod
    def loss(x, y, state, group, label, was_good, good):
        return float(arcs_lost(x, y, state, label))

    @staticmethod
    def key(x, state, group, label):
        return 2 * state[FRONT] - state[SIZE] + 1  # shifts and pops so far, and this step


# --------------------------------------------------------------------------- input and output


def spec_for(templates: Iterable[Template]) -> Array:
    """Return the constants of an input: templates as a program."""
    templates = list(templates)
    program = [len(templates)]
    for atoms in templates:
        program += [len(atoms), *(number for atom in atoms for number in atom)]
    return np.array(program, np.int64)


def usual_templates(columns: int) -> list[Template]:
    """Return default templates: single places in each column, and tags of several places.

    Tags are in the last column.
    """
    last = columns - 1
    together = [
        (TOP, NEXT),
        (SECOND, TOP),
        (SECOND, TOP, NEXT),
        (THIRD, SECOND, TOP),
        (TOP, NEXT, AFTER),
        (TOP, TOP_LEFT, NEXT),
        (TOP, TOP_RIGHT, NEXT),
        (SECOND, SECOND_RIGHT, TOP),
        (SECOND, SECOND_LEFT, TOP),
        (TOP, NEXT, NEXT_LEFT),
    ]
    alone = [[(place, c)] for place in (TOP, SECOND, NEXT, AFTER) for c in range(columns)]
    return [*alone, [(TOP, 0), (NEXT, 0)], *([(place, last) for place in t] for t in together)]


def heads_of(state: Sequence[int], n: int) -> list[int]:
    """Return the heads of n words in a state; at a goal, every word has one."""
    return [int(head) for head in state[STACK + n : STACK + 2 * n]]


def heads_after(labels: Iterable[int], n: int) -> list[int]:
    """Return the heads of n words, given the labels of a path's steps."""
    front, heads = 0, [NO_HEAD] * n
    stack: list[int] = []
    for label in labels:
        if label == SHIFT:
            stack.append(front)
            front += 1
        else:
            word = stack.pop()
            heads[word] = stack[-1] if label == RIGHT else front if front < n else ROOT
    return heads


def is_projective(heads: Sequence[int]) -> bool:
    """Return whether no arcs cross, those of the root included, which follows the last word."""
    n = len(heads)
    arcs = [sorted((word, head if head != ROOT else n)) for word, head in enumerate(heads)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)
