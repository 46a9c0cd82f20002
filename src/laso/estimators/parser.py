"""Dependency parsing: the head of each word, and the label of the arc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from laso.estimators.search import SearchEstimator, SearchParameters
from laso.features.templates import Template
from laso.tasks.base import Task
from laso.tasks.parsing.task import ParsingTask


class Parser(SearchEstimator):
    """Finds the dependency trees of sentences; the weights are learned inside the search.

    A tree is a list with (head, label) for each word. Words count from 1 as in CoNLL-U, and 0 is
    the artificial root. The score is the labelled attachment score.

    Parameters
    ----------
    system : {"arc-hybrid", "arc-eager", "arc-standard"}, default="arc-hybrid"
        The transition system (see laso.tasks.parsing).
    oracle : {"static", "dynamic"}, default="static"
        Whether one path to the gold tree is good, which adds arcs as soon as it can, or all paths
        that lead to it; arc-standard has the static oracle only.
    features : str, sequence of str or Template, default=None
        Feature templates (see laso.tasks.parsing.templates); None: those of Zhang & Nivre (2011).
    columns : sequence of str, default=None
        Names of the input columns; None: w, pos, xpos, then numbers. The columns of a CoNLL-U file
        are w, pos and the others under their own names.
    pseudo_projective : bool, default=True
        Arcs that cross others are lifted to learn from them. True: labels tell of it, and the arcs
        are put back into predicted trees (Nivre & Nilsson 2005).
    **search
        The parameters of ``SearchEstimator``. The default queue is a beam of 8.

    Examples
    --------
    >>> from laso import Parser
    >>> X = [[("the", "DT"), ("cat", "NN"), ("sleeps", "VB")]]
    >>> y = [[(2, "det"), (3, "nsubj"), (0, "root")]]
    >>> Parser(epochs=3).fit(X, y).predict([[("a", "DT"), ("dog", "NN"), ("sleeps", "VB")]])
    [[(2, 'det'), (3, 'nsubj'), (0, 'root')]]
    """

    task_: ParsingTask

    def __init__(
        self,
        *,
        system: str = "arc-hybrid",
        oracle: str = "static",
        features: str | Sequence[str | Template] | None = None,
        columns: Sequence[str] | None = None,
        pseudo_projective: bool = True,
        **search: Unpack[SearchParameters],
    ) -> None:
        super().__init__(**search)
        self.system = system
        self.oracle = oracle
        self.features = features
        self.columns = columns
        self.pseudo_projective = pseudo_projective

    def make_task(self) -> Task:
        """Return the task, without anything learned."""
        return ParsingTask(
            system=self.system,
            oracle=self.oracle,
            features=self.features,
            columns=self.columns,
            pseudo_projective=self.pseudo_projective,
        )
