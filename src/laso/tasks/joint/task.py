"""The task of ``JointTagger``: several layers of labels at once (section 4.2 of the paper)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from laso.data.table import Column, Columns, Data, Features, position, split_sentences, value_list
from laso.engine.hashing import mix
from laso.engine.layout import Array
from laso.errors import BadData, BadModel, listed, quoted
from laso.features.encoder import ColumnEncoder, distinct_labels, label_numbers
from laso.features.inputs import read_input, read_labels
from laso.features.keys import string_keys
from laso.features.templates import BIAS, LABEL, LENGTH, Template
from laso.params import check_parameters
from laso.queues import MakeQueue, beam
from laso.tasks import displays
from laso.tasks.base import Step
from laso.tasks.batches import Ambiguity
from laso.tasks.constraints import constraints
from laso.tasks.joint.encoder import BETWEEN, JointEncoder, layer_labels, row_labels
from laso.tasks.joint.feature_sets import FEATURE_SETS
from laso.tasks.joint.problem import DenseJoint, Joint
from laso.tasks.sequences import (
    SequenceTask,
    count_labels,
    joined_label,
    resolve_features,
)
from laso.tasks.tagging.task import FollowTable

Labels = list[list[tuple[str, ...]]]
Pairs = Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]
OBSERVED = "observed"
MOST_LAYERS = 16  # more would have too many combinations of labels
LAYERS = f"two or more names of letters, digits and _, at most {MOST_LAYERS}"


class JointTask(SequenceTask):
    """Gives the tokens of sentences a label of each layer; all are chosen together.

    The parameters are those of ``laso.JointTagger``.
    """

    name = "joint"
    problem = Joint
    dense_problem = DenseJoint
    encoder_: JointEncoder
    display = displays.layers

    def __init__(
        self,
        *,
        layers: Sequence[str],
        features: str | Sequence[str | Template] = "rich",
        resources: Sequence[str] = (),
        constraints: Mapping[str, str | FollowTable] | None = None,
        pairs: str | Pairs | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        super().__init__(columns=columns)
        self.layers = layers
        self.features = features
        self.resources = resources
        self.constraints = constraints
        self.pairs = pairs

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        layers = [] if isinstance(self.layers, str) else list(self.layers)
        named = all(isinstance(each, str) and _NAME.fullmatch(each) for each in layers)
        distinct = len(set(layers)) == len(layers) and not set(layers) & {LABEL, BIAS, LENGTH}
        several = 1 < len(layers) <= MOST_LAYERS
        rules = {} if self.constraints is None else self.constraints
        known = isinstance(rules, Mapping) and all(
            layer in layers and (rule in ("BIO", "IOBES") or isinstance(rule, Mapping))
            for layer, rule in rules.items()
        )
        pairs = {} if self.pairs is None else self.pairs
        two = pairs == OBSERVED
        if isinstance(pairs, Mapping):
            two = all(
                {a, b} <= set(layers) and a != b for a, others in pairs.items() for b in others
            )
        check_parameters(
            self,
            [
                ("layers", named and distinct and several, LAYERS),
                ("constraints", known, "None, or for a layer 'BIO', 'IOBES' or a table"),
                ("pairs", two, "None, 'observed', or for a layer and another a table"),
                ("resources", not isinstance(self.resources, str), "a list of names or paths"),
            ],
        )

    def default_queue(self) -> MakeQueue:
        """Return a beam of 10."""
        return beam(10)

    @property
    def n_layers(self) -> int:
        """The number of labels of a token."""
        return len(self.layers)

    def column_names(self, n: int) -> tuple[str, ...]:
        """Return the names of n input columns, which must not be those of layers."""
        names = super().column_names(n)
        for name in names:
            if name in self.layers:
                raise ValueError(
                    f"found the name {quoted(name)} for a column and for a layer, expected "
                    "another: columns=[...] names those that are no layers"
                )
        return names

    # ------------------------------------------------------------------ reading

    def read(self, X: Any, y: Any) -> tuple[Data, list[Column]]:
        """Return sentences and one column of labels for each layer."""
        data = read_input(X)
        n = len(self.layers)
        if isinstance(data, Features):
            raise BadData("found tokens with features of their own, expected words or columns")
        if not data.lengths.sum():
            raise BadData("found no token to learn from, expected at least one")
        if y is None:
            if len(data.columns) <= n:
                raise BadData(
                    f"found {len(data.columns)} columns, expected more than {n}, of which the last "
                    f"are {', '.join(self.layers)}; or y"
                )
            return self.split(data)
        tokens = read_labels(y, data.lengths)
        for i, token in enumerate(tokens):
            if not isinstance(token, (tuple, list)) or len(token) != n:
                raise BadData(
                    f"found {quoted(token)}, expected {n} labels: {', '.join(self.layers)}",
                    **position(data.lengths, i),
                )
        return self._unlabelled(data), [list(column) for column in zip(*tokens, strict=True)]

    def split(self, data: Columns) -> tuple[Columns, list[Column]]:
        """Return the input columns, and one column of labels for each layer."""
        n = len(self.layers)
        return replace(data, columns=data.columns[:-n]), data.columns[-n:]

    def labels_in(self, data: Data, outputs: list[Column]) -> list[str]:
        """Return the labels of all layers, each with the name of its layer."""
        return row_labels(
            {
                layer: distinct_labels(column, data.lengths)
                for layer, column in zip(self.layers, outputs, strict=True)
            }
        )

    def counts_in(self, data: Data, outputs: list[Column]) -> list[Counter[str]]:
        """Return the frequency of each label, for each layer."""
        return [
            Counter({f"{layer}{BETWEEN}{label}": n for label, n in count_labels(column).items()})
            for layer, column in zip(self.layers, outputs, strict=True)
        ]

    def state_with(
        self, state: dict[str, Any] | None, data: Data, outputs: list[Column]
    ) -> dict[str, Any]:
        """Return the observed pairs of labels, if only these are allowed."""
        if self.pairs != OBSERVED:
            return {}
        columns = map(value_list, outputs)
        pairs = _observed_pairs(dict(zip(self.layers, columns, strict=True)))
        return {"pairs": pairs if state is None else _union(state["pairs"], pairs)}

    # ------------------------------------------------------------------ encoding

    def templates(self, names: tuple[str, ...]) -> str | Sequence[str | Template]:
        """Return the feature templates for columns of these names."""
        return resolve_features(self.features, self.resources, FEATURE_SETS, names, self.layers)

    def make_encoder(
        self,
        templates: tuple[Template, ...],
        names: tuple[str, ...],
        labels: tuple[str, ...],
        width: int,
    ) -> ColumnEncoder:
        """Return an encoder; the labels of all layers are sorted into the order of a weight row."""
        of_layer = layer_labels(labels)
        if set(of_layer) != set(self.layers):
            raise BadModel(f"found labels of {listed(of_layer)}, expected {listed(self.layers)}")
        within = {
            layer: constraints(of_layer[layer], given)
            for layer, given in (self.constraints or {}).items()
        }
        pairs = self.state_.get("pairs") if self.pairs == OBSERVED else self.pairs or {}
        if not isinstance(pairs, Mapping):
            raise BadModel("found no labels observed together, which the model needs")
        between = {
            (a, b): _flags(of_layer[a], of_layer[b], given)
            for a, others in pairs.items()
            for b, given in others.items()
        }
        widest_first = tuple(row_labels({layer: of_layer[layer] for layer in self.layers}))
        return JointEncoder(templates, names, widest_first, within=within, between=between)

    def keeps_weights(self, old: ColumnEncoder, new: ColumnEncoder) -> bool:
        """Return whether layers keep their order, and no template connects more than two."""
        assert isinstance(old, JointEncoder)
        assert isinstance(new, JointEncoder)
        # The numbers of combinations of two or more other layers depend on the numbers of labels.
        few = all(len(template.layers) <= 2 for template in new.joint_program)
        return old.order == new.order and few

    def gold_numbers(self, data: Data, outputs: list[Column]) -> Array:
        """Return a row of label numbers for each layer, in the engine's order."""
        numbers = []
        for layer in self.encoder_.order:
            column = outputs[list(self.layers).index(layer)]
            labels = self.encoder_.of_layer[layer]
            numbers.append(label_numbers(column, labels, data.lengths))
        return np.array(numbers, np.int64)

    def ambiguity(self, inputs: Data, outputs: list[Column]) -> Ambiguity | None:
        """Return the number of possible label combinations of each token; None: all are known."""
        gold = self.gold_numbers(inputs, outputs)
        if (gold >= 0).all():
            return None
        sizes = np.array(self.encoder_.layers.sizes)
        choices = np.where(gold < 0, sizes[:, None], 1).prod(axis=0)
        return Ambiguity(choices, np.any(gold >= 0, axis=0), inputs.lengths)

    def decode_all(self, inputs: Any, steps: Array, ends: Array) -> Labels:
        """Return the labels of each token as a tuple, one for each layer."""
        decoded = self.encoder_.decode_layers(steps)
        tokens = list(zip(*(decoded[layer] for layer in self.layers), strict=True))
        return [tokens[a:b] for a, b in pairwise([0, *ends.tolist()])]

    # ------------------------------------------------------------------ names and scores

    def describe_vector(self, number: int) -> str:
        """Return whose vectors have the weights of this number: a token's own."""
        return "vector[0]"

    def describe(self, group: int, label: int) -> Step:
        """Return the labels of one token."""
        (output,) = self.decode_all(None, np.array([[group, label]], np.int32), np.array([1]))
        return Step(joined_label(output[0]))

    def bias_keys(self) -> Sequence[int]:
        """Return the feature key of ``bias``, or the keys of each layer's own previous label."""
        names = [str(template) for template in self.encoder_.templates]
        if BIAS in names:
            return [mix(int(string_keys([BIAS])[0]), 0)]  # 0: no other layers
        keys = []
        for template in self.encoder_.joint_program:
            if len(template.layers) == 1 and not template.atoms and len(template.history) == 1:
                (layer,), ((other, offset),) = template.layers, template.history
                if (other, offset) == (layer, -1):  # every step has it, even the first
                    n = self.encoder_.layers.sizes[layer]
                    keys += [mix(mix(template.key, label), 0) for label in range(-1, n)]
        return keys

    def tags_of(self, layer: bool | str) -> Callable[[Any], Sequence[str]]:
        """Return a function from an output to the labels of a layer."""
        if layer not in self.layers:
            raise ValueError(
                f"chunks must be one of the layers {', '.join(self.layers)}, found {quoted(layer)}"
            )
        i = list(self.layers).index(str(layer))
        return lambda output: [labels[i] for labels in output]

    def longest_step(self, name: str) -> int:
        """Return 1 for a combination of labels of all layers, 0 for any other name."""
        labels = product(*(self.encoder_.of_layer[layer] for layer in self.layers))
        return int(any(joined_label(each) == name for each in labels))

    def gold_outputs(self, inputs: Data, outputs: list[Column]) -> list[Any]:
        """Return the labels of each token as a tuple, one for each layer."""
        columns = [split_sentences(column, inputs.lengths) for column in outputs]
        return [list(zip(*layers, strict=True)) for layers in zip(*columns, strict=True)]

    def score(self, gold: Sequence[Sequence[Any]], predicted: Sequence[Any]) -> float:
        """Return the fraction of tokens whose known labels are all correct."""
        right = [
            all(expected in (None, guess) for expected, guess in zip(a, b, strict=True))
            for labels, guesses in zip(gold, predicted, strict=True)
            for a, b in zip(labels, guesses, strict=True)
            if any(expected is not None for expected in a)
        ]
        return sum(right) / max(1, len(right))


_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _observed_pairs(columns: Mapping[str, Sequence[str | None]]) -> dict[str, Any]:
    """Return the pairs of labels that occur on one token, for any two layers."""
    pairs: dict[str, Any] = {}
    for (a, first), (b, second) in combinations(columns.items(), 2):
        table = pairs.setdefault(a, {}).setdefault(b, {})
        for x, y in sorted({pair for pair in zip(first, second, strict=True) if None not in pair}):
            table.setdefault(x, []).append(y)
    return pairs


def _union(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pairs of labels that occur in either table."""
    return {
        a: {
            b: {
                label: sorted({*first[a][b].get(label, ()), *second[a][b].get(label, ())})
                for label in sorted({*first[a][b], *second[a][b]})
            }
            for b in others
        }
        for a, others in first.items()
    }


def _flags(
    first: Sequence[str], second: Sequence[str], given: Mapping[str, Sequence[str]]
) -> Array:
    """Return flags for the allowed pairs of labels of two layers."""
    return np.array([[a not in given or b in given[a] for b in second] for a in first], bool)
