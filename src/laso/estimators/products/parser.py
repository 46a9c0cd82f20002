"""Dependency parsing: the head of each word, and the label of the arc."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

from laso.errors import quoted
from laso.estimators.learning.jackknife import Jackknife
from laso.estimators.parameters import SearchParameters
from laso.estimators.search import SearchEstimator
from laso.features.templates import Template
from laso.params import check_parameters, is_whole
from laso.tasks.base import Task
from laso.tasks.parsing.task import ParsingTask


class Parser(SearchEstimator):
    """Finds the dependency trees of sentences; the weights are learned inside the search.

    A tree is a list with (head, label) for each word. Words count from 1 as in CoNLL-U, and 0 is
    the artificial root. The score is the labelled attachment score.

    Parameters
    ----------
    system : {"arc-eager", "arc-hybrid", "arc-standard"}, default="arc-eager"
        The transition system (see laso.tasks.parsing).
    oracle : {"static", "dynamic"}, default="static"
        Whether one path to the gold tree is good, which adds arcs as soon as it can, or all paths
        that lead to it; arc-standard has the static oracle only.
    features : str, sequence of str or Template, default=None
        Feature templates (see laso.tasks.parsing.templates); None: most of Zhang & Nivre (2011),
        and suffixes of words.
    columns : sequence of str, default=None
        Names of the input columns; None: w, pos, xpos, feats, then numbers. The columns of a
        CoNLL-U file are w, pos and the others under their own names; feats is read if it has
        values.
    pseudo_projective : bool, default=True
        Arcs that cross others are lifted to learn from them. True: labels tell of it, and the arcs
        are put back into predicted trees (Nivre & Nilsson 2005).
    tagger : estimator or mapping, default=None
        Predicts the tags, such as ``Tagger()`` for the second column or, for several columns,
        ``JointTagger`` or a table as {"pos": Tagger(), "xpos": Tagger()}; further columns are not
        used. ``fit`` trains it on the words and gold tags of the data. The parser learns from
        predicted tags, those of each fold by a tagger of the others (jackknifing), and ``predict``
        needs words only. None: the data has all tags.
    folds : int, default=5
        The number of parts of the training data for ``tagger``.
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
        system: str = "arc-eager",
        oracle: str = "static",
        features: str | Sequence[str | Template] | None = None,
        columns: Sequence[str] | None = None,
        pseudo_projective: bool = True,
        tagger: SearchEstimator | Mapping[str, SearchEstimator] | None = None,
        folds: int = 5,
        **search: Unpack[SearchParameters],
    ) -> None:
        super().__init__(**search)
        self.system = system
        self.oracle = oracle
        self.features = features
        self.columns = columns
        self.pseudo_projective = pseudo_projective
        self.tagger = tagger
        self.folds = folds

    def validate(self) -> None:
        """Raise ValueError if a parameter makes no sense."""
        given = self.tagger
        taggers = list(given.values()) if isinstance(given, Mapping) else [given]
        known = taggers and all(
            isinstance(tagger, SearchEstimator) and not isinstance(tagger, Parser)
            for tagger in taggers
        )
        expected = "None, an estimator such as Tagger(), or a table of them by column"
        check_parameters(
            self,
            [
                ("tagger", given is None or bool(known), expected),
                ("folds", is_whole(self.folds, 2, 1000), "from 2 to 1000"),
            ],
        )
        super().validate()

    def make_task(self) -> Task:
        """Return the task, without anything learned."""
        return ParsingTask(
            system=self.system,
            oracle=self.oracle,
            features=self.features,
            columns=self.columns,
            pseudo_projective=self.pseudo_projective,
            tags=self._tags(),
        )

    def _tags(self) -> Jackknife | None:
        if self.tagger is None:
            return None
        if isinstance(self.tagger, Mapping):
            return Jackknife(dict(self.tagger.items()), self.folds)
        return Jackknife({None: self.tagger}, self.folds)

    def predict_tags(self, X: Any) -> list[list[Any]]:
        """Return the tags that the parser predicts: a tuple for each word."""
        self.require("weights_")
        if self.task_.tags is None:
            raise ValueError(f"predict_tags needs a tagger, found tagger={quoted(self.tagger)}")
        return self.task_.tags.tags_of(self.task_.read_inputs(X))

    def fit_stream(self, source: Any, **how: Any) -> Self:
        """Learn from more examples than memory holds; tags cannot be jackknifed then."""
        if self._tags() is not None:
            raise ValueError("tagger needs all examples at once: use fit")
        return super().fit_stream(source, **how)

    def resume(self, X: Any, y: Any = None, **how: Any) -> Self:
        """Go on on the data of ``fit``; with predicted tags these would have to be the same."""
        if self._tags() is not None:
            raise ValueError("tagger needs fit: resume cannot repeat its jackknifed tags")
        return super().resume(X, y, **how)
