"""Sentences as arrays for the joint problem: several layers of labels.

In these templates a layer is a column with its current (offset 0) and earlier labels:

    w[-1]                       for each layer separately, as in a tagger
    label[-1]                   for each layer with its own previous label
    pos[0]|w.suffix4[0]         for the layer pos only
    pos[0]|chunk[0]|w[1]        for both at once
    chunk[0]|pos[-1]|chunk[-1]  for the layer chunk, with the previous labels of both
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from laso.data.table import Data, position
from laso.engine.layout import Array, Dataset
from laso.errors import BadData, BadTemplate, quoted
from laso.features.encoder import ColumnEncoder, require_columns, sentence_starts
from laso.features.keys import string_keys
from laso.features.templates import LABEL, Atom, Template, shown
from laso.locks import cached_property
from laso.tasks.constraints import Constraints, check_labels
from laso.tasks.joint.layers import JointTemplate, Layers, Pair
from laso.tasks.joint.problem import EACH_BLOCK, N_FACTOR_GROUPS, make_spec

BETWEEN = "="  # separates a layer and its label in the names of a row's labels


def row_labels(of_layer: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the labels of all layers in the order of a weight row: the largest layer first."""
    widest = sorted(of_layer, key=lambda layer: -len(of_layer[layer]))
    return [f"{layer}{BETWEEN}{label}" for layer in widest for label in of_layer[layer]]


def layer_labels(labels: Sequence[str]) -> dict[str, list[str]]:
    """Return the labels of each layer from the names of ``row_labels``."""
    of_layer: dict[str, list[str]] = {}
    for label in labels:
        layer, _, name = label.partition(BETWEEN)
        of_layer.setdefault(layer, []).append(name)
    return of_layer


@dataclass
class JointEncoder(ColumnEncoder):
    """Encodes sentences with several labels a word.

    ``labels`` are those of a weight row, ``within`` the constraints of each layer, ``between``
    flags for the allowed pairs of labels of two layers.
    """

    within: Mapping[str, Constraints] = field(default_factory=dict)
    between: Mapping[tuple[str, str], Array] = field(default_factory=dict)

    @cached_property
    def of_layer(self) -> dict[str, list[str]]:
        """The labels of each layer, in the order of the engine's layers."""
        return layer_labels(self.labels)

    @cached_property
    def order(self) -> list[str]:
        """The layers in the order of the engine."""
        return list(self.of_layer)

    @cached_property
    def layers(self) -> Layers:
        """The sizes and constraints of the layers, for ``make_spec``."""
        pairs = []
        for (a, b), flags in self.between.items():
            first, second = self.order.index(a), self.order.index(b)
            swapped = first > second
            pair = Pair(second, first, flags.T) if swapped else Pair(first, second, flags)
            pairs.append(pair)
        return Layers(
            [len(labels) for labels in self.of_layer.values()],
            {self.order.index(layer): rules for layer, rules in self.within.items()},
            pairs,
        )

    def _is_input(self, atom: Atom) -> bool:
        return super()._is_input(atom) and atom.column not in self.of_layer

    def _check_template(self, template: Template) -> None:
        super()._check_template(template)
        for atom in template.atoms:
            if atom.column in self.of_layer and (atom.bases or atom.offset > 0):
                raise BadTemplate(
                    f"template {shown(template)}: found {quoted(str(atom))}, expected a layer "
                    "without base features and an offset up to 0, for labels after are not known"
                )

    @cached_property
    def joint_program(self) -> list[JointTemplate]:
        """The templates as numbers, for ``make_spec``."""
        views = {key: i for i, key in enumerate(self.views)}
        templates = [each for template in self.templates for each in self._for_layers(template)]
        program = []
        keys = string_keys([template.identity for template in templates]).tolist()
        for key, template in zip(keys, templates, strict=True):
            words = [
                (views[self._column(template, atom.column), atom.bases], atom.offset)
                for atom in template.atoms
                if self._is_input(atom)
            ]
            labels = [
                (self.order.index(atom.column), atom.offset)
                for atom in template.atoms
                if atom.column in self.of_layer
            ]
            about = frozenset(layer for layer, offset in labels if offset == 0)
            before = [(layer, offset) for layer, offset in labels if offset < 0]
            program.append(JointTemplate(key, about, words, before))
        return program

    def _for_layers(self, template: Template) -> Iterator[Template]:
        """Yield a template; one with ``label`` becomes a template for each layer."""
        if all(atom.column != LABEL for atom in template.atoms):
            yield template
            return
        for layer in self.order:
            others = [
                replace(atom, column=layer) if atom.column == LABEL else atom
                for atom in template.atoms
            ]
            yield Template((Atom(layer, (), 0), *others), template.name)

    def templates_by_key(self) -> dict[int, Template]:
        """Return the templates by their root keys: words, previous labels, then a current label.

        The current label of a template's first layer selects the weight in a row, and is no value.
        Templates of more than two layers are left out, since one number encodes their labels.
        """
        by_key: dict[int, Template] = {}
        templates = [each for template in self.templates for each in self._for_layers(template)]
        keys = string_keys([template.identity for template in templates]).tolist()
        for key, template in zip(keys, templates, strict=True):
            words = [atom for atom in template.atoms if self._is_input(atom)]
            labels = [atom for atom in template.atoms if atom.column in self.of_layer]
            before = [atom for atom in labels if atom.offset < 0]
            present = sorted({self.order.index(atom.column) for atom in labels if not atom.offset})
            others = [Atom(self.order[layer], (), 0) for layer in present[1:]]
            if len(others) < 2:
                atoms = (*words, *before, *others)
                text = str(template) if template.atoms and not atoms else ""
                name = template.name or text
                by_key.setdefault(key, Template(atoms, name))
        return by_key

    def trailing_values(self, template: Template) -> list[Array]:
        """Return 0 for templates without the current label of another layer."""
        last = template.atoms[-1] if template.atoms else None
        other = last is not None and last.column in self.of_layer and not last.offset
        return [] if other else [np.zeros(1, np.int64)]

    def dataset(self, data: Data, gold: Array | None = None) -> Dataset:
        """Return the arrays for the engine; ``gold`` has a row of labels for each layer."""
        data = require_columns(data)
        lengths = data.lengths
        starts = sentence_starts(lengths)
        n = int(starts[-1])
        outputs = np.full(n, -1, np.int64)
        spec = self.spec(int(lengths.max(initial=1)))
        if gold is not None:
            self._check_gold(gold, lengths)
            outputs = self.layers.pack(gold)
            partly = (gold < 0).any(axis=0)
            if partly.any():
                flags = self._reachable_labels(gold, starts)[partly]
                sets, numbers = np.unique(flags, axis=0, return_inverse=True)
                outputs[partly] = -2 - numbers.ravel()
                spec = np.concatenate([spec, sets.ravel().astype(np.int64)])
        return Dataset(
            self._column_items(data, n),
            starts,
            np.zeros(0, np.int64),
            np.zeros(0, np.float32),
            spec,
            outputs.astype(np.int32),
            starts,
        )

    def spec(self, longest: int = 1) -> Array:
        """Return the problem's constants; arrays are cached, which makes short calls faster."""
        room = 1 << longest.bit_length() if self.within else 1
        if room not in self._specs:
            spec = make_spec(self.layers, self.joint_program, longest=room)
            if self.has_vectors and spec[EACH_BLOCK] < 0:
                raise BadTemplate(
                    "found no template of words and one label, expected at least one for words "
                    "that have vectors, such as label[0] w[0]"
                )
            self._specs[room] = spec
        return self._specs[room]

    def labels_of(self, column: str) -> Sequence[str]:
        """Return the labels of a layer; empty for an input column."""
        return self.of_layer.get(column, ())

    def spec_for(self, longest: int, most: int | None) -> Array:
        """Return the constants for this length; tokens have no feature lists here."""
        return self.spec(longest)

    def decode_layers(self, steps: Array) -> dict[str, list[str]]:
        """Return the labels in each layer of operators (group, label)."""
        codes = self.layers.unpack(steps, int(self.spec()[N_FACTOR_GROUPS]))
        return {
            layer: np.array(labels, dtype=object)[code].tolist()
            for (layer, labels), code in zip(self.of_layer.items(), codes, strict=True)
        }

    def _reachable_labels(self, gold: Array, starts: Array) -> Array:
        """Return flags for the labels of each word from which the known labels are reachable."""
        layers = []
        for (layer, labels), of_gold in zip(self.of_layer.items(), gold, strict=True):
            flags = (of_gold < 0)[:, None] | (np.arange(len(labels)) == of_gold[:, None])
            sentences = np.searchsorted(starts, np.flatnonzero(of_gold < 0), side="right") - 1
            for i in np.unique(sentences).tolist() if layer in self.within else ():
                inside = slice(starts[i], starts[i + 1])
                good = self.within[layer].good_sets(of_gold[inside])
                if good is None:
                    raise BadData(
                        f"no labels of {layer} between those known keep the constraints",
                        sentence=i + 1,
                    )
                flags[inside] = good
            layers.append(flags)
        return np.concatenate(layers, axis=1)

    def _check_gold(self, gold: Array, lengths: Array) -> None:
        """Raise BadData if the gold labels violate the constraints."""
        starts = sentence_starts(lengths)
        for layer, rules in self.within.items():
            of_gold = gold[self.order.index(layer)]
            check_labels(rules, self.of_layer[layer], of_gold, starts)
        if self.layers.pairs and len(gold[0]) and gold.min() < 0:
            i = int(np.argmin(gold.min(axis=0)))
            raise BadData(
                "found None, expected a label of each layer, for there are constraints between "
                "layers",
                **position(lengths, i),
            )
        for first, second, flags in self.layers.pairs:
            bad = flags[gold[first], gold[second]] == 0
            if bad.any():
                i = int(np.argmax(bad))
                a, b = (
                    f"{layer} {self.of_layer[layer][gold[number][i]]}"
                    for number, layer in ((n, self.order[n]) for n in (first, second))
                )
                raise BadData(
                    f"found {a} with {b}, which the constraints forbid", **position(lengths, i)
                )
