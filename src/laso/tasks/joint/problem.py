"""Several layers of labels as search (section 4.2): word by word, a label of each layer at once.

State: the number of words labelled and the last labels of each layer. Operator: the label is that
of the first layer, the group numbers the labels of the others (as digits, the last one lowest).
    Validity   each layer's label may follow its last one, and pairs of layers agree
    Goodness   all are the gold labels; where some are unknown, they agree with the known ones
    Action     they join the histories

The score of a step is a sum of factors. A factor connects some layers (the factor ``EACH`` scores
each layer separately) and has templates as in tagging. The labels of all its layers but one select
the weight row, the remaining label selects the weight in the row. So a factor of a single layer is
computed once a state, independently of the other layers; only the factor of all layers belongs to
the group itself. Rows have the labels of the first layer, then those of the others. The first layer
should be the one with the most labels, since they are scored at once.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import prod

import numpy as np

from laso.engine.costs import cost_of
from laso.engine.layout import (
    BLOCKS,
    FACTORS,
    FORM,
    KEY_OF_GROUP,
    MAX_FEATURES,
    MAX_GROUPS,
    MAX_LABELS,
    SAME_LABEL,
    STATE_SIZE,
    VECTORS,
    Array,
)
from laso.engine.problem import CompiledProblem
from laso.features.windows import LABEL_ATOM, combined_keys, flatten_program
from laso.tasks.joint.layers import JointTemplate, Layers

# The constants at the head of spec; tables and programs follow them.
(
    N_LAYERS,
    PREFIXES,  # the offset of the label combinations of all layers but the first
    N_PREFIXES,
    ORDER,  # of the histories
    N_FACTOR_GROUPS,  # the number of groups that serve only as factors
    N_BLOCKS,  # of a word
    MOST,  # the largest number of features of one factor
    FACTOR_TABLE,  # the offset of the table of factors
    OWN,  # the offset of the factor of all layers, which the groups themselves are
    FACTOR_OF_GROUP,  # the offset of the factors' offsets, by group
    STEP_FACTORS,  # the offset of the table of a step's further factors
    N_STEP_FACTORS,
    PAIRS,  # the offset of the table of pairs of layers with constraints
    N_PAIRS,
    SETS,  # the offset of the sets of good labels for partially labelled words
    N_ROW,  # the number of labels of all layers
    CHOICES,  # the offset of the offsets of the first layer's labels, by group; 0: any label
    FACTOR_LIST,  # the offset of the groups and labels of all factors, by group; 0: none
    EACH_BLOCK,  # the number of a word's blocks before that of the factor EACH; -1: it has none
    HEAD,
) = range(20)
# The table of layers follows the head. For each layer: the number of its labels, their offset in a
# row, the stride of its digit in a group, and the constraints (see tagging).
SIZE, PLACE, STRIDE, FOLLOW, HORIZON, LAYER = range(6)
# For each factor: its first group, the number of its groups, the end of its blocks within a word,
# its programs, and the stride of each layer's digit in its groups.
FIRST, COMBINATIONS, UNTIL, STATIC, N_STATIC, DYNAMIC, N_DYNAMIC, DIGITS = range(8)


def digit(spec, prefix, layer):
    """Return the label of a layer other than the first, given the group without its offset."""
    if spec[N_LAYERS] == 2:
        return prefix
    at = HEAD + LAYER * layer
    return (prefix // spec[at + STRIDE]) % spec[at + SIZE]


def may_follow(spec, layer, state, label):
    """Return whether a label may follow the last label of its layer."""
    at = HEAD + LAYER * layer
    if spec[at + FOLLOW] == 0:
        return True
    before = state[1 + layer * spec[ORDER]]
    return spec[spec[at + FOLLOW] + (before + 1) * spec[at + SIZE] + label] != 0


def agree(spec, i, prefix, label):
    """Return whether the constraints allow the labels of the i-th pair of layers."""
    at = spec[PAIRS] + 3 * i
    first, second = spec[at], spec[at + 1]
    a = label if first == 0 else digit(spec, prefix, first)
    b = digit(spec, prefix, second)
    return spec[spec[at + 2] + a * spec[HEAD + LAYER * second + SIZE] + b] != 0


def is_gold(spec, layer, code, own):
    """Return whether a label of a layer is among the gold labels that an output has for a word."""
    at = HEAD + LAYER * layer
    if code < -1:
        return spec[spec[SETS] - (code + 2) * spec[N_ROW] + spec[at + PLACE] + own] != 0
    first = spec[HEAD + SIZE]
    return code == -1 or own == (code % first if layer == 0 else digit(spec, code // first, layer))


def gold_label(spec, layer, code):
    """Return the only gold label of a layer, as its index in a row; -1 if there are more."""
    at = HEAD + LAYER * layer
    only = -1
    for digit_label in range(spec[at + SIZE]):
        if is_gold(spec, layer, code, digit_label):
            if only >= 0:
                return -1
            only = spec[at + PLACE] + digit_label
    return only


def factor_of(spec, group):
    """Return the offset of a group's factor in spec."""
    return spec[OWN] if group >= spec[N_FACTOR_GROUPS] else spec[spec[FACTOR_OF_GROUP] + group]


class Joint(CompiledProblem):
    """Label the words of a sentence in several layers from left to right."""

    @staticmethod
    def limits(x, out):
        spec, n = x.spec, x.items.shape[0]
        out[STATE_SIZE] = 1 + spec[N_LAYERS] * spec[ORDER]
        out[MAX_GROUPS] = spec[N_PREFIXES]
        out[MAX_FEATURES] = spec[MOST]
        out[BLOCKS] = n * spec[N_BLOCKS]
        out[FACTORS] = spec[N_FACTOR_GROUPS]
        out[MAX_LABELS] = spec[HEAD + SIZE]
        out[FORM] = KEY_OF_GROUP
        out[VECTORS] = 1

    @staticmethod
    def initial(x, state):
        state[0] = 0
        for i in range(1, state.shape[0]):
            state[i] = -1

    @staticmethod
    def groups(x, state, out):
        spec = x.spec
        n, first = 0, spec[N_FACTOR_GROUPS]
        for i in range(spec[PREFIXES], spec[PREFIXES] + spec[N_PREFIXES]):
            prefix, possible = spec[i], True
            for layer in range(1, spec[N_LAYERS]):
                if spec[HEAD + LAYER * layer + FOLLOW] > 0:
                    possible &= may_follow(spec, layer, state, digit(spec, prefix, layer))
            if possible:  # otherwise no label of the first layer is possible
                out[n] = first + prefix
                n += 1
        return n

    @staticmethod
    def factors(x, state, group, i):
        spec = x.spec
        if i >= spec[N_STEP_FACTORS]:
            return -1, SAME_LABEL
        prefix = group - spec[N_FACTOR_GROUPS]
        if spec[FACTOR_LIST] > 0:
            at = spec[FACTOR_LIST] + 2 * (prefix * spec[N_STEP_FACTORS] + i)
            return spec[at], spec[at + 1]
        at, layer = spec[spec[STEP_FACTORS] + 2 * i], spec[spec[STEP_FACTORS] + 2 * i + 1]
        combination = 0
        if spec[at + COMBINATIONS] > 1:
            for other in range(1, spec[N_LAYERS]):
                if spec[at + DIGITS + other] > 0:
                    combination += spec[at + DIGITS + other] * digit(spec, prefix, other)
        label = SAME_LABEL
        if layer > 0:
            label = spec[HEAD + LAYER * layer + PLACE] + digit(spec, prefix, layer)
        return spec[at + FIRST] + combination, label

    @staticmethod
    def choices(x, state, group, out):
        spec = x.spec
        if spec[CHOICES] == 0:
            return -1
        at = spec[spec[CHOICES] + group - spec[N_FACTOR_GROUPS]]
        for i in range(spec[at]):
            out[i] = spec[at + 1 + i]
        return spec[at]

    @staticmethod
    def block(x, state, group):
        spec, n = x.spec, x.items.shape[0]
        at = factor_of(spec, group)
        if spec[at + N_STATIC] == 0:
            return -1
        combinations = spec[at + COMBINATIONS]
        within = state[0] * combinations + group - spec[at + FIRST]
        return n * (spec[at + UNTIL] - combinations) + within

    @staticmethod
    def block_features(x, block, out):
        spec, n = x.spec, x.items.shape[0]
        at = spec[FACTOR_TABLE]
        while block >= n * spec[at + UNTIL]:
            at += DIGITS + spec[N_LAYERS]
        combinations = spec[at + COMBINATIONS]
        within = block - n * (spec[at + UNTIL] - combinations)
        position = within // combinations
        combination = within - position * combinations
        no_state = x.items[position]  # not read: any row serves
        return combined_keys(
            x, position, no_state, spec[at + STATIC], spec[at + N_STATIC], out, combination
        )

    @staticmethod
    def features(x, state, group, out):
        spec = x.spec
        at = factor_of(spec, group)
        if spec[at + N_DYNAMIC] == 0:
            return 0
        combination = group - spec[at + FIRST]
        return combined_keys(
            x, state[0], state, spec[at + DYNAMIC], spec[at + N_DYNAMIC], out, combination
        )

    @staticmethod
    def allowed(x, state, group, label):
        spec = x.spec
        prefix = group - spec[N_FACTOR_GROUPS]
        left = x.items.shape[0] - state[0] - 1
        for layer in range(spec[N_LAYERS]):
            at = HEAD + LAYER * layer
            table, n = spec[at + FOLLOW], spec[at + SIZE]
            if table > 0:
                layer_label = label if layer == 0 else digit(spec, prefix, layer)
                if not may_follow(spec, layer, state, layer_label):
                    return False
                if spec[table + (n + 1 + min(left, spec[at + HORIZON])) * n + layer_label] == 0:
                    return False
        possible = True
        for i in range(spec[N_PAIRS]):
            possible &= agree(spec, i, prefix, label)
        return possible

    @staticmethod
    def apply(x, state, group, label, new):
        spec = x.spec
        order, prefix = spec[ORDER], group - spec[N_FACTOR_GROUPS]
        new[0] = state[0] + 1
        for layer in range(spec[N_LAYERS]):
            at = 1 + layer * order
            for i in range(at + order - 1, at, -1):
                new[i] = state[i - 1]
            if order > 0:
                new[at] = label if layer == 0 else digit(spec, prefix, layer)

    @staticmethod
    def is_goal(x, state):
        return state[0] == x.items.shape[0]

    @staticmethod
    def is_good(x, y, state, group, label):
        spec = x.spec
        code, prefix = y[state[0]], group - spec[N_FACTOR_GROUPS]
        if code >= 0:
            return code == prefix * spec[HEAD + SIZE] + label
        good = True
        for layer in range(spec[N_LAYERS]):
            layer_label = label if layer == 0 else digit(spec, prefix, layer)
            good &= is_gold(spec, layer, code, layer_label)
        return good

    @staticmethod
    def loss(x, y, state, group, label, was_good, good):
        spec = x.spec
        if not was_good or good:
            return 0.0
        if x.costs.shape[0] == 0:
            return 1.0
        highest = 0.0  # of the layers whose label is wrong
        for layer in range(spec[N_LAYERS]):
            layer_label = label if layer == 0 else digit(spec, group - spec[N_FACTOR_GROUPS], layer)
            if not is_gold(spec, layer, y[state[0]], layer_label):
                gold = gold_label(spec, layer, y[state[0]])
                highest = max(highest, cost_of(x, gold))
        return highest

    @staticmethod
    def key(x, state, group, label):
        return state[0] + 1


class DenseJoint(Joint):
    """Joint labels of words that have dense vectors, too, of which each layer has weights."""

    @staticmethod
    def vectors(x, block, i):
        n = x.items.shape[0]
        position = block - n * x.spec[EACH_BLOCK]
        has_vector = i == 0 and x.spec[EACH_BLOCK] >= 0 and 0 <= position < n
        return position, (0 if has_vector else -1)


# --------------------------------------------------------------------------- making spec

MOST_LISTED = 1 << 16  # factors of groups that are listed beforehand
EACH: frozenset[int] = frozenset()  # the factor that scores every layer separately


def make_spec(layers: Layers, templates: Iterable[JointTemplate], *, longest: int = 1) -> Array:
    """Return the constants of a joint problem; ``longest`` is the length of the longest sentence.

    Sets may be appended to them: rows of flags for the labels of a weight row, to which outputs
    below -1 refer (-2 is the first row).
    """
    sizes, n = layers.sizes, len(layers.sizes)
    templates = list(templates)
    order = max([int(bool(layers.constraints)), *(-o for t in templates for _, o in t.history)])
    spec = [0] * (HEAD + LAYER * n)
    prefixes = layers.prefixes()
    spec[N_LAYERS], spec[ORDER] = n, order
    spec[PREFIXES], spec[N_PREFIXES] = len(spec), len(prefixes)
    spec += prefixes
    strides = [0, *_strides(sizes[1:])]
    for layer, (size, place) in enumerate(zip(sizes, [0, *accumulate(sizes)][:-1], strict=True)):
        at = HEAD + LAYER * layer
        spec[at + SIZE], spec[at + PLACE], spec[at + STRIDE] = size, place, strides[layer]
        if layer in layers.constraints:
            constraints = layers.constraints[layer]
            reaching = constraints.reaching(longest)
            spec[at + FOLLOW], spec[at + HORIZON] = len(spec), len(reaching) - 1
            spec += constraints.follow.ravel().tolist() + reaching.ravel().astype(int).tolist()
    rows: list[list[int]] = []
    step_factors: list[tuple[int, int]] = []
    first = until = 0
    spec[EACH_BLOCK] = -1
    factors = _factors(n, templates)
    for about, program in factors.items():
        others = sorted(about)[1:]
        combinations = prod(sizes[layer] for layer in others)
        digits = dict(zip(others, _strides([sizes[layer] for layer in others]), strict=True))
        if len(about) < n:
            by_itself = range(n) if about == EACH else [min(about)]
            step_factors += [(len(rows), layer) for layer in by_itself]
        static = [template for template in program if not template.history]
        dynamic = [template for template in program if template.history]
        if about == EACH and static:
            spec[EACH_BLOCK] = until
        until += combinations if static else 0
        row = [first, combinations, until]
        for part in (static, dynamic):
            row += [len(spec), len(part)]
            spec += _program(part, order)
        rows.append([*row, *(digits.get(layer, 0) for layer in range(n))])
        first += combinations
    spec[MOST] = max(max(row[N_STATIC], row[N_DYNAMIC]) for row in rows)
    spec[N_FACTOR_GROUPS], spec[N_BLOCKS] = rows[-1][FIRST], until
    spec[FACTOR_TABLE], spec[OWN] = len(spec), len(spec) + (DIGITS + n) * (len(rows) - 1)
    spec += [number for row in rows for number in row]
    spec[FACTOR_OF_GROUP] = len(spec)
    for i, row in enumerate(rows[:-1]):
        spec += [spec[FACTOR_TABLE] + (DIGITS + n) * i] * row[COMBINATIONS]
    spec[STEP_FACTORS], spec[N_STEP_FACTORS] = len(spec), len(step_factors)
    spec += [
        part for i, layer in step_factors for part in (spec[FACTOR_TABLE] + (DIGITS + n) * i, layer)
    ]
    _append_pairs(spec, layers)
    if prod(sizes[1:]) * max(1, len(step_factors)) <= MOST_LISTED:
        _append_choices(spec, layers)
        _append_factors(spec, layers, [(rows[i], layer) for i, layer in step_factors])
    spec[SETS], spec[N_ROW] = len(spec), sum(sizes)
    return np.array(spec, np.int64)


def _append_pairs(spec: list[int], layers: Layers) -> None:
    """Append the tables of the pairs of layers with constraints."""
    tables = len(spec) + 3 * len(layers.pairs)
    spec[PAIRS], spec[N_PAIRS] = len(spec), len(layers.pairs)
    for pair in layers.pairs:
        spec += [pair.first, pair.second, tables]
        tables += pair.table.size
    for pair in layers.pairs:
        spec += pair.table.ravel().astype(int).tolist()


def _append_choices(spec: list[int], layers: Layers) -> None:
    """Append for each group the labels of the first layer that its pairs with others allow."""
    pairs = [pair for pair in layers.pairs if pair.first == 0]
    if not pairs:
        return
    sizes = layers.sizes
    good = np.ones(sizes, bool)
    for pair in pairs:
        shape = [1] * len(sizes)
        shape[0], shape[pair.second] = pair.table.shape
        good &= pair.table.astype(bool).reshape(shape)
    by_group = good.reshape(sizes[0], -1).T
    spec[CHOICES] = len(spec)
    ends = np.cumsum(by_group.sum(axis=1) + 1)
    spec += (len(spec) + len(ends) + np.append(0, ends[:-1])).tolist()
    for flags in by_group:
        labels = np.flatnonzero(flags).tolist()
        spec += [len(labels), *labels]


def _append_factors(
    spec: list[int], layers: Layers, step_factors: Sequence[tuple[list[int], int]]
) -> None:
    """Append for each group what ``Joint.factors`` returns, which takes many divisions."""
    sizes = layers.sizes
    digits = np.unravel_index(np.arange(prod(sizes[1:])), sizes[1:])
    columns = []
    for row, layer in step_factors:
        group = np.full(prod(sizes[1:]), row[FIRST])
        for other in range(1, len(sizes)):
            group += row[DIGITS + other] * digits[other - 1]
        place = spec[HEAD + LAYER * layer + PLACE]
        columns += [group, place + digits[layer - 1] if layer > 0 else group * 0 + SAME_LABEL]
    if columns:
        spec[FACTOR_LIST] = len(spec)
        spec += np.stack(columns, axis=1).ravel().tolist()


def _factors(
    n: int, templates: Sequence[JointTemplate]
) -> dict[frozenset[int], list[JointTemplate]]:
    """Return the templates by their layers, those of all n layers last."""
    factors: dict[frozenset[int], list[JointTemplate]] = {}
    for template in templates:
        factors.setdefault(template.layers, []).append(template)
    whole = frozenset(range(n))
    factors[whole] = factors.pop(whole, [])
    return factors


def _strides(sizes: Sequence[int]) -> list[int]:
    """Return the stride of each digit, the last digit lowest."""
    return [prod(sizes[i + 1 :]) for i in range(len(sizes))]


def _program(templates: Sequence[JointTemplate], order: int) -> list[int]:
    """Return templates as a program of ``template_keys``; a state has all histories in a row."""
    program = []
    for key, _, atoms, history in templates:
        before = [(LABEL_ATOM, -(layer * order - offset)) for layer, offset in history]
        program.append((key, [*atoms, *before]))
    return flatten_program(program)
