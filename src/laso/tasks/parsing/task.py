"""The task of ``Parser``: the head of each word, and the label of the arc."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from laso.data.formats import CONLLU, EMPTY, FEATS
from laso.data.reading import contents
from laso.data.table import Columns, Data, Factor, Features, value_list
from laso.engine.layout import Array, Dataset
from laso.engine.problem import CompiledProblem
from laso.errors import BadData, BadModel, listed, quoted
from laso.features.encoder import ColumnEncoder, require_columns
from laso.features.inputs import read_input, read_labels
from laso.features.keys import string_keys
from laso.features.reading import read_column_file, read_table
from laso.features.templates import BIAS, Template
from laso.metrics.trees import tree_scores
from laso.params import check_parameters, is_whole
from laso.queues import MakeQueue, beam
from laso.tasks import displays
from laso.tasks.base import Decision, Step
from laso.tasks.batches import Operator
from laso.tasks.parsing import configuration as c
from laso.tasks.parsing.encoder import ARCS, DENSE_NAMES, ParsingEncoder
from laso.tasks.parsing.names import feature_name
from laso.tasks.parsing.systems import SYSTEMS, System
from laso.tasks.parsing.tags import Tags
from laso.tasks.parsing.templates import (
    RESERVED,
    default_templates,
    feature_templates,
    parse_templates,
    suffix_templates,
)
from laso.tasks.parsing.trees import (
    Coverage,
    Tree,
    Trees,
    checked_tree,
    depth,
    restored,
    unmarked,
)
from laso.tasks.sequences import SequenceTask

ORACLES = ("dynamic", "static")
NAMES = ("w", "pos", "xpos", "feats")
STEPS = 2  # of a path, for each word
MOST_ARCS = 1 << 62
MOST_TAGS = 150  # values of a column of tags; those of others may be any number
NO_ARC = {"shift": "no arc yet", "reduce": "no more children"}
FILE_NAMES = {"w": "form", "pos": "upos"}  # columns of CoNLL-U that have another name here


class Treebank(Columns):
    """The columns of a CoNLL-U file, of which the last two are heads and labels."""


class ParsingTask(SequenceTask):
    """Finds the head of each word of a sentence, and the label of the arc.

    The parameters are those of ``laso.Parser``, but ``tags``, which predicts the columns of tags.
    """

    name = "parsing"
    many_paths = True
    encoder_: ParsingEncoder
    display = displays.tree

    def __init__(
        self,
        *,
        system: str = "arc-eager",
        oracle: str = "static",
        features: str | Sequence[str | Template] | None = None,
        columns: Sequence[str] | None = None,
        pseudo_projective: bool = True,
        tags: Tags | None = None,
    ) -> None:
        super().__init__(columns=columns)
        self.system = system
        self.oracle = oracle
        self.features = features
        self.pseudo_projective = pseudo_projective
        self.tags = tags

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        check_parameters(
            self,
            [
                ("system", self.system in SYSTEMS, f"one of {', '.join(SYSTEMS)}"),
                ("oracle", self.oracle in ORACLES, f"one of {', '.join(ORACLES)}"),
            ],
        )

    @property
    def transitions(self) -> System:
        """The transition system."""
        return SYSTEMS[self.system]

    @property
    def n_tags(self) -> int:
        """The number of columns of tags that are predicted, too."""
        return 0 if self.tags is None else len(self.encoder_.names) - 1

    @property
    def problem(self) -> type[CompiledProblem]:  # type: ignore[override]
        """The search problem."""
        return self.transitions.problem

    @property
    def dense_problem(self) -> type[CompiledProblem]:  # type: ignore[override]
        """The search problem of words with dense vectors."""
        return self.transitions.dense

    def default_queue(self) -> MakeQueue:
        """Return a beam of 8."""
        return beam(8)

    # ------------------------------------------------------------------ reading

    @property
    def n_layers(self) -> int:
        """The number of columns of a tree: head and label."""
        return 2

    def column_names(self, n: int) -> tuple[str, ...]:
        """Return the names of n input columns."""
        if self.columns is None:
            return tuple(NAMES[i] if i < len(NAMES) else str(i) for i in range(n))
        for name in self.columns:
            if name in RESERVED:
                raise ValueError(f"found the column name {name!r}, expected another")
        return super().column_names(n)

    def read_data(self, X: Any, *, named: bool = True) -> Data:
        """Return what the user passed as columns: of a CoNLL-U file inputs, heads and labels.

        Other files are column files, whose last columns are heads and labels.
        """
        if not isinstance(X, (str, os.PathLike)):
            return read_input(X, named=named)
        file, form = contents(X)
        if form.kind != "conllu":
            return read_column_file(file, form)
        table = read_table(file, format="conllu")
        encoder: ParsingEncoder | None = getattr(self, "encoder_", None)
        names = self.columns or (_names_of(table) if encoder is None else encoder.names)
        names = [FILE_NAMES.get(name, name) for name in names]
        for name in names:
            if name not in CONLLU:
                raise BadData(
                    f"found no column {quoted(name)}, expected w, pos or one of "
                    f"{', '.join(CONLLU)}",
                    file=os.fspath(X),
                )
        chosen = [table.columns[CONLLU.index(name)] for name in (*names, "head", "deprel")]
        return Treebank(table.lengths, chosen, table.source, table.lines)

    def read(self, X: Any, y: Any) -> tuple[Data, Trees]:
        """Return sentences and trees; without ``y`` the last columns have heads and labels."""
        data = self.read_data(X)
        if isinstance(data, Features) and not hasattr(self, "encoder_"):
            raise BadData("found tokens with features of their own, expected words or columns")
        data = require_columns(data)
        if not data.lengths.sum():
            raise BadData("found no token to learn from, expected at least one")
        if y is None:
            if len(data.columns) < 3:
                raise BadData(
                    f"found {len(data.columns)} columns, expected words, heads and labels; or y"
                )
            inputs, trees = self.split(data)
        else:
            trees = self._trees(read_labels(y, data.lengths), data.lengths)
            if isinstance(data, Treebank):  # the heads in the file are no input
                inputs = replace(data, columns=data.columns[:-2])
            else:
                inputs = require_columns(self._unlabelled(data))
        if self.tags is None:
            return inputs, trees
        if self.tags.fitted:
            return self.tags.tagged(inputs), trees
        return self.tags.learned(inputs, self.column_names(len(inputs.columns))), trees

    def read_inputs(self, X: Any) -> Data:
        """Return sentences without their trees, and with predicted tags if there are taggers."""
        if self.tags is None:
            return super().read_inputs(X)
        return self.tags.tagged(self._unlabelled(self.read_data(X, named=False)))

    @property
    def ignored_columns(self) -> int:
        """None: columns that are ignored must have heads, which the general code checks."""
        return 0

    def split(self, data: Columns) -> tuple[Columns, Trees]:
        """Return the input columns and the trees, which are the last two columns."""
        arcs = list(zip(*(value_list(column) for column in data.columns[-2:]), strict=True))
        return replace(data, columns=data.columns[:-2]), self._trees(arcs, data.lengths)

    def _unlabelled(self, data: Data) -> Data:
        encoder = getattr(self, "encoder_", None)
        if encoder is None or not isinstance(data, Columns):
            return data
        if len(data.columns) != len(encoder.names) + self.n_layers:
            return data
        heads = data.columns[-2]
        kinds = {*map(_is_head, heads.values if isinstance(heads, Factor) else heads)}
        return replace(data, columns=data.columns[:-2]) if kinds <= {True} else data

    def _trees(self, arcs: Sequence[Any], lengths: Array) -> Trees:
        bounds = enumerate(pairwise([0, *np.cumsum(lengths).tolist()]), start=1)
        return Trees([checked_tree(arcs[a:b], i) for i, (a, b) in bounds], self.pseudo_projective)

    def take(self, inputs: Data, chosen: Sequence[int]) -> Data:
        """Return all inputs, since ``decode_all`` does not use them."""
        return inputs

    # ------------------------------------------------------------------ learning from data

    def labels_in(self, data: Data, outputs: Trees) -> list[str]:
        """Return the names of the operators that lead to the trees."""
        return sorted({*self.transitions.always, *outputs.operators()})

    def counts_in(self, data: Data, outputs: Trees) -> list[Counter[str]]:
        """Return the frequency of each operator that adds an arc; heads alone have none."""
        return [Counter(), outputs.operators()]

    def state_with(
        self, state: dict[str, Any] | None, data: Data, outputs: Trees
    ) -> dict[str, Any]:
        """Return whether trees have a single root, and how many arcs of the trees cross others."""
        before = state or {"single_root": True, "coverage": [0, 0, 0, 0]}
        more = zip(before["coverage"], outputs.coverage, strict=True)
        return {
            "single_root": before["single_root"] and outputs.has_single_roots(),
            "coverage": [a + b for a, b in more],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Check the state, which is from a file."""
        numbers = state.get("coverage")
        whole = isinstance(numbers, list) and all(is_whole(n, 0, MOST_ARCS) for n in numbers)
        if (
            set(state) != {"single_root", "coverage"}
            or type(state["single_root"]) is not bool
            or not whole
            or len(state["coverage"]) != len(Coverage._fields)
        ):
            raise BadModel(f"found the state {quoted(state)}, expected single_root and coverage")

    def keeps_weights(self, old: ColumnEncoder, new: ColumnEncoder) -> bool:
        """Return whether features keep their keys, in which arc labels are numbers."""
        assert isinstance(old, ParsingEncoder)
        assert isinstance(new, ParsingEncoder)
        return super().keeps_weights(old, new) and old.arc_labels == new.arc_labels

    # ------------------------------------------------------------------ encoding

    def templates(self, names: tuple[str, ...]) -> str | Sequence[str | Template]:
        """Return the feature templates for columns of these names."""
        if self.features is not None:
            return self.features
        usual = default_templates(names, getattr(self, "main_", 1))
        more = [*suffix_templates(names[0]), *getattr(self, "of_features_", ())]
        return list(dict.fromkeys([*usual, *more]))

    def _begin(self, data: Data, labels: tuple[str, ...], state: dict[str, Any]) -> None:
        """Choose the templates that depend on the data.

        Most templates look at the column of tags with most values. Morphological features are no
        tags; the most frequent ones have templates of their own.
        """
        columns = [value_list(column) for column in require_columns(data).columns]
        names = self.column_names(len(columns))
        counts = [
            0 if name == FEATS else len(set(column))
            for name, column in zip(names[1:], columns[1:], strict=True)
        ]
        if FEATS in names:
            self.of_features_ = feature_templates(columns[names.index(FEATS)])
        tags = [n if n <= MOST_TAGS else 0 for n in counts]
        self.main_ = 1 + tags.index(max(tags)) if tags else 1
        super()._begin(data, labels, state)

    def parse(self, templates: str | Iterable[str | Template]) -> tuple[Template, ...]:
        """Parse templates of configurations."""
        return parse_templates(templates)

    def make_encoder(
        self,
        templates: tuple[Template, ...],
        names: tuple[str, ...],
        labels: tuple[str, ...],
        width: int,
    ) -> ColumnEncoder:
        """Return an encoder; labels that are no operators of the system raise BadData."""
        always = self.transitions.always
        for label in {*labels, *always}:
            kind, _, arc = label.partition(" ")
            if label not in labels or (label not in always and not (kind in ARCS and arc)):
                raise BadData(
                    f"found the operators {listed(labels)}, expected {', '.join(always)}, and "
                    "others such as 'left nsubj'"
                )
        return ParsingEncoder(
            templates,
            names,
            labels,
            width,
            single_root=self.state_["single_root"],
            static=self.oracle == "static" or not self.transitions.dynamic,
        )

    def gold_numbers(self, data: Data, outputs: Trees) -> Any:
        """Return the trees that are learned from, which are projective."""
        for i, tree in enumerate(outputs.projective, start=1):
            for j, (head, label) in enumerate(tree, start=1):
                if head is not None and self.encoder_.arc_label(label) is None:
                    raise BadData(
                        f"found the label {quoted(label)}, which training has not seen",
                        sentence=i,
                        token=j,
                    )
        return [self.encoder_.numbers(self._reachable(tree)) for tree in outputs.projective]

    def _reachable(self, tree: Tree) -> Tree:
        """Return a tree, or one of unknown arcs if no stack is deep enough for it."""
        if len(tree) <= c.DEEPEST or depth([head for head, _ in tree]) < c.DEEPEST:
            return tree
        return [(None, None)] * len(tree)

    # ------------------------------------------------------------------ outputs

    def gold_outputs(self, inputs: Data, outputs: Trees) -> list[Any]:
        """Return the gold trees."""
        return list(outputs.gold)

    def decode_all(self, inputs: Any, steps: Array, ends: Array) -> list[Tree]:
        """Return the tree of each sentence."""
        operators, marked = self.encoder_.operators, self.encoder_.marked
        path = [operators[label] for label in steps[:, 1].tolist()]
        return [self._tree(path[a:b], marked) for a, b in pairwise([0, *ends.tolist()])]

    def _tree(self, path: Sequence[tuple[str, str]], marked: frozenset[str]) -> Tree:
        """Return the tree to which a path leads; ``marked`` are the labels of lifted arcs."""
        n = len(path) // STEPS
        tree: Tree = [(0, None)] * n
        for arc in self.transitions.arcs(path, n):
            if arc is not None:
                word, head, label = arc
                tree[word] = (0 if head == n else head + 1, label)
        return restored(tree) if any(label in marked for _, label in tree) else tree

    def score(self, gold: Sequence[Tree], predicted: Sequence[Tree]) -> float:
        """Return the labelled attachment score, as the CoNLL 2018 evaluation defines it."""
        return tree_scores(gold, predicted).las / 100

    # ------------------------------------------------------------------ files

    def pack(self, keys: Array | None) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what was learned, and the taggers."""
        header, tensors = super().pack(keys)
        return header, tensors if self.tags is None else tensors | self.tags.pack()

    def pack_plain(
        self, header: dict[str, Any], tensors: dict[str, Array]
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what was learned, and the taggers, for a file without compression."""
        header, tensors = super().pack_plain(header, tensors)
        plain = {} if self.tags is None else self.tags.pack(compress=False)
        return header, tensors | plain

    def unpack(self, header: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Restore what ``pack`` returned."""
        super().unpack(header, tensors)
        if self.tags is not None:
            self.tags.unpack(tensors)

    # ------------------------------------------------------------------ names

    def describe_vector(self, number: int) -> str:
        """Return which element's vectors have the weights of this number."""
        return f"vector {DENSE_NAMES[number]}"

    def describe(self, group: int, label: int) -> Step:
        """Return the name of an operator; SHIFT is about the next word."""
        name = self.encoder_.labels[label]
        return Step(name, int(name == "shift"))

    def path_decisions(self, steps: Sequence[Operator]) -> list[Decision | None]:
        """Return the arcs that steps add, after those that were lifted are put back."""
        path = [self.encoder_.operators[label] for _, label in steps]
        tree = self._tree(path, self.encoder_.marked)
        arcs = self.transitions.arcs(path, len(tree))
        return [
            None if arc is None else (_arc_name(tree[arc[0]]), arc[0], arc[0] + 1) for arc in arcs
        ]

    def step_items(
        self, state: Sequence[int], operator: Operator, position: int
    ) -> tuple[Sequence[Any], int, int]:
        """Return label, head and both of the arc that a step adds, and its word."""
        kind, _, label = self.encoder_.labels[operator[1]].partition(" ")
        arc = self.transitions.new_arc(state, kind)
        if arc is None:
            return [kind], position, position + 1
        word, head = arc
        head = 0 if kind == "root" else head + 1
        relation = unmarked(label)
        return [relation, head, (head, relation)], word, word + 1

    def step_text(
        self, state: Sequence[int], operator: Operator, words: Sequence[str]
    ) -> str | None:
        """Return the arc that a step adds, as in ``dogs: nsubj of bark``."""
        kind, _, label = self.encoder_.labels[operator[1]].partition(" ")
        arc = self.transitions.new_arc(state, kind)
        if arc is None:
            at = state[c.FRONT] if kind == "shift" else state[c.top(state)]
            return f"{words[at]}: {NO_ARC[kind]}"
        word, head = arc
        of = "" if kind == "root" else f" of {words[head]}"
        return f"{words[word]}: {label}{of}"

    def known_gold(self, inputs: Data, known: Any) -> Dataset | None:
        """Return a sentence with the tree of which only some arcs are known."""
        arcs = list(known)
        n = int(require_columns(inputs).lengths.sum())
        if len(arcs) != n:
            raise BadData(f"found {len(arcs)} known arcs for {n} tokens")
        trees = Trees([checked_tree(arcs, 1)], marked=False)
        for operator in trees.operators():
            if operator not in self.encoder_.labels:
                raise BadData(f"found {operator!r} as known, which training has not seen")
        return self.encoder_.dataset(inputs, self.gold_numbers(inputs, trees))

    def evaluation(self, gold: Sequence[Any], predicted: Sequence[Any]) -> Any:
        """Return attachment scores, by label and by length of sentence."""
        return tree_scores([checked_tree(tree, i) for i, tree in enumerate(gold, 1)], predicted)

    def decisions(self, y: Tree) -> set[tuple[str, int, int]] | None:
        """Return the arcs of a tree as (name, word, end)."""
        return {(_arc_name(arc), i, i + 1) for i, arc in enumerate(y)}

    def longest_step(self, name: str) -> int:
        """Return 1 for an operator, 0 for anything else."""
        return int(name in self.encoder_.labels)

    def describe_feature(self, numbers: Sequence[int], items: Array) -> str | None:
        """Return the template with the values of its atoms."""
        return feature_name(self.encoder_, numbers)

    def feature_names(self, keys: Array) -> dict[int, str]:
        """Return no names: they need a configuration."""
        return {}

    def bias_keys(self) -> Sequence[int]:
        """Return the feature key of ``bias``, if there is one."""
        if BIAS in map(str, self.encoder_.templates):
            return [int(string_keys([BIAS])[0])]
        return []


def _is_head(value: Any) -> bool:
    """Return whether a value may be the head of a word."""
    if isinstance(value, str):
        return value.isdecimal() or value == "_"
    return value is None or is_whole(value, 0)


def _names_of(table: Columns) -> tuple[str, ...]:
    """Return the columns of a treebank to learn from: with its features, if it has any."""
    feats = value_list(table.columns[CONLLU.index(FEATS)])
    return NAMES if set(feats) - {EMPTY} else NAMES[:-1]


def _arc_name(arc: tuple[Any, Any]) -> str:
    return f"{arc[0]} {arc[1]}"
