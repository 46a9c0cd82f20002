"""Clustering item by item: paths, goodness and features, against brute force."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso.engine.costs import with_costs
from laso.engine.key_origins import numbers_of, recorded
from laso.engine.layout import Array, Input
from laso.engine.reference import Reference, State, input_of, output_of
from laso.features.templates import Atom
from laso.tasks.clustering.comparisons import OUTCOMES, numbered_values, outcomes_of
from laso.tasks.clustering.encoder import Candidates, ClusteringEncoder
from laso.tasks.clustering.fields import Document
from laso.tasks.clustering.problem import (
    CANDIDATES,
    JOIN,
    LAST_USE,
    NEW,
    PLACED,
    Clustering,
    members_of,
)
from laso.tasks.clustering.task import by_appearance, clusters_of, first_members
from laso.tasks.clustering.templates import parse_templates
from tests.clustering_inputs import FIELDS, TEMPLATES, Drawn, drawn
from tests.spaces import quick

REFERENCE = Reference(Clustering, 2)
Step = tuple[int, int]


class Path(NamedTuple):
    """Steps that place all items, and the state before each."""

    steps: list[Step]
    states: list[State]


def paths(x: Input) -> Iterator[Path]:
    """All ways to place the items of an input."""
    front = [Path([], [REFERENCE.initial(x)])]
    while front:
        steps, states = front.pop()
        if REFERENCE.is_goal(x, states[-1]):
            yield Path(steps, states[:-1])
            continue
        for step in REFERENCE.operators(x, states[-1]):
            front.append(Path([*steps, step], [*states, REFERENCE.apply(x, states[-1], step)]))


def partitions(n: int) -> Iterator[list[int]]:
    """All partitions of n items, as the number of each item's part by first appearance."""
    if n == 0:
        yield []
    for before in partitions(n - 1) if n else ():
        for part in range(max(before, default=-1) + 2):
            yield [*before, part]


def compared(x: Input, i: int) -> list[int]:
    """Return the candidates of an item, from the pool."""
    size = 1 + int(x.spec[0])
    begin = int(x.items[i, 0]) + size
    others: list[int] = x.pool[begin : begin + size * int(x.items[i, CANDIDATES]) : size].tolist()
    return others


def parts_of(numbers: list[int]) -> list[list[int]]:
    """Return the items of each part."""
    return [[i for i, k in enumerate(numbers) if k == part] for part in sorted({*numbers})]


def goodness(x: Input, y: Array, path: Path) -> list[bool]:
    """Return for each step whether it is good."""
    rows = [np.array(state.row, np.int32) for state in path.states]
    return [Clustering.is_good(x, y, r, *s) for r, s in zip(rows, path.steps, strict=True)]


# --------------------------------------------------------------------------- paths and goodness


@quick
@given(drawn(most=4, documents=1))
def test_every_partition_that_may_be_has_one_path(case: Drawn):
    x, [document] = input_of(case.dataset, 0), case.documents
    n, found = len(document), [clusters_of(path.steps) for path in paths(x)]
    values = document.column("c", "category")

    def may_be(numbers: list[int]) -> bool:
        for part in parts_of(numbers):
            if not all({*compared(x, i)} & {*part} for i in part[1:]):
                return False
            known = [values[i] for i in part if values[i] is not None]
            if case.encoder.different and len({*known}) < len(known):
                return False
        return True

    assert sorted(found) == [numbers for numbers in partitions(n) if may_be(numbers)]


@pytest.mark.parametrize(("n", "number"), [(0, 1), (1, 1), (2, 2), (3, 5), (4, 15), (5, 52)])
def test_with_all_candidates_all_partitions_are_reached(n, number):
    encoder = ClusteringEncoder(FIELDS, parse_templates(["bias"]))
    x = input_of(encoder.dataset([Document([{"c": "x"}] * n)]), 0)
    assert len(list(paths(x))) == number


@quick
@given(drawn(most=4, documents=1, partial=True), st.data())
def test_a_path_is_good_while_a_partition_of_the_known_items_is_ahead(case: Drawn, data):
    """All items are compared, and none must be apart: goodness is reachability."""
    encoder = ClusteringEncoder(FIELDS, case.encoder.templates)
    dataset = encoder.dataset(case.documents, case.gold)
    x, y, [gold] = input_of(dataset, 0), output_of(dataset, 0), case.gold
    known = [i for i, k in enumerate(gold) if k is not None]
    every = list(paths(x))

    def fits(path: Path) -> bool:
        numbers = clusters_of(path.steps)
        return all((numbers[i] == numbers[j]) == (gold[i] == gold[j]) for i in known for j in known)

    good = {tuple(path.steps) for path in every if fits(path)}
    ahead = {steps[:i] for steps in good for i in range(len(steps) + 1)}
    for path in every:
        steps = path.steps
        for i, is_good in enumerate(goodness(x, y, path)):
            if tuple(steps[:i]) in ahead:  # of other states nothing is promised
                assert is_good == (tuple(steps[: i + 1]) in ahead)


@quick
@given(drawn(most=4, documents=1, partial=False))
def test_one_path_is_good_if_all_is_known(case: Drawn):
    x, y, [gold] = input_of(case.dataset, 0), output_of(case.dataset, 0), case.gold
    firsts: list[int] = []  # gold clusters fall apart where no candidate is of them
    for i in range(len(gold)):
        same = [j for j in compared(x, i) if gold[j] == gold[i]]
        firsts.append(firsts[same[-1]] if same else i)
    for path in paths(x):
        rows = [np.array(state.row, np.int32) for state in path.states]
        good = goodness(x, y, path)
        losses = [
            Clustering.loss(x, y, row, *step, was_good=True, good=each)
            for row, step, each in zip(rows, path.steps, good, strict=True)
        ]
        assert all(good) == (first_members(path.steps) == firsts)
        assert losses == [0.0 if each else 1.0 for each in good]


@settings(quick, max_examples=150)
@given(drawn(most=5, documents=1), st.randoms(use_true_random=False))
def test_a_good_state_has_a_good_step_and_none_that_gold_contradicts(case: Drawn, random):
    x, y, [gold] = input_of(case.dataset, 0), output_of(case.dataset, 0), case.gold
    state, steps = REFERENCE.initial(x), list[Step]()
    while not REFERENCE.is_goal(x, state):
        row, i = np.array(state.row, np.int32), len(steps)
        good = [s for s in REFERENCE.operators(x, state) if Clustering.is_good(x, y, row, *s)]
        assert good
        for group, label in good:
            if label == JOIN and gold[i] is not None:
                [part] = [part for part in parts_of(clusters_of(steps)) if group in part]
                ids = [gold[j] for j in part if x.items[j, LAST_USE] >= i]
                nearest = [j for j in compared(x, i) if gold[j] == gold[i]][-1:]
                assert {*ids} <= {None, gold[i]} or {*nearest} & {*part}
        steps.append(random.choice(good))
        state = REFERENCE.apply(x, state, steps[-1])


def good_groups(encoder: ClusteringEncoder, values: str, gold: list[Any]) -> list[int]:
    """Place all items but the last into one cluster; return the good groups of the last."""
    document = Document([{"c": value} for value in values])
    dataset = encoder.dataset([document], [gold])
    x, y = input_of(dataset, 0), output_of(dataset, 0)
    state = REFERENCE.initial(x)
    for i in range(len(values) - 1):
        step = (0, JOIN) if i else (0, NEW)
        assert Clustering.is_good(x, y, np.array(state.row, np.int32), *step)
        state = REFERENCE.apply(x, state, step)
    row = np.array(state.row, np.int32)
    steps = REFERENCE.operators(x, state)
    return [group for group, label in steps if Clustering.is_good(x, y, row, group, label)]


def test_a_member_that_is_not_compared_may_be_of_another_gold_cluster():
    lists = Candidates(choose=lambda items: [[], [0], [0]])
    encoder = ClusteringEncoder(FIELDS, parse_templates(["bias"]), lists)
    assert good_groups(encoder, "xyz", [None, "a", "b"]) == [2]
    assert good_groups(encoder, "xyz", [None, "a", None]) == [0, 2]
    assert good_groups(encoder, "xyz", [None, None, "b"]) == [0, 2]


def test_a_member_of_no_known_cluster_may_keep_an_item_from_its_own():
    encoder = ClusteringEncoder(FIELDS, parse_templates(["bias"]), different="c")
    assert good_groups(encoder, "xyx", [None, "a", "a"]) == [2]
    plain = ClusteringEncoder(FIELDS, parse_templates(["bias"]))
    assert good_groups(plain, "xyx", [None, "a", "a"]) == [1]


def test_a_step_costs_what_its_right_label_costs():
    encoder = ClusteringEncoder(FIELDS, parse_templates(["bias"]))
    gold = [0, 0, 1]
    dataset = encoder.dataset([Document([{"c": "x"}] * 3)], [gold])
    dataset = with_costs(dataset, ["join", "new"], {"join": 3.0, "new": 0.5})
    x, y = input_of(dataset, 0), output_of(dataset, 0)
    for path in paths(x):
        rows = [np.array(state.row, np.int32) for state in path.states]
        for i, (row, step) in enumerate(zip(rows, path.steps, strict=True)):
            good = Clustering.is_good(x, y, row, *step)
            cost = Clustering.loss(x, y, row, *step, was_good=True, good=good)
            assert cost == (0.0 if good else [0.5, 3.0, 0.5][i])


# --------------------------------------------------------------------------- features


class Twin:
    """The features of a step, from the docstring of ``laso.tasks.clustering.templates``."""

    def __init__(self, encoder: ClusteringEncoder, document: Document, x: Input) -> None:
        self.encoder, self.document, self.x = encoder, document, x

    def value(self, name: str, i: int) -> str:
        value = self.document.column(name, FIELDS[name])[i]
        return "missing" if value is None else str(value)

    def outcome(self, atom: Atom, i: int, j: int) -> set[str]:
        (comparison,) = atom.bases
        distinct, codes = numbered_values(self.document.column(atom.column, FIELDS[atom.column]))
        [outcome] = outcomes_of(comparison, distinct, codes[[i]], codes[[j]])
        return {OUTCOMES[comparison][outcome]} if outcome >= 0 else set()

    def shown(self, atom: Atom, outcomes: set[str]) -> str:
        names = [name for name in OUTCOMES[atom.bases[0]] if name in outcomes]
        return f"{atom}={'/'.join(names) or '?'}"

    def of_pairs(self, atom: Atom, i: int, before: list[int]) -> str:
        candidates = compared(self.x, i)
        others = {
            "last": before[-1:],
            "first": [j for j in before[:1] if j in candidates],
            "earlier": candidates,
        }.get(str(atom.place), [j for j in before if j in candidates])
        if not others and atom.place != "earlier":
            return f"{atom}=none"
        each = [self.outcome(atom, i, j) for j in others]
        every = set().union(*each)
        if atom.place == "all":
            every = {o for o in every if all(o in outcomes for outcomes in each)}
        elif atom.place == "most":
            every = {o for o in every if 2 * sum(o in outcomes for outcomes in each) >= len(each)}
        return self.shown(atom, every)

    def of_values(self, atom: Atom, i: int, before: list[int]) -> str:
        if atom.place == "item":
            return f"{atom}={self.value(atom.column, i)}"
        if atom.place == "first":
            return f"{atom}={self.value(atom.column, before[0])}"
        if atom.place == "latest":
            near = list(takewhile(lambda j: self.is_known(i, j), reversed(before)))
            known = [self.value(atom.column, j) for j in near]
            return f"{atom}={next((value for value in known if value != 'missing'), 'none')}"
        back = 1 - atom.offset
        reached = all(self.is_known(i, j) for j in before[len(before) - back + 1 :])
        if len(before) < back or not reached:
            return f"{atom}=none"
        return f"{atom}={self.value(atom.column, before[-back])}"

    def is_known(self, i: int, j: int) -> bool:
        return bool(self.x.items[j, LAST_USE] >= i)

    def count(self, name: str, i: int, before: list[int], parts: list[list[int]]) -> int:
        if name == "size":
            return len(before)
        if name == "rank":
            later = [part for part in parts if before[0] not in part]
            return sum(any(j > before[-1] for j in compared(self.x, i) if j in p) for p in later)
        recent = [j for j in before if i - j <= 16]
        while recent and not all(self.is_known(i, j) for j in recent):
            recent.pop(0)
        return len(recent)

    def atom(self, atom: Atom, i: int, before: list[int], parts: list[list[int]]) -> str:
        if atom.column in ("size", "rank", "recent"):
            n = min(9, self.count(atom.column, i, before, parts))
            return f"{atom}={n}" + "+" * (n == 9)
        return (self.of_pairs if atom.bases else self.of_values)(atom, i, before)

    def features(self, steps: list[Step], step: Step) -> list[list[str]]:
        """Return the atoms of each feature of a step after others."""
        i, (group, label) = len(steps), step
        parts = parts_of(clusters_of(steps))
        before = next(([j for j in p if j <= group] for p in parts if group in p), [])
        named = []
        for template in self.encoder.templates:
            looks = any(atom.place not in ("item", "earlier") for atom in template.atoms)
            if looks == (label == JOIN) or not template.atoms:
                atoms = sorted(self.atom(atom, i, before, parts) for atom in template.atoms)
                named.append(atoms or [str(template)])
        return sorted(named)


def random_steps(x: Input, random: Any) -> Iterator[tuple[list[Step], State]]:
    """Yield the states of a random path, and the steps to them."""
    state, steps = REFERENCE.initial(x), list[Step]()
    while not REFERENCE.is_goal(x, state):
        yield list(steps), state
        steps.append(random.choice(list(REFERENCE.operators(x, state))))
        state = REFERENCE.apply(x, state, steps[-1])


def check_features(case: Drawn, random: Any) -> None:
    problem, origins = recorded(Clustering)
    noting = Reference(problem, 2)
    for number, document in enumerate(case.documents):
        x = input_of(case.dataset, number)
        twin = Twin(case.encoder, document, x)
        for steps, state in random_steps(x, random):
            for step in REFERENCE.operators(x, state):
                keys = noting.features(x, state, step)
                names = [case.encoder.feature_name(numbers_of(key, origins)) for key, _ in keys]
                found = sorted(sorted(str(name).split("|")) for name in names)
                expected = twin.features(steps, step)
                differ = [pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]]
                assert not differ, (steps, step)


@quick
@given(drawn(most=7, documents=1, templates=TEMPLATES), st.randoms(use_true_random=False))
def test_features_are_what_templates_say(case: Drawn, random):
    check_features(case, random)


@pytest.mark.parametrize("window", [3, 9, 70])
def test_features_of_large_clusters(window):
    """Counts of members end at 9; those of common outcomes are exact up to 63 members."""
    random = np.random.default_rng(window)
    rows = [
        {"c": "xy"[k], "n": int(k), "s": list("uv"[:k])}
        for k in (random.random(66) < np.linspace(0, 1, 66)).astype(int)
    ]
    texts = [t for t in TEMPLATES if not t.startswith(("t", "p")) and "|t" not in t]
    encoder = ClusteringEncoder(FIELDS, parse_templates(texts), Candidates(window))
    dataset = encoder.dataset([Document(rows)], [[0] * len(rows)])
    document = Document(rows)
    x, twin = input_of(dataset, 0), Twin(encoder, document, input_of(dataset, 0))
    problem, origins = recorded(Clustering)
    noting, state, steps = Reference(problem, 2), REFERENCE.initial(x), list[Step]()
    for i in range(len(rows)):
        joins = [s for s in REFERENCE.operators(x, state) if s[1] == JOIN]
        step = joins[random.integers(len(joins))] if joins and i % 22 != 4 else (i, NEW)
        if i > 50 or i % 5 == 0:
            names = [
                encoder.feature_name(numbers_of(key, origins))
                for key, _ in noting.features(x, state, step)
            ]
            found = sorted(sorted(str(name).split("|")) for name in names)
            assert found == twin.features(steps, step)
        steps.append(step)
        state = REFERENCE.apply(x, state, step)


@quick
@given(drawn(most=5, documents=2, templates=TEMPLATES), st.booleans())
def test_equal_names_have_equal_features(case: Drawn, twice: bool):
    documents = case.documents * (1 + twice)
    dataset = case.encoder.dataset(documents)
    named: dict[int, dict[Any, float]] = {}
    for number in range(len(documents)):
        x = input_of(dataset, number)
        for path in list(paths(x))[:40]:
            for state, i in zip(path.states, range(len(path.steps)), strict=True):
                row = np.array(state.row, np.int32)
                assert row[PLACED] == i
                for group, label in REFERENCE.operators(x, state):
                    features = REFERENCE.features(x, state, (group, label))
                    name = Clustering.name(x, row, group, -1)
                    assert name != 0
                    assert named.setdefault(name, features) == features
    if twice:  # nodes of equal documents share their sums
        n = len(case.documents)
        for number in range(n):
            first, second = input_of(dataset, number), input_of(dataset, n + number)
            at = np.column_stack([first.items[:, 0], second.items[:, 0]])
            assert first.pool[at[:, 0]].tolist() == second.pool[at[:, 1]].tolist()


@quick
@given(drawn(most=6, documents=1), st.randoms(use_true_random=False))
def test_a_state_remembers_what_is_in_use(case: Drawn, random):
    x = input_of(case.dataset, 0)
    for steps, state in random_steps(x, random):
        parts = parts_of(clusters_of(steps))
        for group, label in REFERENCE.operators(x, state):
            if label == JOIN:
                [part] = [part for part in parts if group in part]
                in_use = [j for j in part if x.items[j, LAST_USE] >= len(steps)]
                assert set(in_use) <= set(members_of(list(state.row), group)) <= set(part)


def test_a_template_without_atoms_scores_every_step():
    encoder = ClusteringEncoder(FIELDS, parse_templates(["bias", "c.equal[last]"]))
    x = input_of(encoder.dataset([Document([{"c": "x"}, {"c": "y"}])]), 0)
    state = REFERENCE.apply(x, REFERENCE.initial(x), (0, NEW))
    assert [len(REFERENCE.features(x, state, step)) for step in ((0, JOIN), (1, NEW))] == [2, 1]


def test_names_of_values_that_training_has_not_seen():
    encoder = ClusteringEncoder(FIELDS, parse_templates(["c[item]", "c[last]|c[item]"]))
    encoder.dataset([Document([{"c": "x"}])], [[0]])
    document = Document([{"c": "new"}, {"c": None}])
    x = input_of(encoder.dataset([document]), 0)
    problem, origins = recorded(Clustering)
    noting, state = Reference(problem, 2), REFERENCE.apply(x, REFERENCE.initial(x), (0, NEW))
    names = [
        encoder.feature_name(numbers_of(key, origins))
        for key, _ in noting.features(x, state, (0, JOIN))
    ]
    assert names == ["c[last]=?|c[item]=missing"]
    assert encoder.feature_name([12345]) is None


# --------------------------------------------------------------------------- outputs


def test_outputs_have_numbers_by_first_appearance():
    assert by_appearance(["b", 3, "b", None]) == [0, 1, 0, 2]
    assert clusters_of([]) == []
