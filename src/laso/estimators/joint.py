"""Several layers of labels at once: a label of each for every token (section 4.2)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from laso.data.table import Column, Columns, Data, Features, position
from laso.engine.hashing import mix
from laso.engine.layout import Array, Corpus
from laso.errors import BadData, BadModel, quoted
from laso.estimators.base import SequenceEstimator, by_sentence
from laso.estimators.task import WITH_MARGIN, chosen_features, one_by_one, spoken
from laso.estimators.weights import ClassWeight, check_siblings, counted
from laso.features import encode
from laso.features.encode import Encoder
from laso.features.inputs import labels_of, read_input, string_keys
from laso.features.layer_sets import FEATURE_SETS
from laso.features.layers import BETWEEN, JointEncoder, layer_labels, row_labels
from laso.features.templates import BIAS, LABEL, LENGTH, Template
from laso.learn import laso
from laso.queues import MakeQueue
from laso.tasks import tagging
from laso.tasks.joint import Joint
from laso.training import Rule, Strategy

Labels = list[list[tuple[str, ...]]]
Table = Mapping[str | None, Sequence[str | None]]
Pairs = Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]
SEEN = "seen"


class JointTagger(SequenceEstimator):
    """Gives the tokens of sentences a label of each layer; all are chosen together.

    layers       the names of the layers; the last columns of the data, in this order, hold them
    features     "rich" (see laso.features.layer_sets), or templates of your own
    resources    word lists, clusters ... for "rich" (see laso.features.lists)
    constraints  for a layer "BIO", "IOBES", or for each label those that may follow it (None: both
                 ends), as in {"chunk": "BIO"}
    between      for two layers, which labels of the second go with each of the first, as in
                 {"pos": {"chunk": {"NN": ["B-NP", "I-NP"]}}}; labels not named go with any.
                 "seen": those that the data to learn from have together, in any two layers
    queue        the width of a beam whose rounds are words; or beam(5), bounded_best_first(5) ...
    update       None: perceptron(weighting=worst, margin=1.0)

    The other parameters are those of Tagger. Labels are tuples, one label for each layer. The score
    is the tokens whose labels, as far as they are known, are all right.
    """

    task = "joint"

    encoder_: JointEncoder

    def __init__(
        self,
        *,
        layers: Sequence[str],
        features: str | Sequence[str | Template] = "rich",
        resources: Sequence[str] = (),
        constraints: Mapping[str, str | Table] | None = None,
        between: str | Pairs | None = None,
        columns: Sequence[str] | None = None,
        queue: int | MakeQueue = 10,
        update: Rule | None = None,
        strategy: Strategy = laso,
        epochs: int = 10,
        seed: int | None = 0,
        held_out: float | None = None,
        patience: int | None = None,
        average: bool | None = None,
        class_weight: ClassWeight = None,
        hash_bits: int = 0,
        threads: int | None = None,
        dtype: str = "float32",
    ):
        super().__init__(
            columns=columns,
            queue=queue,
            update=update,
            strategy=strategy,
            epochs=epochs,
            seed=seed,
            held_out=held_out,
            patience=patience,
            average=average,
            class_weight=class_weight,
            hash_bits=hash_bits,
            threads=threads,
            dtype=dtype,
        )
        self.layers = layers
        self.features = features
        self.resources = resources
        self.constraints = constraints
        self.between = between

    # ----------------------------------------------------------------------- what the base asks

    def _problem(self, weighted: bool) -> type[Joint]:
        return Joint

    def _rule(self) -> Rule:
        return WITH_MARGIN if self.update is None else self.update

    def _checks(self) -> list[tuple[str, bool, str]]:
        layers = [] if isinstance(self.layers, str) else list(self.layers)
        named = all(isinstance(each, str) and _NAME.fullmatch(each) for each in layers)
        distinct = len(set(layers)) == len(layers) > 1 and not set(layers) & {LABEL, BIAS, LENGTH}
        rules = {} if self.constraints is None else self.constraints
        known = isinstance(rules, Mapping) and all(
            layer in layers and (rule in ("BIO", "IOBES") or isinstance(rule, Mapping))
            for layer, rule in rules.items()
        )
        pairs = {} if self.between is None else self.between
        two = pairs == SEEN
        if isinstance(pairs, Mapping):
            two = all(
                {a, b} <= set(layers) and a != b for a, others in pairs.items() for b in others
            )
        return [
            *super()._checks(),
            ("layers", named and distinct, "two or more names of letters, digits and _"),
            ("constraints", known, "None, or for a layer 'BIO', 'IOBES' or a table"),
            ("between", two, "None, 'seen', or for a layer and another a table"),
            ("resources", not isinstance(self.resources, str), "a list of names or paths"),
        ]

    def _names(self, n: int) -> tuple[str, ...]:
        names = super()._names(n)
        for name in names:
            if name in self.layers:
                raise ValueError(
                    f"found the name {name!r} for a column and for a layer, expected another: "
                    "columns=[...] names those that are no layers"
                )
        return names

    def _read(self, X: Any, y: Any) -> tuple[Data, list[Column]]:
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
            return self._split(data)
        tokens = labels_of(y, data.lengths)
        for i, token in enumerate(tokens):
            if not isinstance(token, (tuple, list)) or len(token) != n:
                raise BadData(
                    f"found {quoted(token)}, expected {n} labels: {', '.join(self.layers)}",
                    **position(data.lengths, i),
                )
        return data, [list(column) for column in zip(*tokens, strict=True)]

    def _split(self, data: Columns) -> tuple[Columns, list[Column]]:
        n = len(self.layers)
        return replace(data, columns=data.columns[:-n]), data.columns[-n:]

    def _inputs(self, data: Data) -> Data:
        n = len(self.encoder_.names) + len(self.layers)
        if isinstance(data, Columns) and len(data.columns) == n:
            return self._split(data)[0]
        return data

    def _labels(self, data: Data, answers: list[Column]) -> list[str]:
        return row_labels(
            {
                layer: encode.distinct_labels(column, data.lengths)
                for layer, column in zip(self.layers, answers, strict=True)
            }
        )

    def _facts(self, data: Data, answers: list[Column]) -> dict[str, Any]:
        if self.between != SEEN:
            return {}
        columns = map(one_by_one, answers)
        return {"between": _together(dict(zip(self.layers, columns, strict=True)))}

    def _wider(self, facts: dict[str, Any]) -> dict[str, Any]:
        if self.between != SEEN:
            return super()._wider(facts)
        return {"between": _joined(self.facts_["between"], facts["between"])}

    def _counts(self, data: Data, answers: list[Column]) -> list[Counter[str]]:
        return [
            Counter({f"{layer}{BETWEEN}{label}": n for label, n in counted(column).items()})
            for layer, column in zip(self.layers, answers, strict=True)
        ]

    def _templates(self, names: tuple[str, ...]) -> str | Sequence[str | Template]:
        return chosen_features(self.features, self.resources, FEATURE_SETS, names, self.layers)

    def _encoder(
        self,
        templates: tuple[Template, ...],
        names: tuple[str, ...],
        labels: tuple[str, ...],
        width: int,
    ) -> Encoder:
        of_layer = layer_labels(labels)
        if set(of_layer) != set(self.layers):
            raise BadModel(f"found labels of {', '.join(of_layer)}, expected {self.layers}")
        within = {
            layer: tagging.constraints(of_layer[layer], given)
            for layer, given in (self.constraints or {}).items()
        }
        pairs = self.facts_.get("between") if self.between == SEEN else self.between or {}
        if not isinstance(pairs, Mapping):
            raise BadModel("found no labels seen together, which the model needs")
        between = {
            (a, b): _flags(of_layer[a], of_layer[b], given)
            for a, others in pairs.items()
            for b, given in others.items()
        }
        widest_first = tuple(row_labels({layer: of_layer[layer] for layer in self.layers}))
        return JointEncoder(templates, names, widest_first, within=within, between=between)

    def _corpus(self, data: Data, answers: list[Column] | None) -> Corpus:
        if answers is None:
            return self.encoder_.corpus(data)
        numbers = []
        for layer in self.encoder_.order:
            column = answers[list(self.layers).index(layer)]
            labels = self.encoder_.of_layer[layer]
            numbers.append(encode.label_numbers(column, labels, data.lengths))
        wanted = np.array(numbers, np.int64)
        if self._has_siblings:
            sizes = np.array(self.encoder_.layers.sizes)
            choices = np.where(wanted < 0, sizes[:, None], 1).prod(axis=0)
            check_siblings(choices, np.any(wanted >= 0, axis=0), data.lengths)
        return self.encoder_.corpus(data, wanted)

    def _found(self, steps: Array, ends: Array) -> Labels:
        found = self.encoder_.found(steps)
        tokens = list(zip(*(found[layer] for layer in self.layers), strict=True))
        return [tokens[a:b] for a, b in pairwise([0, *ends.tolist()])]

    def _constants(self) -> list[int]:
        names = [str(template) for template in self.encoder_.templates]
        if BIAS in names:
            return [mix(int(string_keys([BIAS])[0]), 0)]  # 0: of no combination with other layers
        found = []
        for template in self.encoder_.joint_program:
            if len(template.layers) == 1 and not template.atoms and len(template.history) == 1:
                (layer,), ((other, offset),) = template.layers, template.history
                if (other, offset) == (layer, -1):  # there is always one, even at the beginning
                    n = self.encoder_.layers.sizes[layer]
                    found += [mix(mix(template.key, label), 0) for label in range(-1, n)]
        return found

    def _keeps(self, old: Encoder, new: Encoder) -> bool:
        assert isinstance(old, JointEncoder)
        assert isinstance(new, JointEncoder)
        # Combinations of two other layers and more are numbered by how many labels there are.
        few = all(len(template.layers) <= 2 for template in new.joint_program)
        return old.order == new.order and few

    def _tags_of(self, chunks: bool | str) -> Callable[[Any], Sequence[str]]:
        if chunks not in self.layers:
            raise ValueError(
                f"chunks must be one of the layers {', '.join(self.layers)}, found {chunks!r}"
            )
        i = list(self.layers).index(str(chunks))
        return lambda answer: [labels[i] for labels in answer]

    def _longest(self, name: str) -> int:
        labels = product(*(self.encoder_.of_layer[layer] for layer in self.layers))
        return int(any(spoken(each) == name for each in labels))

    def _wanted(self, data: Data, answers: list[Column]) -> list[Any]:
        columns = [by_sentence(column, data.lengths) for column in answers]
        return [list(zip(*layers, strict=True)) for layers in zip(*columns, strict=True)]

    def _quality(self, wanted: Sequence[Sequence[Any]], found: Labels) -> float:
        right = [
            all(own in (None, guess) for own, guess in zip(a, b, strict=True))
            for labels, guesses in zip(wanted, found, strict=True)
            for a, b in zip(labels, guesses, strict=True)
            if any(own is not None for own in a)
        ]
        return sum(right) / max(1, len(right))


_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _together(columns: Mapping[str, Sequence[str | None]]) -> dict[str, Any]:
    """The labels that words have together, in each two layers."""
    found: dict[str, Any] = {}
    for (a, first), (b, second) in combinations(columns.items(), 2):
        table = found.setdefault(a, {}).setdefault(b, {})
        for x, y in sorted({pair for pair in zip(first, second, strict=True) if None not in pair}):
            table.setdefault(x, []).append(y)
    return found


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The labels that words have together in the one or in the other."""
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
    """Which labels of the second layer go with each of the first."""
    return np.array([[a not in given or b in given[a] for b in second] for a in first], bool)
