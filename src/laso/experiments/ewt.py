"""Three layers of labels on UD English EWT: together, or one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from laso.experiments.joint import PERCEPTRON
from laso.experiments.measure import Row, table, timed
from laso.experiments.report import Claim, Contrast, Plan, choices, document, sample, saved
from laso.experiments.runner import Config, Experiment

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
    """Taggers one after the other: each is given the labels of the layers before it.

    In training these are the right ones, in decoding those found.
    """

    def __init__(self, *, features: str, resources: Sequence[str], **given: Any) -> None:
        self.resources, self.given = resources, given
        self.scores_: list[float] = []
        self.interrupted_ = False
        self.n_iter_ = 0

    def fit(self, path: Path, *, dev: Path | None = None) -> Chain:
        """One tagger for each layer, which all have the same number of epochs."""
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
        # Held-out accuracy given the right labels before: for the epochs it is enough.
        self.scores_ = [sum(each) / len(each) for each in zip(*curves, strict=False)]
        return self

    def predict(self, path: Path) -> list[list[tuple[str, ...]]]:
        """The labels of all layers of the sentences in a file."""
        from laso.data import read_columns

        found = _first(read_columns(path), 1)
        for tagger in self.taggers:
            labels = tagger.predict(found)
            found = [
                [(*token, label) for token, label in zip(tokens, more, strict=True)]
                for tokens, more in zip(found, labels, strict=True)
            ]
        return [[token[1:] for token in tokens] for tokens in found]

    def save(self, path: Path) -> int:
        """Keep all taggers; the bytes."""
        return sum(tagger.save(f"{path}.{i}") for i, tagger in enumerate(self.taggers))


def _first(sentences: Any, n: int) -> list[list[tuple[str, ...]]]:
    """The first n columns."""
    return [[token[:n] for token in tokens] for tokens in sentences]


def made(*, how: str, **given: Any) -> Any:
    """The estimator of a row."""
    if how == IN_TURN:
        return Chain(**given)
    from laso import JointTagger

    return JointTagger(layers=LAYERS, pairs=None if how == ANY else "observed", **given)


def tested(model: Any, path: Path) -> Row:
    """The accuracy of each layer and of all at once; the time is from reading to the last label."""
    from laso.data import read_columns

    found, seconds = timed(model, path)
    wanted = [[token[-len(LAYERS) :] for token in tokens] for tokens in read_columns(path)]
    pairs = [
        (tuple(a), tuple(b))
        for one, other in zip(wanted, found, strict=True)
        for a, b in zip(one, other, strict=True)
    ]
    right = [sum(a[i] == b[i] for a, b in pairs) for i in range(len(LAYERS))]
    right.append(sum(a == b for a, b in pairs))
    shares = {name: 100 * n / len(pairs) for name, n in zip(MEASURES, right, strict=True)}
    return {"test_s": seconds, **shares}


NOTES = """\
Accuracy in per cent: the mean over seeds, ± the standard deviation. Words with their universal tags
(UPOS), tags of the treebank (XPOS) and morphological features as one label; no lemma, no tree.
Labels predicted together are those that the training data have together in each two layers
(`pairs="observed"`), if it is not said that any combination will do.
Taggers one after the other have the same features of the words, and those of the labels of the
layers before, at all offsets: right ones in training, those found in decoding. The number of epochs
was chosen on a tenth of the training data."""


def section(rows: list[Row]) -> str:
    """The accuracies and the times."""
    lines = []
    for row in ROWS:
        measures = (*MEASURES, "epochs", "train_s", "test_s")
        found = [one for name in measures if (one := sample(rows, row, name)) is not None]
        if found:
            lines.append([row, *(one.text() for one in found)])
    head = ["", "UPOS", "XPOS", "features", "all", "epochs", "train s", "test s"]
    return table(head, lines, left=1)


def write(results: list[Row], chosen: dict[str, Row], folder: Path) -> list[Path]:
    """Write ewt.md; the file."""
    plan = Plan("ewt", "Three layers on UD English EWT", ROWS, NOTES)
    text = document(plan, results, section, CLAIMS, whose="Together or not")
    if results:
        text += f"\n## Settings chosen on held-out data\n\n{choices(chosen, 'accuracy')}\n"
    return saved(folder / "ewt.md", text)


EXPERIMENT = Experiment(
    name="ewt",
    rows=ROWS,
    estimator=lambda: made,
    tested=tested,
    report=write,
    shown={**dict.fromkeys(MEASURES, 2), "train_s": 1, "test_s": 2},
    features=("rich",),
    epochs=8,
    patience=2,
    scored="accuracy",
    seeds=1,
    corpora=("ud_ewt",),
)
