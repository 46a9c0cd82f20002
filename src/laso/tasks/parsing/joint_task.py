"""The task of ``Parser(tagger="joint")``: tags and trees in one search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from laso.data.table import Columns, Data
from laso.errors import BadData
from laso.features.encoder import require_columns
from laso.features.templates import Template
from laso.params import check_parameters
from laso.tasks.batches import Operator
from laso.tasks.parsing import configuration as c
from laso.tasks.parsing.encoder import ARCS
from laso.tasks.parsing.systems import JOINT, TAG, System
from laso.tasks.parsing.task import ParsingTask
from laso.tasks.parsing.templates import joint_templates
from laso.tasks.parsing.trees import Arc, Tree, Trees
from laso.tasks.sequences import split_sentences


class TaggedTree(list[Arc]):
    """A tree, and the tags that the search predicted beside it."""

    tags: list[str]


class JointParsingTask(ParsingTask):
    """Finds the tag of each word of a sentence, its head, and the label of the arc.

    The tags to learn from are the second column of the data; further columns are not used.
    """

    kinds = (*ARCS, TAG)
    ahead = 2

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        super().validate()
        expected = f"one of {', '.join(JOINT)} with tagger='joint'"
        check_parameters(self, [("system", self.system in JOINT, expected)])

    @property
    def transitions(self) -> System:
        """The transition system."""
        return JOINT[self.system]

    @property
    def n_tags(self) -> int:
        """The number of columns of tags that are predicted, too."""
        return 1

    def column_names(self, n: int) -> tuple[str, ...]:
        """Return the names of n input columns, of which the first is used."""
        return super().column_names(n if self.columns is None else len(self.columns))[:1]

    def read(self, X: Any, y: Any) -> tuple[Data, Trees]:
        """Return the words of sentences, and their trees with tags."""
        data, trees = super().read(X, y)
        table = require_columns(data)
        known = len(table.columns) > 1
        if not known and not hasattr(self, "encoder_"):
            raise BadData("found one column, expected words and tags to learn from")
        tags = split_sentences(table.columns[1], table.lengths) if known else None
        return _words(table), replace(trees, tags=tags)

    def read_inputs(self, X: Any) -> Data:
        """Return the words of sentences."""
        return _words(require_columns(super().read_inputs(X)))

    def labels_in(self, data: Data, outputs: Trees) -> list[str]:
        """Return the names of the operators that lead to the trees and tags."""
        tags = {f"{TAG} {tag}" for words in outputs.tags or [] for tag in words if tag}
        return sorted({*super().labels_in(data, outputs), *tags})

    def templates(self, names: tuple[str, ...]) -> str | Sequence[str | Template]:
        """Return the feature templates."""
        return joint_templates(names[0]) if self.features is None else self.features

    def _tree(self, path: Sequence[tuple[str, str]], marked: frozenset[str]) -> Tree:
        """Return the tree to which a path leads, with its tags."""
        tree = TaggedTree(super()._tree(path, marked))
        tree.tags = [name for kind, name in path if kind == TAG]
        return tree

    def step_items(
        self, state: Sequence[int], operator: Operator, position: int
    ) -> tuple[Sequence[Any], int, int]:
        """Return what a step decides, and of which word; a tag is ``tag NOUN``."""
        name = self.encoder_.labels[operator[1]]
        if name.partition(" ")[0] != TAG:
            return super().step_items(state, operator, position)
        word = c.n_tagged(state)
        return [name], word, word + 1

    def step_text(
        self, state: Sequence[int], operator: Operator, words: Sequence[str]
    ) -> str | None:
        """Return the arc that a step adds, or the tag, as in ``dogs: tag NOUN``."""
        name = self.encoder_.labels[operator[1]]
        if name.partition(" ")[0] != TAG:
            return super().step_text(state, operator, words)
        return f"{words[c.n_tagged(state)]}: {name}"


def _words(table: Columns) -> Columns:
    return replace(table, columns=table.columns[:1])
