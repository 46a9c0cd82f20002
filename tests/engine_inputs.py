"""Inputs for the compiled engine: tasks, strategies that draw corpora for them, and a fifth task.

The four tasks of the library have goals at one depth only, and a key that is the depth or none.
``Segmenting`` has neither, and many good paths, so that every part of the agenda is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from laso.engine.hashing import mix
from laso.engine.layout import (
    BLOCKS,
    MAX_FEATURES,
    MAX_GROUPS,
    STATE_SIZE,
    STEPS,
    VECTORS,
    Dataset,
)
from laso.engine.problem import CompiledProblem
from laso.features.windows import LABEL_ATOM
from laso.tasks.clustering.problem import Clustering
from laso.tasks.constraints import Constraints
from laso.tasks.joint import problem as joint
from laso.tasks.joint.layers import JointTemplate, Layers, Pair
from laso.tasks.joint.problem import DenseJoint, Joint
from laso.tasks.parsing.arc_hybrid import ArcHybrid, DenseArcHybrid
from laso.tasks.parsing.configuration import DENSE, SIZE, STACK, WIDTH
from laso.tasks.parsing.encoder import ParsingEncoder
from laso.tasks.parsing.templates import (
    default_templates,
    divided,
    parse_templates,
)
from laso.tasks.tagging import problem as tagging
from laso.tasks.tagging.problem import DenseTagging, Tagging
from tests.clustering_inputs import clustering_corpora, records_size

MAX_LENGTH = 5
FREE, INSIDE = -2, -1  # in the outputs of Segmenting
LONGEST = 3


class Segmenting(CompiledProblem):
    """Cut a sequence into labelled segments of at most three items.

    Validity   a segment ends within the sequence; the longest may not have label 1
    Goodness   it begins, ends and is labelled as wanted, where something is wanted
    Action     go on behind the segment
    """

    @staticmethod
    def limits(x, out):
        n = x.items.shape[0]
        out[STATE_SIZE] = 2
        out[MAX_GROUPS] = LONGEST
        out[MAX_FEATURES] = 2
        out[BLOCKS] = LONGEST * n
        out[VECTORS] = 3  # read by DenseSegmenting
        out[STEPS] = n

    @staticmethod
    def initial(x, state):
        state[0] = 0
        state[1] = -1

    @staticmethod
    def groups(x, state, out):
        n = min(LONGEST, x.items.shape[0] - state[0])
        for i in range(n):
            out[i] = n - i  # long segments first, so that groups are not their own indices
        return n

    @staticmethod
    def block(x, state, group):
        return LONGEST * state[0] + group - 1

    @staticmethod
    def sub_block(x, block, i):
        return block - 1 if i == 0 and block % LONGEST > 0 else -1  # the segment one shorter

    @staticmethod
    def block_features(x, block, out):
        first, more = block // LONGEST, block % LONGEST
        out.keys[0] = mix(mix(1, more), x.items[first + more, 0])
        out.keys[1] = 7
        for i in range(more + 1):
            out.keys[1] = mix(out.keys[1], x.items[first + i, 0])
        return 2

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = mix(2, state[1])
        out.keys[1] = mix(mix(3, state[1]), group)
        return 2

    @staticmethod
    def allowed(x, state, group, label):
        return group < LONGEST or label != 1

    @staticmethod
    def apply(x, state, group, label, new):
        new[0] = state[0] + group
        new[1] = label

    @staticmethod
    def is_goal(x, state):
        return state[0] == x.items.shape[0]

    @staticmethod
    def is_good(x, y, state, group, label):
        end = state[0] + group
        for i in range(state[0] + 1, end):
            if y[i] >= 0:
                return False
        if end < x.items.shape[0] and y[end] == INSIDE:
            return False
        return y[state[0]] == FREE or y[state[0]] == label

    @staticmethod
    def loss(x, y, state, group, label, was_good, good):
        return 0.0 if good else 0.5 * group

    @staticmethod
    def key(x, state, group, label):
        return state[0] + group


class Weighted(Segmenting):
    """The same segments, with features that have values: halves, so that sums are exact."""

    weighted = True

    @staticmethod
    def block_features(x, block, out):
        first, more = block // LONGEST, block % LONGEST
        out.keys[0] = mix(mix(1, more), x.items[first + more, 0])
        out.keys[1] = 7
        out.values[0], out.values[1] = (1 + x.items[first, 0]) / 2, -0.5 * more
        for i in range(more + 1):
            out.keys[1] = mix(out.keys[1], x.items[first + i, 0])
        return 2

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = mix(2, state[1])
        out.keys[1] = mix(mix(3, state[1]), group)
        out.values[0], out.values[1] = 0.5, group / 2
        return 2


@dataclass(frozen=True)
class Task:
    """A problem, the number of its labels, and inputs for it."""

    problem: type[CompiledProblem]
    n_labels: int
    corpora: st.SearchStrategy[Dataset]
    keyed: bool
    tolerance: float = 0.0  # where the engines add up the same numbers in another order
    used: Callable[[Sequence[int]], int] = len  # how much of a state is ever read

    def __repr__(self) -> str:
        return self.problem.__name__


def corpus_of(
    rows: Sequence[Sequence[Any]],
    outputs: Sequence[Sequence[int]],
    spec: Any,
    *,
    columns: int = 1,
    pool: Sequence[int] = (),
    values: Sequence[float] = (),
) -> Dataset:
    """Inputs (a list of rows of numbers each) and outputs end to end."""
    flat = [row for one in rows for row in one]
    return Dataset(
        np.array(flat, np.int32).reshape(len(flat), columns),
        _starts(rows),
        np.array(pool, np.int64),
        np.array(values, np.float32),
        np.array(spec, np.int64),
        np.array([y for one in outputs for y in one], np.int32),
        _starts(outputs),
    )


def _starts(parts: Sequence[Sequence[Any]]) -> Any:
    return np.cumsum([0, *map(len, parts)]).astype(np.int64)


def lengths(most: int = MAX_LENGTH) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, most), min_size=1, max_size=3)


def _rows(draw: Callable[..., Any], sizes: list[int], columns: int = 1, kinds: int = 5) -> Any:
    number = st.integers(0, kinds - 1)
    return [[[draw(number) for _ in range(columns)] for _ in range(n)] for n in sizes]


# Tagging: templates with and without label atoms, lists of features, constraints, unknown labels.

N_TAGS = 3


@st.composite
def tagging_corpora(draw: Any, *, unique: bool = True) -> Dataset:
    """``unique``: no word has one feature twice."""
    word = st.tuples(st.integers(0, 1), st.integers(-1, 1))
    label = st.tuples(st.just(LABEL_ATOM), st.integers(-2, -1))
    templates = draw(st.lists(st.lists(word | label, min_size=1, max_size=2), max_size=4))
    rows = _rows(draw, draw(lengths()), columns=2, kinds=4)
    pool: list[int] = []
    for columns in (columns for words in rows for columns in words):
        own = draw(st.lists(st.integers(0, 6), max_size=2, unique=unique))
        columns += [len(pool), len(pool) + len(own)]
        pool += own
    flags = st.lists(st.booleans(), min_size=N_TAGS, max_size=N_TAGS)
    constraints = None
    if draw(st.booleans()):
        table = np.array([draw(flags) for _ in range(N_TAGS + 2)], np.int64)
        table[:, 0] = 1  # so that every sentence has some labels
        constraints = Constraints(table[:-1], table[-1])
    sets: list[Any] = []
    outputs = [_tags(draw, len(words), constraints, sets) for words in rows]
    spec = tagging.make_spec(
        N_TAGS,
        [(100 + i, atoms) for i, atoms in enumerate([[(0, 0)], *templates])],
        constraints=constraints,
        longest=max(map(len, rows)),
        sets=np.array(sets) if sets else None,
        lists=draw(st.sampled_from([(-1, 0), (2, 2)])),
    )
    return corpus_of(rows, outputs, spec, columns=4, pool=pool)


def _tags(
    draw: Callable[..., Any], n: int, constraints: Constraints | None, sets: list[Any]
) -> list[int]:
    """Labels that the constraints allow, some of them not known."""
    tags: list[int] = []
    for i in range(n):
        choices = np.ones(N_TAGS, bool)
        if constraints is not None:
            choices = constraints.follow[tags[-1] + 1 if tags else 0] > 0
            if i == n - 1:
                choices = choices & (constraints.end > 0)
        tags.append(draw(st.sampled_from(np.flatnonzero(choices).tolist())))
    wanted = np.array([draw(st.sampled_from([tag, tag, tag, -1])) for tag in tags], np.int64)
    if constraints is not None:
        good = constraints.good_sets(wanted)
        assert good is not None
        for i in np.flatnonzero(wanted < 0).tolist():
            wanted[i] = -2 - len(sets)
            sets.append(good[i])
    return [int(tag) for tag in wanted]


# Joint: two or three layers, factors on any of them, constraints within and between them.

SIZES = (3, 2, 2)
N_ROW = sum(SIZES)


@st.composite
def joint_corpora(draw: Any) -> Dataset:
    sizes = SIZES[: draw(st.integers(2, 3))]
    sizes = (*sizes[:-1], sizes[-1] + N_ROW - sum(sizes))  # rows are equally wide in all
    n = len(sizes)
    words = st.lists(st.tuples(st.integers(0, 1), st.integers(-1, 1)), max_size=2)
    before = st.tuples(st.integers(0, n - 1), st.integers(-2, -1))
    about = st.frozensets(st.integers(0, n - 1))
    drawn = st.tuples(about, words, st.lists(before, max_size=2))
    templates = [
        JointTemplate(100 + i % 4, *parts)  # so that two may share their features
        for i, parts in enumerate(
            [(joint.EACH, [(0, 0)], []), *draw(st.lists(drawn, min_size=1, max_size=5))]
        )
    ]
    rows = _rows(draw, draw(lengths(4)), columns=2, kinds=4)
    outputs = [[tuple(draw(st.integers(0, k - 1)) for k in sizes) for _ in w] for w in rows]
    constraints, pairs = {}, []
    for layer, size in enumerate(sizes):
        if draw(st.booleans()):  # what the outputs have is allowed, and some more
            follow = np.array([[draw(st.booleans()) for _ in range(size)] for _ in range(size + 1)])
            follow[:, 0] = True
            for sentence in outputs:
                for a, b in zip([(-1,) * n, *sentence], sentence, strict=False):
                    follow[a[layer] + 1, b[layer]] = True
            constraints[layer] = Constraints(follow.astype(np.int64), np.ones(size, np.int64))
    if draw(st.booleans()):
        first, second = sorted(draw(st.permutations(range(n)))[:2])
        table = np.zeros((sizes[first], sizes[second]), bool)
        table[:, 0] = table[0] = True
        for labels in (labels for sentence in outputs for labels in sentence):
            table[labels[first], labels[second]] = True
        pairs.append(Pair(first, second, table))
    layers = Layers(sizes, constraints, pairs)
    pack = [
        layers.pack(np.array(sentence, np.int64).T).tolist() if sentence else []
        for sentence in outputs
    ]
    spec = joint.make_spec(layers, templates, longest=max(map(len, rows)))
    return corpus_of(rows, pack, spec, columns=2)


# Parsing: any projective tree.


def projective(draw: Callable[..., Any], words: Sequence[int], head: int) -> dict[int, int]:
    """A tree over neighbouring words whose root has the given head."""
    if not words:
        return {}
    root = draw(st.integers(0, len(words) - 1))
    heads = {words[root]: head}
    for side in (words[:root], words[root + 1 :]):
        while side:  # any number of subtrees on either side
            cut = draw(st.integers(1, len(side)))
            heads |= projective(draw, side[:cut], words[root])
            side = side[cut:]
    return heads


OPERATORS = ("left a", "left b", "right a", "root b", "shift")


def tree_encoder(
    templates: Sequence[str], labels: tuple[str, ...] = OPERATORS, **given: Any
) -> ParsingEncoder:
    """An encoder of items with two columns, w and pos."""
    both = ("w[s0]|pos[s0]", *templates)
    return ParsingEncoder(parse_templates(both), ("w", "pos"), labels, **given)


def tree_of(draw: Callable[..., Any], n: int) -> list[tuple[Any, Any]]:
    """A projective tree of n words, of which some heads and labels are not known."""
    heads = projective(draw, range(1, n + 1), 0)
    tree: list[tuple[Any, Any]] = []
    for i in range(1, n + 1):
        labels = "b" if heads[i] == 0 else "ab" if heads[i] > i else "a"
        arc = (heads[i], draw(st.sampled_from(labels)))
        tree.append(draw(st.sampled_from([arc, arc, arc, (arc[0], None), (None, None)])))
    return tree


def configuration_size(state: Sequence[int]) -> int:
    """How much of a configuration is in use."""
    return STACK + state[SIZE] * WIDTH


@st.composite
def parsing_corpora(draw: Any) -> Dataset:
    sizes = draw(lengths(4))
    rows = _rows(draw, sizes, columns=2)
    usual = parse_templates(default_templates(("w", "pos")))
    some = draw(st.lists(st.sampled_from(usual), min_size=1, max_size=5))
    # The templates of a part make a factor of their own, whose sums are kept.
    some += draw(st.sampled_from([[], *divided(usual)[:-1]]))
    encoder = tree_encoder(some, single_root=True, static=draw(st.booleans()))
    outputs = [encoder.numbers(tree_of(draw, n)).tolist() for n in sizes]
    return corpus_of(rows, outputs, encoder.spec_for(0, None), columns=2)


# Segmenting: wanted segments, some of which are not known.


@st.composite
def segmenting_corpora(draw: Any) -> Dataset:
    sizes = draw(lengths())
    outputs = []
    for n in sizes:
        y: list[int] = []
        while len(y) < n:
            length = draw(st.integers(1, min(LONGEST, n - len(y))))
            label = draw(st.integers(0, 1)) if length < LONGEST else 0
            y += [label, *[INSIDE] * (length - 1)]
        outputs.append([draw(st.sampled_from([tag, tag, FREE])) for tag in y])
    return corpus_of(_rows(draw, sizes), outputs, [0])


# Dense vectors beside the features of blocks. Their dimensions are halves, so that sums are exact.


class DenseSegmenting(Segmenting):
    """Segments that have the vectors of their first and last item, and of the one before."""

    @staticmethod
    def vectors(x, block, i):
        first, more = block // LONGEST, block % LONGEST
        if i == 0:
            return first + more, 0
        return first - 1, (i if i == 1 or (i == 2 and more == 0) else -1)


class DenseWeighted(DenseSegmenting, Weighted):
    """The same beside features that have values."""


@st.composite
def with_vectors(draw: Any, corpora: st.SearchStrategy[Dataset], dense: Any = None) -> Dataset:
    """Corpora with a dense vector for each item; ``dense`` changes their constants."""
    corpus: Dataset = draw(corpora)
    n, size = len(corpus.items), draw(st.integers(1, 3))
    halves = st.lists(st.integers(-2, 2), min_size=n * size, max_size=n * size)
    vectors = np.array(draw(halves), np.float32).reshape(n, size) / np.float32(2)
    corpus = corpus._replace(vectors=vectors)
    return corpus if dense is None else corpus._replace(spec=dense(draw, corpus.spec.copy()))


def _around(draw: Any, spec: Any) -> Any:
    spec[tagging.AROUND] = draw(st.integers(0, 1))
    return spec


def _elements(draw: Any, spec: Any) -> Any:
    spec[DENSE] = draw(st.integers(1, 3))
    return spec


TASKS = [
    Task(Tagging, N_TAGS, tagging_corpora(), True),
    Task(
        ArcHybrid,
        len(OPERATORS),
        parsing_corpora(),
        False,
        used=configuration_size,
        tolerance=1e-9,
    ),
    Task(Clustering, 2, clustering_corpora(), True, used=records_size),
    Task(Segmenting, 2, segmenting_corpora(), True),
    Task(Weighted, 2, segmenting_corpora(), True),
    Task(Joint, N_ROW, joint_corpora(), True, tolerance=1e-9),
    Task(DenseSegmenting, 2, with_vectors(segmenting_corpora()), True, tolerance=1e-9),
    Task(DenseWeighted, 2, with_vectors(segmenting_corpora()), True, tolerance=1e-9),
    Task(DenseTagging, N_TAGS, with_vectors(tagging_corpora(), _around), True, tolerance=1e-9),
    Task(
        DenseArcHybrid,
        len(OPERATORS),
        with_vectors(parsing_corpora(), _elements),
        False,
        used=configuration_size,
        tolerance=1e-9,
    ),
    Task(DenseJoint, N_ROW, with_vectors(joint_corpora()), True, tolerance=1e-9),
]
