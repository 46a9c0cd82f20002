"""Templates in compiled code: the values of columns around a position, hashed into feature keys.

A program is a list of numbers that ``template_keys`` interprets: for each template its root key,
the number of its atoms, and two numbers for each atom (column, offset). Problems with template
features call these functions, which run compiled and as plain Python.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Sequence

from laso.engine.hashing import mix

LABEL_ATOM = -1  # in place of a column: the label predicted at that offset
INSIDE_ATOM = -2  # the same, in templates that have no feature where there is no such label
BEFORE, AFTER = -2, -1000  # values of words outside the sentence, by distance
UNKNOWN = -1  # a value that did not occur in training, so that no weight has its feature key

Program = Sequence[tuple[int, Sequence[tuple[int, int]]]]
"""Templates as (root key, atoms), where an atom is (column, offset)."""


def value_at(items, column, position):
    """Return the value of a column at a position; outside the sentence, a code for the distance."""
    if position < 0:
        return BEFORE + position
    if position >= items.shape[0]:
        return AFTER - (position - items.shape[0])
    return items[position, column]


def template_keys(x, position, state, at, n, out):
    """Write the feature keys of n templates whose program begins at spec[at]; return their number.

    A template writes no key if one of its INSIDE_ATOMs is before the first label.
    """
    return combined_keys(x, position, state, at, n, out, -1)


def combined_keys(x, position, state, at, n, out, combination):
    """Do what ``template_keys`` does, for a combination of labels that is hashed last; -1: none.

    A second loop over the keys would wait for the memory that the first has just written.
    """
    spec, items, keys, written = x.spec, x.items, out.keys, 0
    for _ in range(n):
        key = spec[at]
        atoms = spec[at + 1]
        at += 2
        inside = 1
        for _ in range(atoms):
            column, offset = spec[at], spec[at + 1]
            at += 2
            if column < 0:
                value = state[-offset]
                if column == INSIDE_ATOM and value < 0:
                    inside = 0
            else:
                value = value_at(items, column, position + offset)
            key = mix(key, value)
        keys[written] = mix(key, combination) if combination >= 0 else key
        written += inside
    return written


def mix_templates(spec, at, n, keys):
    """Write the keys of n templates whose program begins at spec[at].

    A program has for each template its root key, the number of its atoms, and for each atom the
    number of its value among those that follow the n places for keys.
    """
    for i in range(n):
        key, atoms = spec[at], spec[at + 1]
        at += 2
        for _ in range(atoms):
            key = mix(key, keys[n + spec[at]])
            at += 1
        keys[i] = key


def flatten_program(program: Program) -> list[int]:
    """Return a program as the list of numbers that ``template_keys`` interprets."""
    numbers: list[int] = []
    for key, atoms in program:
        numbers += [key, len(atoms), *(number for atom in atoms for number in atom)]
    return numbers
