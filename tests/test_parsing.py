"""Transition systems: oracles against brute force, by hand, and trees of steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso import BadData, BadTemplate
from laso.engine import layout as at
from laso.engine.layout import Input
from laso.tasks.parsing import trees
from laso.tasks.parsing.systems import SYSTEMS, System
from laso.tasks.parsing.templates import (
    cluster_templates,
    default_templates,
    divided,
    parse_templates,
    suffix_templates,
)
from laso.tasks.parsing.trees import (
    FEWEST,
    Trees,
    checked_tree,
    crossing,
    is_projective,
    projective,
    restored,
)
from tests.engine_inputs import OPERATORS, tree_encoder, tree_of

State = tuple[int, ...]
Tree = tuple[tuple[Any, Any], ...]
HYBRID = SYSTEMS["arc-hybrid"]


LABELS = (*OPERATORS, "reduce")
STEPS = tree_encoder([], LABELS).operators


def sentence(n: int, **given: Any) -> Input:
    none = np.zeros(0, np.int64)
    spec = tree_encoder([], LABELS, **given).spec_for(0, None)
    return Input(np.zeros((n, 2), np.int32), none, np.zeros(0, np.float32), spec)


class Space:
    """All states and trees of n words, by brute force."""

    def __init__(self, system: System, n: int, **given: Any) -> None:
        self.problem, self.n, self.x = system.problem, n, self.make_input(n, **given)
        self.system, problem = system, system.problem
        self.labels = [
            i for i, name in enumerate(self.names) if " " in name or name in system.always
        ]
        limits = np.zeros(len(at.Limit), np.int64)
        problem.limits(self.x, limits)
        self.size = int(limits[at.STATE_SIZE])
        row = np.zeros(self.size, np.int32)
        problem.initial(self.x, row)
        self.initial: State = tuple(row.tolist())
        self.trees_from = cache(self._trees_from)

    @property
    def names(self) -> tuple[str, ...]:
        return LABELS

    def make_input(self, n: int, **given: Any) -> Input:
        return sentence(n, **given)

    def arcs(self, path: tuple[int, ...]) -> Iterator[Any]:
        return self.system.arcs([STEPS[label] for label in path], self.n)

    def steps(self, state: State) -> Iterator[tuple[int, State]]:
        row = np.array(state, np.int32)
        for label in self.labels:
            if self.problem.allowed(self.x, row, 0, label):
                new = np.zeros(self.size, np.int32)
                self.problem.apply(self.x, row, 0, label, new)
                yield label, tuple(new.tolist())

    def is_goal(self, state: State) -> bool:
        return bool(self.problem.is_goal(self.x, np.array(state, np.int32)))

    def paths(self, state: State, before: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
        if self.is_goal(state):
            yield before
        for label, new in self.steps(state):
            yield from self.paths(new, (*before, label))

    def tree(self, path: tuple[int, ...]) -> Tree:
        found: list[Any] = [None] * self.n
        for arc in self.arcs(path):
            if arc is not None:
                word, head, label = arc
                found[word] = (0 if head == self.n else head + 1, label)
        return tuple(found)

    def _trees_from(self, before: tuple[int, ...], state: State) -> frozenset[Tree]:
        return frozenset(self.tree(path) for path in self.paths(state, before))

    def is_good(self, tree: Tree, state: State, label: int) -> bool:
        y = tree_encoder([]).numbers(list(tree))
        row = np.array(state, np.int32)
        return bool(self.problem.is_good(self.x, y, row, 0, label))


def all_trees(n: int, *, single_root: bool) -> set[Tree]:
    """All projective trees, with the labels that the operators have for each direction."""

    def rooted(heads: tuple[int, ...], word: int) -> bool:
        for _ in range(n + 1):
            word = heads[word - 1] if word else 0
        return word == 0

    found: set[Tree] = set()
    for heads in product(range(n + 1), repeat=n):
        whole = all(rooted(heads, word) for word in range(1, n + 1)) and is_projective(heads)
        if whole and (not single_root or heads.count(0) <= 1):
            labels = [
                "b" if head == 0 else "ab" if head > i else "a"
                for i, head in enumerate(heads, start=1)
            ]
            found |= {tuple(zip(heads, chosen, strict=True)) for chosen in product(*labels)}
    return found


each_system = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
DYNAMIC = {name: system for name, system in SYSTEMS.items() if system.dynamic}


@each_system
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("n", range(4))
def test_the_search_reaches_exactly_the_projective_trees(system, n, single_root):
    space = Space(system, n, single_root=single_root)
    assert space.trees_from((), space.initial) == all_trees(n, single_root=single_root)


@pytest.mark.parametrize("system", DYNAMIC.values(), ids=DYNAMIC)
@pytest.mark.parametrize("n", range(1, 4))
def test_a_step_is_good_if_the_tree_stays_within_reach(system, n):
    space = Space(system, n)

    def walk(before: tuple[int, ...], state: State) -> None:
        within = space.trees_from(before, state)
        for label, new in space.steps(state):
            after = space.trees_from((*before, label), new)
            for tree in within:
                good = space.is_good(tree, state, label)
                # Arc-eager does not count on what only RIGHT at the end can save.
                assert good == (tree in after) or (system is not HYBRID and not good)
            walk((*before, label), new)

    walk((), space.initial)


@each_system
def test_a_partial_tree_is_reached_by_good_steps_alone(system):
    space = Space(system, 3)
    for tree in all_trees(3, single_root=True):
        for known in product([True, False], repeat=3):
            part = tuple(arc if k else (None, None) for arc, k in zip(tree, known, strict=True))
            front: list[tuple[tuple[int, ...], State]] = [((), space.initial)]
            while front:
                before, state = front.pop()
                good = [
                    ((*before, label), new)
                    for label, new in space.steps(state)
                    if space.is_good(part, state, label)
                ]
                if space.is_goal(state):
                    found = space.tree(before)
                    assert all(p in ((None, None), f) for p, f in zip(part, found, strict=True))
                else:
                    assert good
                front += good


@each_system
@pytest.mark.parametrize("n", range(1, 5))
def test_the_static_oracle_has_one_path_to_each_tree(system, n):
    space = Space(system, n, static=True)
    for tree in all_trees(n, single_root=True):
        state, path = space.initial, []
        while not space.is_goal(state):
            good = [step for step in space.steps(state) if space.is_good(tree, state, step[0])]
            assert len(good) == 1
            path.append(good[0][0])
            state = good[0][1]
        assert space.tree(tuple(path)) == tree


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.data(), st.integers(1, 7))
def test_the_loss_of_a_path_is_the_number_of_wrong_arcs(data, n):
    space = Space(HYBRID, n)
    gold = [arc if arc[0] is not None else (None, None) for arc in tree_of(data.draw, n)]
    y = tree_encoder([]).numbers(gold)
    state, total, path = space.initial, 0.0, []
    while not space.is_goal(state):
        label, new = data.draw(st.sampled_from(list(space.steps(state))))
        row = np.array(state, np.int32)
        total += HYBRID.problem.loss(space.x, y, row, 0, label, True, True)
        path.append(label)
        state = new
    pairs = list(zip(gold, space.tree(tuple(path)), strict=True))
    wrong = sum(g[0] is not None and (g[0] != p[0] or g[1] not in (None, p[1])) for g, p in pairs)
    assert total == wrong
    assert len(path) == 2 * n


@each_system
def test_the_arc_of_a_step_is_read_off_its_state(system):
    space = Space(system, 3)
    for path in space.paths(space.initial):
        state, steps = space.initial, [STEPS[label] for label in path]
        for label, arc in zip(path, system.arcs(steps, 3), strict=True):
            found = system.new_arc(state, LABELS[label].partition(" ")[0])
            assert found == (None if arc is None else arc[:2])
            state = dict(space.steps(state))[label]


def test_steps_by_hand():
    # "the dog barks loudly": the <- dog <- barks -> loudly
    names = ["shift", "left det", "shift", "left nsubj", "shift", "shift", "right x", "root r"]
    steps = [(kind, label) for kind, _, label in (name.partition(" ") for name in names)]
    arcs = [arc for arc in HYBRID.arcs(steps, 4) if arc is not None]
    assert arcs == [(0, 1, "det"), (1, 2, "nsubj"), (3, 2, "x"), (2, 4, "r")]


# --------------------------------------------------------------------------- trees


def test_crossing_by_hand():
    assert crossing([]) == []
    assert is_projective([2, 0, 2])
    assert crossing([3, 4, 0, 3]) == [1, 2, 3]  # 4 -> 2 crosses 3 -> 1 and the root's arc to 3
    assert crossing([3, 0, 2]) == [1, 2]  # 3 -> 1 crosses the root's arc to 2


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.integers(1, 12).flatmap(lambda n: st.lists(st.integers(-1, n), min_size=n, max_size=n)))
def test_crossing_arcs_of_long_sentences_are_those_of_all_pairs(numbers):
    heads = [None if head in (-1, i) else head for i, head in enumerate(numbers, start=1)]
    few = crossing(heads)
    with mock.patch.object(trees, "FEW_WORDS", 0):
        assert crossing(heads) == few


def test_lifting_takes_bounded_time():
    n, begun = 3000, time.process_time()
    order = np.random.default_rng(1).permutation(n).tolist()
    tree: list[Any] = [(0, "root")] * n
    for i, word in enumerate(order[1:], start=1):
        tree[word] = (order[i - 1] + 1, "x")
    lifted = projective(tree)
    assert time.process_time() - begun < 20.0
    assert is_projective([head for head, _ in lifted])  # what still crosses is unknown


def test_arcs_that_are_put_back_make_no_cycle():
    tree: list[Any] = [(3, "x^y"), (3, "y^x"), (0, "root")]
    assert checked_tree(restored(tree), 1) == [(2, "x"), (3, "y"), (0, "root")]


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.data(), st.integers(1, 8))
def test_lifting_makes_trees_projective_and_keeps_the_root(data, n):
    order = data.draw(st.permutations(range(1, n + 1)))
    tree: list[Any] = [(0, "root")] * n
    for i, word in enumerate(order[1:], start=1):
        tree[word - 1] = (order[data.draw(st.integers(0, i - 1))], f"l{word}")
    lifted = projective(tree)
    heads = [head for head, _ in lifted]
    assert is_projective(heads)
    assert heads.count(0) == 1
    assert checked_tree(lifted, 1) == lifted
    assert [str(label).split("^")[0] for _, label in lifted] == [label for _, label in tree]
    if len({label for _, label in tree}) == n:  # labels tell words apart
        assert restored(lifted) == tree or len(set(heads)) < n


def test_marks_are_undone():
    # 4 -> 2 crosses 3 -> 1 and the root's arc to 3; it is lifted to 3, the head of 4.
    tree: list[Any] = [(3, "a"), (4, "b"), (0, "root"), (3, "c")]
    assert projective(tree) == [(3, "a"), (3, "b^c"), (0, "root"), (3, "c")]
    assert restored(projective(tree)) == tree
    assert projective(tree, marked=False)[1] == (3, "b")
    assert Trees([tree]).projective[0][1] == (3, "b")  # the mark is rare
    often = Trees([tree] * FEWEST)
    assert often.projective[0][1] == (3, "b^c")
    assert often.coverage == (FEWEST, 0, 4 * FEWEST, FEWEST)


@pytest.mark.parametrize(
    ("arcs", "message"),
    [
        ([(1, "a")], "found the head 1"),
        ([(2, "a")], "found the head 2"),
        ([("x", "a")], "found the head 'x'"),
        ([("9" * 5000, "a")], "found the head '999"),
        ([("-1", "a")], "found the head '-1'"),
        ([(10**400, "a")], "found the head 1000"),
        ([(0, 3)], "found the label 3"),
        ([3], "found 3"),
        ([(2, "a"), (1, "a")], "cycle"),
    ],
)
def test_bad_trees(arcs, message):
    with pytest.raises(BadData, match=message):
        checked_tree(arcs, 1)


# --------------------------------------------------------------------------- templates


def test_templates_are_parsed_and_written_alike():
    texts = default_templates(("w", "pos", "xpos"))
    parsed = parse_templates(texts)
    assert list(map(str, parsed)) == texts
    assert parse_templates("\n".join(["# all", *texts])) == parsed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("w", r"'\['"),
        ("", "a column's name"),
        ("w[s0]|", "a column's name"),
        ("w[s0]||pos[b0]", "a column's name"),
        ('w[s0]"', "the end"),
        ("near: w[s0]", "found a name"),
        ("w[b\u0663]", "place"),
        ('"\\' * 20_000, "a column's name"),
        ("x" * 1_000_000, r"'\['"),
        ("w[x0]", "place"),
        ("w[s0.l3]", "place"),
        ("w[s9]", "s0 to s7"),
        ("w[b1.l1]", "children"),
        ("label[b1]", "children"),
        ("lefts[s0.l1]", "a word of the stack"),
        ("distance[s0]", "two of"),
        ("lefts.lower[s0]", "no base features"),
        ("label.lower[s0]", "no base features"),
    ],
)
def test_bad_templates(text, expected):
    begun = time.process_time()
    with pytest.raises(BadTemplate, match=expected) as error:
        parse_templates([text])
    assert len(str(error.value)) < 600
    assert time.process_time() - begun < 2.0


def test_too_many_templates():
    places = product(range(8), range(80), range(1, 10))
    windows = [f"w[s{i}]|w[b{j}]|w.prefix{k}[s1]" for i, j, k in places]
    with pytest.raises(BadTemplate, match="expected at most 5000"):
        parse_templates(windows)
    with pytest.raises(BadTemplate, match="found 51 regular expressions"):
        parse_templates([f'w.test("a{i}")[s0]' for i in range(51)])


def test_parts_of_templates_look_at_the_same_words():
    templates = parse_templates([*default_templates(("w", "pos")), *cluster_templates()])
    assert len({*parse_templates([*map(str, templates), *suffix_templates()])}) > len(templates)
    parts = divided(templates)
    assert sorted(str(t) for part in parts for t in part) == sorted(map(str, templates))
    for part in parts[:-1]:
        words = {
            place.partition(".")[0] for t in part for a in t.atoms for place in a.place.split(",")
        }
        of_stack = {word for word in words if word[0] == "s"}
        assert len(of_stack) + any(word[0] == "b" for word in words) <= 2
    assert divided(templates[:3]) == [list(templates[:3])]


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_bundles_of_equal_names_have_equal_features(data):
    """The twin of the memo: what a part writes depends on its name only."""
    problem, encoder = HYBRID.problem, tree_encoder(default_templates(("w", "pos")))
    known: dict[tuple[int, int], list[int]] = {}
    for _ in range(2):
        n = data.draw(st.integers(1, 3))
        items = np.array([data.draw(st.tuples(*[st.integers(-1, 1)] * 2)) for _ in range(n)])
        none = np.zeros(0, np.int64)
        spec = encoder.spec_for(0, None)
        x = Input(items.astype(np.int32), none, np.zeros(0, np.float32), spec)
        limits = np.zeros(len(at.Limit), np.int64)
        problem.limits(x, limits)
        state = np.zeros(limits[at.STATE_SIZE], np.int32)
        problem.initial(x, state)
        while not problem.is_goal(x, state):
            for group in range(int(limits[at.FACTORS]) + 1):
                out = at.Out(np.zeros(limits[at.MAX_FEATURES], np.int64), np.zeros(0))
                found = out.keys[: problem.features(x, state, group, out)].tolist()
                mark = int(problem.name(x, state, group, -1))
                assert known.setdefault((group, mark), found) == found
            steps = [i for i in range(len(OPERATORS)) if problem.allowed(x, state, 0, i)]
            new = np.zeros_like(state)
            problem.apply(x, state, 0, data.draw(st.sampled_from(steps)), new)
            state = new
