"""A workbench for a small model of each task, and texts to look at."""

from functools import cache
from typing import Any

from laso import Chunker, Clusterer, JointTagger, Parser, SearchEstimator, Tagger, exact
from laso.data import load_bundled
from laso.examples.segmentation import LINES, Segmentation
from laso.serve.workbench import Workbench

TRAIN, TEST = load_bundled()
SMALL = TRAIN[:80]
WORDS = [[token[0] for token in s] for s in SMALL]
TAGS = [[token[2] for token in s] for s in SMALL]
TREES = [
    ([("the", "DT"), ("cat", "NN"), ("sleeps", "VB")], [(2, "det"), (3, "nsubj"), (0, "root")]),
    ([("dogs", "NN"), ("see", "VB"), ("cats", "NN")], [(2, "nsubj"), (0, "root"), (2, "obj")]),
]
PEOPLE = [["Ann Lee", "Bo Day", "A. Lee"], ["Jo Fox", "J. Fox", "Al Hay"]]
IDS = [[0, 1, 0], [0, 0, 1]]
TALK = {
    "sentences": [["Ann", "lost", "her", "keys"], ["She", "found", "them"]],
    "mentions": [(0, 0, 0), (0, 2, 2), (0, 3, 3), (1, 0, 0), (1, 2, 2)],
}
PLAIN = "The old man can see a can of fish"
TEXTS = {
    "tagger": PLAIN,
    "chunker": PLAIN,
    "exact": PLAIN,
    "joint": PLAIN,
    "parser": "the DT\ndog NN\nsees VB\ncats NN\n",
    "clusterer": '{"items": ["Eva Roe", "E. Roe", "Kim May"]}\n',
    "coreference": '{"sentences": [["Bo", "likes", "his", "dog"]], '
    '"mentions": [[0, 0, 0], [0, 2, 3], [0, 2, 2]]}\n',
    "own": "the dog is on a mat\n",
}
PINS: dict[str, dict[str, Any]] = {
    "tagger": {"start": 1, "end": 3, "label": "VP"},
    "chunker": {"start": 1, "end": 3, "label": "VP"},
    "exact": {"start": 1, "end": 3, "label": "VP"},
    "joint": {"start": 0, "end": 1, "label": "NN/I-NP"},
    "parser": {"start": 0, "head": 3, "label": None},
    "clusterer": {"start": 2, "other": 0},
    "coreference": {"start": 1, "other": 0},
    "own": {"start": 0, "end": 2, "label": "word"},
}


def _fitted(name):
    if name == "tagger":
        return Tagger(epochs=3, queue=5, constraints="BIO").fit(WORDS, TAGS)
    if name == "exact":
        return Tagger(epochs=2, queue=exact(), features=["w[0]", "label[-1]"]).fit(WORDS, TAGS)
    if name == "chunker":
        return Chunker(epochs=3, features="paper").fit(WORDS, TAGS)
    if name == "joint":
        both = [[(token[1], token[2]) for token in s] for s in SMALL]
        layers = ["pos", "chunk"]
        return JointTagger(layers=layers, epochs=2, queue=4, features=["w[0]", "bias"]).fit(
            WORDS, both
        )
    if name == "parser":
        return Parser(epochs=5).fit(*zip(*TREES, strict=True))
    if name == "clusterer":
        return Clusterer(epochs=3).fit(PEOPLE, IDS)
    if name == "coreference":
        return Clusterer(preset="coreference", epochs=3).fit([TALK], [[0, 0, 1, 0, 1]])
    lines = [line.split() for line in LINES]
    return SearchEstimator(Segmentation()).fit(["".join(words) for words in lines], lines)


fitted = cache(_fitted)


def workbench(name, **how):
    """A workbench whose model is that of other tests: it is never changed, only replaced."""
    task = "laso.examples.segmentation:Segmentation" if name == "own" else None
    return Workbench(fitted(name), task=task, **how)


def answers(name):
    return {"text": TEXTS[name]}
