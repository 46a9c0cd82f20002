"""Tagging and parsing in one search: arc-eager, with a step that tags a word.

Every path has three steps for each word: those of arc-eager, and

TAG tag: the first word that has no tag gets one
    Validity   it is the next word of the buffer, or one of the AHEAD words after that
    Goodness   this tag is gold
    Action     write the tag

No other step is valid as long as one of these words has no tag. If AHEAD is 2, templates see as
many tags as in a pipeline, since none looks further; but each tag is one hypothesis of several.
The number of words with tags, and the tags, follow the largest stack in a row.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from laso.engine.layout import SAME_LABEL, STATE_SIZE, STEPS
from laso.tasks.parsing.arc_eager import ArcEager, can, is_good_step, write_successor
from laso.tasks.parsing.configuration import (
    AHEAD,
    FRONT,
    LENGTH,
    N_PARTS,
    SIZE,
    STACK,
    WIDTH,
    copy_rows,
    n_tagged,
    own_group,
    state_size,
    write_initial,
)
from laso.tasks.parsing.operators import TAG, TAGS, UNKNOWN, arc_label_of, kind_of
from laso.tasks.parsing.transitions import write_limits


def awaits_tag(x, state):
    """Return whether the next step tags a word."""
    return n_tagged(state) < min(state[LENGTH], state[FRONT] + 1 + x.spec[AHEAD])


def copy_tags(state, new):
    """Copy the tags of a configuration."""
    at = state_size(state[LENGTH])
    for i in range(at, at + 1 + state[at]):
        new[i] = state[i]


class TaggedArcEager(ArcEager):
    """Find the tag and the head of every word of a sentence, and the label of the arc."""

    @staticmethod
    def limits(x, out):
        write_limits(x, out)
        n = x.items.shape[0]
        out[STATE_SIZE] = state_size(n) + 1 + n
        out[STEPS] = 3 * n

    @staticmethod
    def initial(x, state):
        write_initial(state, x.items.shape[0])
        state[state_size(x.items.shape[0])] = 0

    @staticmethod
    def groups(x, state, out):
        out[0] = own_group(x) + int(awaits_tag(x, state))
        return 1

    @staticmethod
    def factors(x, state, group, i):
        return (i if group == own_group(x) and i < x.spec[N_PARTS] - 1 else -1), SAME_LABEL

    @staticmethod
    def allowed(x, state, group, label):
        kind = kind_of(x, label)
        if kind == TAG or awaits_tag(x, state):
            return kind == TAG and awaits_tag(x, state)
        return can(x, state, kind)

    @staticmethod
    def apply(x, state, group, label, new):
        if kind_of(x, label) != TAG:
            write_successor(x, state, label, new)
            copy_tags(state, new)
            return
        copy_rows(state, new, STACK + state[SIZE] * WIDTH)
        copy_tags(state, new)
        at = state_size(state[LENGTH])
        new[at + 1 + state[at]] = arc_label_of(x, label)
        new[at] = state[at] + 1

    @staticmethod
    def is_good(x, y, state, group, label):
        if kind_of(x, label) != TAG:
            return not awaits_tag(x, state) and is_good_step(x, y, state, label)
        if not awaits_tag(x, state):
            return False
        gold = y[TAGS * x.items.shape[0] + n_tagged(state)]
        return gold == UNKNOWN or gold == arc_label_of(x, label)
