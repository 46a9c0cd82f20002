"""Shared parts of the experiments on joint tagging and chunking (section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from studies.measure import Row, timed_predict
from studies.runner import Config

Labels = Sequence[Sequence[Sequence[str]]]
LAYERS = ("pos", "chunk")
BEAMS = (1, 5, 10, 25, 50)
SCORES = ("tag_acc", "chunk_acc", "joint_acc", "f")
SHOWN = {**dict.fromkeys(SCORES, 2), "cpu_s": 1, "test_s": 2}
PERCEPTRON = {"update": "perceptron", "weighting": "worst", "margin": 1.0}
ALMA = {"update": "alma", "alpha": 0.9, "B": "sqrt(8)/alpha", "weighting": "worst"}
LASO_A = {f"LaSOa_{b}": Config({"queue": b, **ALMA}) for b in BEAMS}
EPOCHS, PATIENCE = 10, 2


def tagger(**given: Any) -> Any:
    """Return the estimator, for a file with words, tags and chunk tags."""
    from laso.estimators.products.joint import JointTagger

    return partial(JointTagger, layers=LAYERS, constraints={"chunk": "BIO"}, **given)


def evaluate(model: Any, path: Path) -> Row:
    """Return the scores on a test file, and the time from reading it to the last label."""
    from laso.data import read_columns

    predicted, seconds = timed_predict(model, path)
    gold = [[token[-len(LAYERS) :] for token in tokens] for tokens in read_columns(path)]
    return {
        "train_beam": model.queue,
        "decode_beam": model.queue,
        "strategy": model.strategy.__name__,
        "test_s": seconds,
        **scores(gold, predicted),
    }


def scores(gold: Labels, predicted: Labels) -> Row:
    """Return the accuracy of tags, of chunk tags and of both, and the F of chunks."""
    from laso.metrics import accuracy, chunk_scores

    (tags, chunks), (predicted_tags, predicted_chunks) = (
        [[[labels[i] for labels in tokens] for tokens in side] for i in range(len(LAYERS))]
        for side in (gold, predicted)
    )
    both, predicted_both = (
        [["/".join(labels) for labels in tokens] for tokens in side] for side in (gold, predicted)
    )
    return {
        "tag_acc": accuracy(tags, predicted_tags),
        "chunk_acc": accuracy(chunks, predicted_chunks),
        "joint_acc": accuracy(both, predicted_both),
        "f": chunk_scores(chunks, predicted_chunks).f,
    }


NOTES = """\
Scores are in per cent: the mean over seeds, ± the standard deviation. Tag, chunk and joint accuracy
are over words, F is over chunks, as `conlleval` computes it. The tags of CoNLL-2000 are the output
of the Brill tagger, so that tag accuracy is agreement with it; without its lexicon (`lexicon`),
unknown words keep it below the paper's. A beam has one round for each word and expands all its
nodes. The number of epochs was chosen by joint accuracy on a tenth of the training data. Training
time is from reading the file to the saved model, in seconds of CPU: other programs may have run
meanwhile."""
