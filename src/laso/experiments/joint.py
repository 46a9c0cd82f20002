"""What the experiments on joint tagging and chunking have in common (section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from laso.experiments.measure import Row, timed
from laso.experiments.runner import Config

Labels = Sequence[Sequence[Sequence[str]]]
LAYERS = ("pos", "chunk")
BEAMS = (1, 5, 10, 25, 50)
SCORES = ("tag_acc", "chunk_acc", "joint_acc", "f")
SHOWN = {**dict.fromkeys(SCORES, 2), "train_s": 1, "test_s": 2}
PERCEPTRON = {"update": "perceptron", "weighting": "worst", "margin": 1.0}
ALMA = {"update": "alma", "alpha": 0.9, "B": "sqrt(8)/alpha", "weighting": "worst"}
LASO_A = {f"LaSOa_{b}": Config({"queue": b, **ALMA}) for b in BEAMS}
EPOCHS, PATIENCE = 10, 2


def tagger(**given: Any) -> Any:
    """The estimator, for a file with words, tags and chunk tags."""
    from laso.estimators.joint import JointTagger

    return partial(JointTagger, layers=LAYERS, constraints={"chunk": "BIO"}, **given)


def tested(model: Any, path: Path) -> Row:
    """The scores of a test file; the time is from reading it to the last label."""
    from laso.data import read_columns

    found, seconds = timed(model, path)
    wanted = [[token[-len(LAYERS) :] for token in tokens] for tokens in read_columns(path)]
    return {
        "train_beam": model.queue,
        "decode_beam": model.queue,
        "strategy": model.strategy.__name__,
        "test_s": seconds,
        **scores(wanted, found),
    }


def scores(wanted: Labels, found: Labels) -> Row:
    """How many tags, chunk tags, and both at once are right, and F of the chunks."""
    from laso.metrics import accuracy, chunk_scores

    (tags, chunks), (found_tags, found_chunks) = (
        [[[labels[i] for labels in tokens] for tokens in side] for i in range(len(LAYERS))]
        for side in (wanted, found)
    )
    both, found_both = (
        [["/".join(labels) for labels in tokens] for tokens in side] for side in (wanted, found)
    )
    return {
        "tag_acc": accuracy(tags, found_tags),
        "chunk_acc": accuracy(chunks, found_chunks),
        "joint_acc": accuracy(both, found_both),
        "f": chunk_scores(chunks, found_chunks).f,
    }


NOTES = """\
Scores are in per cent: the mean over seeds, ± the standard deviation. Tags, chunk tags and both at
once count by words, F by chunks, as `conlleval` does. The tags of CoNLL-2000 are the output of the
Brill tagger, so that tag accuracy is agreement with it; without its lexicon (`lexicon`) words never
seen keep it below the paper's. A beam has one round for each word, and all its nodes are expanded.
The number of epochs was chosen on a tenth of the training data by the words with both labels right.
Training time is from reading the file to the model saved."""
