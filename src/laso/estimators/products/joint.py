"""Several layers of labels at once: one of each for every token (section 4.2 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

from laso.estimators.parameters import SearchParameters
from laso.estimators.search import SearchEstimator
from laso.features.templates import Template
from laso.tasks.base import Task
from laso.tasks.joint.task import JointTask, Pairs
from laso.tasks.tagging.task import FollowTable


class JointTagger(SearchEstimator):
    """Gives the tokens of sentences a label of each layer; all are chosen together.

    Labels are tuples, one label for each layer. The score is the fraction of tokens whose labels,
    as far as they are known, are all right.

    Parameters
    ----------
    layers : sequence of str
        The names of the layers; the last columns of the data, in this order, hold their labels.
    features : {"rich"}, str, sequence of str or Template, default="rich"
        A feature set (see laso.tasks.joint.feature_sets), or feature templates.
    resources : sequence of str, default=()
        Word lists, clusters and other resources for "rich" (see laso.features.lists).
    constraints : mapping, default=None
        For a layer "BIO", "IOBES", or for each label those that may follow it (None stands for
        both ends), as in {"chunk": "BIO"}.
    pairs : {"observed"} or mapping, default=None
        For two layers, which labels of the second go with each label of the first, as in
        {"pos": {"chunk": {"NN": ["B-NP", "I-NP"]}}}; labels that are not named go with any.
        "observed": those that training tokens have together, in any two layers.
    columns : sequence of str, default=None
        Names of the input columns; None: w, pos, then numbers.
    **search
        The parameters of ``SearchEstimator``. The default queue is a beam of 10.

    Examples
    --------
    >>> from laso import JointTagger
    >>> X = [["the", "cat", "sleeps"]]
    >>> y = [[("DT", "B-NP"), ("NN", "I-NP"), ("VBZ", "B-VP")]]
    >>> JointTagger(layers=["pos", "chunk"], epochs=3).fit(X, y).predict(X) == y
    True
    """

    task_: JointTask

    def __init__(
        self,
        *,
        layers: Sequence[str],
        features: str | Sequence[str | Template] = "rich",
        resources: Sequence[str] = (),
        constraints: Mapping[str, str | FollowTable] | None = None,
        pairs: str | Pairs | None = None,
        columns: Sequence[str] | None = None,
        **search: Unpack[SearchParameters],
    ) -> None:
        super().__init__(**search)
        self.layers = layers
        self.features = features
        self.resources = resources
        self.constraints = constraints
        self.pairs = pairs
        self.columns = columns

    def make_task(self) -> Task:
        """Return the task, without anything learned."""
        return JointTask(
            layers=self.layers,
            features=self.features,
            resources=self.resources,
            constraints=self.constraints,
            pairs=self.pairs,
            columns=self.columns,
        )
