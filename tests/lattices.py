"""Problems with few paths, and what enumeration says of them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from laso.engine import layout as at
from laso.engine.costs import with_costs
from laso.engine.hashing import mix
from laso.engine.layout import BLOCKS, MAX_FEATURES, MAX_GROUPS, STATE_SIZE, STEPS, Dataset
from laso.engine.machine import all_of, new_table
from laso.engine.problem import CompiledProblem
from laso.engine.reference import Reference, input_of, output_of
from laso.engine.weights.hash_table import placed
from laso.features.windows import LABEL_ATOM
from laso.tasks.constraints import Constraints
from laso.tasks.tagging.problem import Tagging, make_spec

N_LABELS = 3
LONGEST, STOP = 3, 2
quick = settings(deadline=None, derandomize=True, max_examples=30)


class Segments(CompiledProblem):
    """Cut a sequence into labelled segments of at most three items.

    Validity   a segment ends within the sequence, the longest has not label 1; if spec[0] says so,
               label 2 is a dead end unless it comes in the first group: then it ends the output
    Goodness   it begins where one is wanted and has the label wanted (-1: any), and likewise ends
    Action     go on behind the segment
    """

    weighted = True

    @staticmethod
    def limits(x, out):
        out[STATE_SIZE] = 3
        out[MAX_GROUPS] = LONGEST
        out[MAX_FEATURES] = 4
        out[BLOCKS] = LONGEST * x.items.shape[0]
        out[STEPS] = x.items.shape[0]

    @staticmethod
    def initial(x, state):
        state[0] = 0
        state[1] = -1
        state[2] = 0

    @staticmethod
    def groups(x, state, out):
        if state[2] == 2:
            return 0
        n = min(LONGEST, x.items.shape[0] - state[0])
        for i in range(n):
            out[i] = n - i
        return n

    @staticmethod
    def block(x, state, group):
        return LONGEST * state[0] + group - 1 if group != 2 else -1

    @staticmethod
    def sub_block(x, block, i):
        return block - 1 - i if i < block % LONGEST else -1  # all shorter segments

    @staticmethod
    def block_features(x, block, out):
        first, more = block // LONGEST, block % LONGEST
        out.keys[0] = mix(1, x.items[first, 0])
        out.values[0] = 1.0
        out.keys[1] = mix(mix(2, more), x.items[first + more, 0])
        out.values[1] = 0.5 * more
        return 2

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = mix(3, state[1])
        out.values[0] = 1.0
        if state[1] < 0:
            return 1
        out.keys[1] = mix(4, group)
        out.values[1] = -1.0
        return 2

    @staticmethod
    def allowed(x, state, group, label):
        return (group < LONGEST or label != 1) and (x.spec[0] != 0 or label != STOP)

    @staticmethod
    def apply(x, state, group, label, new):
        new[0] = state[0] + group
        new[1] = label
        new[2] = 0
        if label == STOP:
            new[2] = 1 if group == 1 else 2

    @staticmethod
    def is_goal(x, state):
        return state[2] == 1 or (state[2] == 0 and state[0] == x.items.shape[0])

    @staticmethod
    def is_good(x, y, state, group, label):
        end = state[0] + group
        for i in range(state[0] + 1, end):
            if y[i] >= 0:
                return False
        if end < x.items.shape[0] and y[end] == -2:
            return False
        return label != STOP and y[state[0]] in (-1, label)

    @staticmethod
    def key(x, state, group, label):
        return state[0] + group if x.spec[0] < 2 else 1  # 2: a key that does not rise

    @staticmethod
    def signature(x, state, group, label):
        return 2 * label + (group == 1 or label != STOP)


@dataclass
class OnePath:
    operators: list[tuple[int, int]]
    phi: dict[Any, float]
    good: bool
    keys: list[int]

    def score(self, w):
        return sum(w.get(name, 0.0) * value for name, value in self.phi.items())


def enumerate_paths(problem, corpus, i, hash_bits=0):
    """All paths of an input, by the reference engine's view of the problem."""
    reference, x, y = Reference(problem, N_LABELS, hash_bits=hash_bits), None, None
    x, y = input_of(corpus, i), output_of(corpus, i)
    paths = []

    def go(state, path):
        if reference.is_goal(x, state):
            paths.append(path)
            return
        row = np.array(state.row, np.int32)
        for operator in reference.operators(x, state):
            new = reference.apply(x, state, operator)
            phi = dict(path.phi)
            for name, value in reference.features(x, state, operator).items():
                phi[name] = phi.get(name, 0.0) + value
            good = path.good and bool(problem.is_good(x, y, row, *operator))
            go(new, OnePath([*path.operators, operator], phi, good, [*path.keys, new.key]))

    go(reference.initial(x), OnePath([], {}, True, [0]))
    return paths


def log_sum(scores):
    top = max(scores)
    return top + math.log(sum(math.exp(s - top) for s in scores))


def expectation(paths, w):
    total = log_sum([path.score(w) for path in paths])
    mean: dict[Any, float] = {}
    for path in paths:
        p = math.exp(path.score(w) - total)
        for name, value in path.phi.items():
            mean[name] = mean.get(name, 0.0) + p * value
    return mean


def difference(a, b):
    return {name: a.get(name, 0.0) - b.get(name, 0.0) for name in {*a, *b}}


def same(a, b, tolerance=1e-9):
    return all(abs(a.get(name, 0.0) - b.get(name, 0.0)) < tolerance for name in {*a, *b})


def table_of(w, *, margin=0.0, dtype=np.float64):
    """A table with the weights given by (key, label)."""
    table = new_table(N_LABELS, margin=margin, dtype=dtype)
    keys = sorted({key for key, _ in w})
    assert len(keys) <= len(table.v)
    entries = np.array([[key, row + 1] for row, key in enumerate(keys)], np.int64).reshape(-1, 2)
    table.slots[:] = placed(entries, len(table.slots))
    table.ints[at.ROWS] = len(keys)
    for (key, label), value in w.items():
        table.v[keys.index(key), label] = value
    return table


def empty(machine):
    return machine.new_table(N_LABELS, dtype=np.float64)


def corpus_of(rows, outputs, spec):
    starts = np.cumsum([0, *map(len, rows)])
    items = np.array([row for one in rows for row in one], np.int32).reshape(-1, 1)
    flat = np.array([y for one in outputs for y in one], np.int32)
    empty = np.zeros(0, np.int64), np.zeros(0, np.float32)
    return Dataset(items, starts, *empty, np.array(spec, np.int64), flat, starts)


def tagging_spec(order, constraints=None, n_labels=N_LABELS, longest=5):
    word, before = [(0, 0)], [(LABEL_ATOM, -1)]
    further = [(LABEL_ATOM, -order), (0, 0)]
    templates = [(1, word), (2, [(0, -1), (0, 1)]), (3, before), (4, further)]
    return make_spec(n_labels, templates, constraints=constraints, longest=longest)


def words(draw, most=5):
    sizes = draw(st.lists(st.integers(0, most), min_size=1, max_size=3))
    return [[draw(st.integers(0, 2)) for _ in range(size)] for size in sizes]


@st.composite
def tagging_corpora(draw):
    rows = words(draw, 4)
    order = draw(st.integers(1, 2))
    constraints = None
    if draw(st.booleans()):
        flags = st.lists(st.booleans(), min_size=N_LABELS - 1, max_size=N_LABELS - 1)
        follow = [[True, *draw(flags)] for _ in range(N_LABELS + 1)]  # label 0 is always allowed
        end = [True, *draw(flags)]
        constraints = Constraints(np.array(follow), np.array(end))
    outputs = []
    for row in rows:
        tags: list[int] = []
        for i in range(len(row)):
            choices = list(range(N_LABELS))
            if constraints is not None:
                before = tags[-1] + 1 if tags else 0
                choices = [
                    label
                    for label in choices
                    if constraints.follow[before, label]
                    and (i + 1 < len(row) or constraints.end[label])
                ]
            tags.append(draw(st.sampled_from(choices)))
        # Label 0 is allowed after and before every other, so that any label may be unknown.
        outputs.append(
            [-1 if tag == 0 and draw(st.booleans()) else tag for tag in tags]
            if constraints is not None
            else [draw(st.sampled_from([tag, tag, -1])) for tag in tags]
        )
    return Tagging, corpus_of(rows, outputs, tagging_spec(order, constraints))


@st.composite
def segment_corpora(draw, stops=None):
    rows = words(draw)
    outputs = []
    for row in rows:
        y: list[int] = []
        while len(y) < len(row):
            length = draw(st.integers(1, min(LONGEST, len(row) - len(y))))
            label = draw(st.integers(0, 1)) if length < LONGEST else 0
            y += [label, *[-2] * (length - 1)]
        outputs.append([draw(st.sampled_from([tag, tag, -1])) for tag in y])
    stop = draw(st.integers(0, 1)) if stops is None else stops
    return Segments, corpus_of(rows, outputs, [stop])


any_corpus = tagging_corpora() | segment_corpora()


def features_of(problem, corpus):
    """All names of features that the paths of a corpus have, and those of whole rows."""
    found = [enumerate_paths(problem, corpus, int(i)) for i in all_of(corpus)]
    keys = sorted({key for paths in found for path in paths for key, _ in path.phi})
    return found, keys


def weights(draw, keys, value):
    return {(key, label): draw(value) for key in keys for label in range(N_LABELS)}


few = st.integers(0, 1).map(float)  # many ties
real = st.floats(-2, 2).map(lambda value: value + math.pi / 1e4)


def examples_of(order=1, seed=0, n=8, length=4):
    """A small corpus to learn from, the same every time."""
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, 3, length).tolist() for _ in range(n)]
    outputs = [[int(w) if rng.random() < 0.8 else -1 for w in row] for row in rows]
    return corpus_of(rows, outputs, tagging_spec(order))


def costly(corpus):
    """Labels cost differently much to miss."""
    return with_costs(corpus, "abc", {"a": 0.5, "c": 4.0})


def rows_by_key(table):
    return {int(key): int(row) - 1 for key, row in table.slots[table.slots[:, 1] != 0]}
