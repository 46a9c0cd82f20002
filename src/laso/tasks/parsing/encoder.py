"""Sentences and trees as the arrays of the transition systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from laso.data.table import Data
from laso.engine.layout import Array, Dataset
from laso.features.encoder import ColumnEncoder, require_columns, sentence_starts
from laso.features.keys import string_keys
from laso.features.templates import Atom, Template
from laso.tasks.parsing import configuration as c
from laso.tasks.parsing.operators import HEADS, LABELS, LAST_CHILD, PARTS, UNKNOWN
from laso.tasks.parsing.templates import atom_program, divided, is_input
from laso.tasks.parsing.trees import LIFTED, Tree, unmarked

ARCS = ("left", "right", "root")
DENSE_NAMES = ("s0", "b0", "s1")  # the elements whose words' vectors are features
KINDS = ("shift", *ARCS, "reduce")
"""The kinds of operators; labels follow ARCS, as in ``left nsubj``."""


@dataclass
class ParsingEncoder(ColumnEncoder):
    """Encodes sentences; ``labels`` are the names of operators."""

    single_root: bool = True
    static: bool = False
    arc_labels: dict[str, int] = field(default_factory=dict)
    operators: list[tuple[str, str]] = field(default_factory=list)
    marked: frozenset[str] = frozenset()  # the labels of lifted arcs

    def __post_init__(self) -> None:
        super().__post_init__()
        self.operators = [(kind, arc) for kind, _, arc in (x.partition(" ") for x in self.labels)]
        names = sorted({arc for kind, arc in self.operators if kind in ARCS})
        self.arc_labels = {name: i for i, name in enumerate(names)}
        self.marked = frozenset(name for name in names if LIFTED in name)

    def _is_input(self, atom: Atom) -> bool:
        return is_input(atom)

    def _check_template(self, template: Template) -> None:
        """Nothing is left to check: parsing has done it."""

    def dataset(self, data: Data, gold: Sequence[Array] | None = None) -> Dataset:
        """Return the arrays for the engine; ``gold`` are outputs as ``numbers`` returns them."""
        columns = require_columns(data)
        n = int(columns.lengths.sum())
        starts = sentence_starts(columns.lengths)
        outputs, output_starts = np.zeros(0, np.int32), np.zeros(1, np.int64)
        if gold is not None:
            outputs = np.concatenate(gold) if gold else outputs
            output_starts = PARTS * starts
        return Dataset(
            items=self._column_items(columns, n),
            starts=starts,
            pool=np.zeros(0, np.int64),
            values=np.zeros(0, np.float32),
            spec=self.spec_for(0, None),
            outputs=outputs,
            output_starts=output_starts,
        )

    def arc_label(self, label: str | None) -> int | None:
        """Return the number of an arc label, UNKNOWN for None; None: training has not seen it."""
        if label is None:
            return UNKNOWN
        return self.arc_labels.get(label, self.arc_labels.get(unmarked(label)))

    def numbers(self, tree: Tree) -> Array:
        """Return an output of a projective tree: heads, labels and last children of words."""
        n = len(tree)
        y = np.full((PARTS, n), UNKNOWN, np.int32)
        for i, (head, label) in enumerate(tree):
            if head is not None:
                y[HEADS, i] = head - 1 if head else n
                known = self.arc_label(label)
                y[LABELS, i] = UNKNOWN if known is None else known
                if head:
                    y[LAST_CHILD, head - 1] = i  # the last one stays
        return y.reshape(-1)

    def spec_for(self, longest: int, most: int | None) -> Array:
        """Return the problem's constants."""
        if "spec" not in self._specs:
            self._specs["spec"] = self._make_spec()
        return self._specs["spec"]

    def _make_spec(self) -> Array:
        operators: list[int] = []
        for kind, name in self.operators:
            operators += [KINDS.index(kind), self.arc_labels.get(name, UNKNOWN)]
        parts = divided(self.templates)
        head = [0] * c.HEAD
        head[c.SINGLE_ROOT], head[c.STATIC] = int(self.single_root), int(self.static)
        head[c.OPERATORS], head[c.PARTS] = c.HEAD, c.HEAD + len(operators)
        head[c.N_PARTS] = len(parts)
        head[c.DENSE] = len(DENSE_NAMES) if self.has_vectors else 0
        spec, max_features, end = (
            [*head, *operators],
            0,
            c.HEAD + len(operators) + c.PART * len(parts),
        )
        programs: list[int] = []
        for templates in parts:
            atoms, code = self._programs(templates)
            n = len(atoms) // c.ATOM
            spec += [end + len(programs), n, end + len(programs) + len(atoms), len(templates)]
            programs += [*atoms, *code]
            max_features = max(max_features, len(templates) + n)
        spec[c.MOST] = max_features
        return np.array([*spec, *programs], np.int64)

    def _programs(self, templates: Sequence[Template]) -> tuple[list[int], list[int]]:
        """Return the programs of the atoms of some templates, and those of the templates."""
        views = {key: i for i, key in enumerate(self.views)}
        numbers: dict[tuple[int, int, int, int], int] = {}
        code: list[int] = []
        keys = string_keys([template.identity for template in templates]).tolist()
        for key, template in zip(keys, templates, strict=True):
            code += [key, len(template.atoms)]
            for atom in template.atoms:
                view = 0
                if is_input(atom):
                    view = views[self._column(template, atom.column), atom.bases]
                program = atom_program(atom, view)
                code.append(numbers.setdefault(program, len(numbers)))
        return [number for atom in numbers for number in atom], code
