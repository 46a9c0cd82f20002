"""The task of ``Tagger``: one label for each token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from laso.data.table import Column, Data
from laso.engine.layout import Array, Dataset
from laso.engine.problem import CompiledProblem
from laso.engine.text.layout import AS_DICT, AS_LIST
from laso.features.encoder import ColumnEncoder, label_numbers
from laso.features.templates import Template, default_templates
from laso.metrics.evaluation import main_score
from laso.params import check_parameters, is_whole
from laso.tasks.base import Step
from laso.tasks.batches import Ambiguity
from laso.tasks.constraints import constraints
from laso.tasks.sequences import SequenceTask, resolve_features
from laso.tasks.tagging.encoder import TaggingEncoder
from laso.tasks.tagging.problem import (
    DenseTagging,
    DenseWeightedTagging,
    Tagging,
    WeightedTagging,
)

Labels = list[list[str]]
WIDEST = 10  # neighbours on either side whose vectors are features
FollowTable = Mapping[str | None, Sequence[str | None]]


class TaggingTask(SequenceTask):
    """Labels the tokens of sentences from left to right.

    The parameters are those of ``laso.Tagger``.
    """

    name = "tagging"
    problem = Tagging
    encoder_: TaggingEncoder

    def __init__(
        self,
        *,
        features: str | Sequence[str | Template] | None = None,
        resources: Sequence[str] = (),
        columns: Sequence[str] | None = None,
        constraints: str | FollowTable | None = None,
        start_features: bool = True,
        vector_window: int = 0,
    ) -> None:
        super().__init__(columns=columns)
        self.features = features
        self.resources = resources
        self.constraints = constraints
        self.start_features = start_features
        self.vector_window = vector_window

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        known = self.constraints in (None, "BIO", "IOBES") or isinstance(self.constraints, Mapping)
        listed = not isinstance(self.resources, str)
        check_parameters(
            self,
            [
                ("constraints", known, "None, 'BIO', 'IOBES' or a table"),
                ("resources", listed, "a list of names or paths"),
                ("vector_window", is_whole(self.vector_window, 0, WIDEST), f"0 to {WIDEST}"),
            ],
        )

    def list_kinds(self) -> int:
        """Return the types of tokens with feature lists, unless labels have constraints."""
        encoder = self.encoder_
        plain = not encoder.names and encoder.width < 0 and encoder.constraints is None
        plain = plain and not self.has_vectors
        return AS_DICT | AS_LIST if plain else 0

    def problem_for(self, dataset: Dataset) -> type[CompiledProblem]:
        """Return the problem for features with values, and for vectors, if there are any."""
        if dataset.vectors.shape[1]:
            return DenseWeightedTagging if len(dataset.values) else DenseTagging
        return WeightedTagging if len(dataset.values) else Tagging

    def templates(self, names: tuple[str, ...]) -> str | Sequence[str | Template]:
        """Return the feature templates for columns of these names."""
        return resolve_features(self.features, self.resources, {None: default_templates}, names)

    def make_encoder(
        self,
        templates: tuple[Template, ...],
        names: tuple[str, ...],
        labels: tuple[str, ...],
        width: int,
    ) -> ColumnEncoder:
        """Return an encoder."""
        rules = None if self.constraints is None else constraints(labels, self.constraints)
        return TaggingEncoder(
            templates,
            names,
            labels,
            width,
            constraints=rules,
            start_features=self.start_features,
            vector_window=self.vector_window,
        )

    def gold_numbers(self, data: Data, outputs: Column) -> Array:
        """Return the labels as numbers, -1 for unknown labels."""
        return label_numbers(outputs, self.encoder_.labels, data.lengths)

    def ambiguity(self, inputs: Data, outputs: Column) -> Ambiguity | None:
        """Return the number of possible labels of each token; None: all labels are known."""
        known = self.gold_numbers(inputs, outputs) >= 0
        choices = np.where(known, 1, len(self.encoder_.labels))
        return None if known.all() else Ambiguity(choices, known, inputs.lengths)

    def decode_all(self, inputs: Any, steps: Array, ends: Array) -> Labels:
        """Return the labels of each sentence."""
        if len(ends) == 1:
            return [[*map(self.encoder_.labels.__getitem__, steps[:, 1].tolist())]]
        labels = np.array(self.encoder_.labels, dtype=object)[steps[:, 1]].tolist()
        return [labels[a:b] for a, b in pairwise([0, *ends.tolist()])]

    def coded_outputs(self, inputs: Data, steps: Array, ends: Array) -> tuple[Array, Sequence[str]]:
        """Return the number of each token's label, and all labels."""
        return steps[:, 1], self.encoder_.labels

    def describe_vector(self, number: int) -> str:
        """Return whose vectors have the weights of this number: a token's own, or a neighbour's."""
        return f"vector[{number - self.vector_window}]"

    def describe(self, group: int, label: int) -> Step:
        """Return the label of one token."""
        return Step(self.encoder_.labels[label])

    def score(self, gold: Sequence[Sequence[str | None]], predicted: Sequence[Any]) -> float:
        """Return chunk F if the labels are BIO or IOBES, else token accuracy."""
        return main_score(gold, predicted)
