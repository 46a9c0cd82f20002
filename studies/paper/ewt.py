"""Three layers of labels on UD English EWT: jointly, or by a pipeline of taggers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.measure import Row, timed_predict
from studies.paper.joint import PERCEPTRON
from studies.report import Claim, Contrast, Plan, score_table
from studies.runner import Config, Experiment

LAYERS = ("upos", "xpos", "feats")
MEASURES = (*(f"{layer}_acc" for layer in LAYERS), "all_acc")
BEAMS = (1, 5)
TOGETHER, IN_TURN = "together", "one after the other"
ANY = "together in any combination"
ROWS = {
    f"{how} at beam {b}": Config({"queue": b, **PERCEPTRON, "how": how})
    for how, beams in ((TOGETHER, BEAMS), (ANY, BEAMS[:1]), (IN_TURN, BEAMS))
    for b in beams
}
CLAIMS = (
    Claim(
        "layers are better predicted together",
        [
            Contrast(
                f"together at beam {b}",
                {f"{TOGETHER} at beam {b}": 1, f"{IN_TURN} at beam {b}": -1},
                "all_acc",
            )
            for b in BEAMS
        ],
    ),
)


class Chain:
    """A pipeline of taggers: the input of each includes the labels of the layers before it.

    These are the gold labels in training and the predicted labels in decoding.
    """

    def __init__(self, *, features: str, resources: Sequence[str], **given: Any) -> None:
        self.resources, self.given = resources, given
        self.scores_: list[float] = []
        self.interrupted_ = False
        self.n_iter_ = 0

    def fit(self, path: Path, *, dev: Path | None = None) -> Chain:
        """Train one tagger for each layer, all with the same number of epochs."""
        from laso import Tagger
        from laso.data import read_columns
        from laso.tasks.joint.feature_sets import rich_features

        sentences = read_columns(path)
        held = None if dev is None else read_columns(dev)
        self.taggers = []
        curves = []
        for n, _ in enumerate(LAYERS):
            names = ["w", *LAYERS[:n]]
            templates = dict.fromkeys(rich_features(names, ["label"], self.resources))
            tagger = Tagger(features=list(templates), columns=names, **self.given)
            tagger.fit(_first(sentences, n + 2), dev=held and _first(held, n + 2))
            self.interrupted_ |= tagger.interrupted_
            self.n_iter_ = max(self.n_iter_, tagger.n_iter_)
            self.taggers.append(tagger)
            curves.append(tagger.scores_)
        # Held-out accuracy given gold labels of earlier layers: enough to choose the epochs.
        self.scores_ = [sum(each) / len(each) for each in zip(*curves, strict=False)]
        return self

    def predict(self, path: Path) -> list[list[tuple[str, ...]]]:
        """Return the labels of all layers for the sentences of a file."""
        from laso.data import read_columns

        sentences = _first(read_columns(path), 1)
        for tagger in self.taggers:
            labels = tagger.predict(sentences)
            sentences = [
                [(*token, label) for token, label in zip(tokens, more, strict=True)]
                for tokens, more in zip(sentences, labels, strict=True)
            ]
        return [[token[1:] for token in tokens] for tokens in sentences]

    def save(self, path: Path) -> int:
        """Save all taggers and return the size in bytes."""
        return sum(tagger.save(f"{path}.{i}") for i, tagger in enumerate(self.taggers))


def _first(sentences: Any, n: int) -> list[list[tuple[str, ...]]]:
    """Return the first n columns."""
    return [[token[:n] for token in tokens] for tokens in sentences]


def make_estimator(*, how: str, **given: Any) -> Any:
    """Return the estimator of a row."""
    if how == IN_TURN:
        return Chain(**given)
    from laso import JointTagger

    return JointTagger(layers=LAYERS, pairs=None if how == ANY else "observed", **given)


def evaluate(model: Any, path: Path) -> Row:
    """Return the accuracy of each layer and of all layers, and the time to predict a file."""
    from laso.data import read_columns

    predicted, seconds = timed_predict(model, path)
    gold = [[token[-len(LAYERS) :] for token in tokens] for tokens in read_columns(path)]
    pairs = [
        (tuple(a), tuple(b))
        for one, other in zip(gold, predicted, strict=True)
        for a, b in zip(one, other, strict=True)
    ]
    right = [sum(a[i] == b[i] for a, b in pairs) for i in range(len(LAYERS))]
    right.append(sum(a == b for a, b in pairs))
    shares = {name: 100 * n / len(pairs) for name, n in zip(MEASURES, right, strict=True)}
    return {"test_s": seconds, **shares}


NOTES = """\
Accuracy in per cent: the mean over seeds, ± the standard deviation. Words with their universal tags
(UPOS), tags of the treebank (XPOS) and morphological features as one label; no lemma, no tree.
Joint prediction considers only pairs of labels that occur in the training data
(`pairs="observed"`), except in the rows for any combination. The taggers of a pipeline have the
same features of the words, and the labels of the layers before at all offsets: gold labels in
training, predicted labels in decoding. The number of epochs was chosen on a tenth of the training
data. Training time is in seconds of CPU."""


def section(rows: list[Row]) -> str:
    """Return a table of accuracies and times."""
    measures = (*MEASURES, "epochs", "cpu_s", "test_s")
    heads = ("UPOS", "XPOS", "features", "all", "epochs", "training, CPU s", "test s")
    return score_table(rows, ROWS, dict(zip(measures, heads, strict=True)))


PLAN = Plan(
    *("ewt", "Three layers on UD English EWT", ROWS, NOTES, section, CLAIMS),
    whose="Together or not",
    scored="accuracy",
)
EXPERIMENT = Experiment(
    plan=PLAN,
    rows=ROWS,
    estimator=lambda: make_estimator,
    evaluate=evaluate,
    shown={**dict.fromkeys(MEASURES, 2), "train_s": 1, "test_s": 2},
    features=("rich",),
    epochs=8,
    patience=2,
    scored="accuracy",
    seeds=3,
    corpora=("ud_ewt",),
)
