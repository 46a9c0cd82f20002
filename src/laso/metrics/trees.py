"""Scores of dependency trees, as the evaluation of the CoNLL 2018 shared task defines them.

Tokens are gold, and punctuation counts. All scores are F1 over words, in per cent:

UAS    the head is right
LAS    head and label are right; of a label such as ``nmod:desc`` the part before the colon counts
CLAS   the same for content words: those whose label is a content relation of UD, counted in the
       gold tree for recall and in the predicted tree for precision
MLAS   CLAS where the tag, the features and the function words of a content word must be right too,
       and these with their own tags and features; of features the universal ones count. It needs
       morphology, of gold and of predicted words.

``exact`` is the share of sentences all of whose heads and labels are right. Words whose gold head
is not known are not counted; one whose label is not known counts for UAS only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from laso.errors import BadData
from laso.metrics import Counts

CONTENT = frozenset(
    [
        "nsubj",
        "obj",
        "iobj",
        "csubj",
        "ccomp",
        "xcomp",
        "obl",
        "vocative",
        "expl",
        "dislocated",
        "advcl",
        "advmod",
        "discourse",
        "nmod",
        "appos",
        "nummod",
        "acl",
        "amod",
        "conj",
        "fixed",
        "flat",
        "compound",
        "list",
        "parataxis",
        "orphan",
        "goeswith",
        "reparandum",
        "root",
        "dep",
    ]
)
"""The universal relations of content words (CLAS)."""
FUNCTION = frozenset(["aux", "cop", "mark", "det", "clf", "case", "cc"])
"""The universal relations of function words (MLAS)."""
FEATURES = frozenset(
    [
        "PronType",
        "NumType",
        "Poss",
        "Reflex",
        "Foreign",
        "Abbr",
        "Gender",
        "Animacy",
        "Number",
        "Case",
        "Definite",
        "Degree",
        "VerbForm",
        "Mood",
        "Tense",
        "Aspect",
        "Voice",
        "Evident",
        "Polarity",
        "Person",
        "Polite",
    ]
)
"""The universal features (MLAS)."""
LENGTHS = ((1, 10), (11, 20), (21, 30), (31, 40), (41, None))

Tree = Sequence[tuple[Any, Any]]
Morphology = Sequence[tuple[str, str]]
"""For each word of a sentence its tag and its features, as ``Case=Nom|Number=Sing``."""


@dataclass(frozen=True)
class TreeScores:
    """Attachment scores in per cent, and those by label and by length of sentence."""

    sentences: int
    words: int
    uas: float
    las: float
    clas: float
    exact: float
    mlas: float | None = None
    labels: Mapping[str, Counts] = field(default_factory=dict)
    lengths: Mapping[str, tuple[int, float, float]] = field(default_factory=dict)
    tags: Mapping[str, float] = field(default_factory=dict)
    """The accuracy of predicted tags, by column."""

    @property
    def score(self) -> float:
        """The main measure: LAS."""
        return self.las

    def as_json(self) -> dict[str, Any]:
        """Return the scores as JSON."""
        return {
            "sentences": self.sentences,
            "words": self.words,
            "uas": self.uas,
            "las": self.las,
            "clas": self.clas,
            "exact": self.exact,
            **({} if self.mlas is None else {"mlas": self.mlas}),
            **({"tags": dict(self.tags)} if self.tags else {}),
            "labels": {
                name: {"precision": n.precision, "recall": n.recall, "f": n.f, "gold": n.gold}
                for name, n in self.labels.items()
            },
            "lengths": {
                name: {"words": n, "uas": uas, "las": las}
                for name, (n, uas, las) in self.lengths.items()
            },
        }

    def __str__(self) -> str:
        width = max(map(len, [*self.labels, "label"]))
        mlas = "" if self.mlas is None else f"MLAS {self.mlas:.2f}, "
        lines = [
            f"{self.sentences} sentences, {self.words} words; UAS {self.uas:.2f}, "
            f"LAS {self.las:.2f}, CLAS {self.clas:.2f}, {mlas}exact {self.exact:.2f} %",
            *(f"  accuracy of {name}: {share:.2f} %" for name, share in self.tags.items()),
            "  words in the sentence    words     UAS     LAS",
            *(
                f"  {name:21}  {n:7}  {uas:6.2f}  {las:6.2f}"
                for name, (n, uas, las) in self.lengths.items()
            ),
            f"  {'label':{width}}  precision  recall       F    gold",
            *(
                f"  {name:{width}}  {n.precision:9.2f}  {n.recall:6.2f}  {n.f:6.2f}  {n.gold:6}"
                for name, n in self.labels.items()
            ),
        ]
        return "\n".join(lines)


def universal(label: str | None) -> str | None:
    """Return a label without its subtype."""
    return None if label is None else label.split(":")[0]


def tree_scores(
    gold: Iterable[Tree],
    predicted: Iterable[Tree],
    *,
    morphology: tuple[Iterable[Morphology], Iterable[Morphology]] | None = None,
) -> TreeScores:
    """Compare predicted with gold trees of the same words.

    Parameters
    ----------
    gold, predicted : iterables of trees
        A tree has (head, label) for each word; words count from 1, and 0 is the root.
    morphology : pair of iterables, default=None
        For each sentence the tags and features of gold words, and of predicted words, for MLAS.

    Returns
    -------
    TreeScores
        UAS, LAS, CLAS, MLAS, exact match, and the scores by label and by length of sentence.

    Examples
    --------
    >>> gold = [[(2, "det"), (3, "nsubj"), (0, "root")]]
    >>> found = [[(3, "det"), (3, "obj"), (0, "root")]]
    >>> scores = tree_scores(gold, found)
    >>> round(scores.uas, 1), round(scores.las, 1), scores.clas
    (66.7, 33.3, 50.0)
    """
    count: Counter[str] = Counter()
    right: Counter[str] = Counter()
    n_gold: Counter[str] = Counter()
    n_predicted: Counter[str] = Counter()
    by_length: dict[str, Counter[str]] = {}
    gold, predicted = list(gold), list(predicted)
    if len(gold) != len(predicted):
        raise BadData(f"found {len(predicted)} predicted trees, expected {len(gold)}")
    for number, (g, p) in enumerate(zip(gold, predicted, strict=True), start=1):
        if len(g) != len(p):
            raise BadData(
                f"found a predicted tree of {len(p)} words, expected {len(g)}", sentence=number
            )
        counts = _count(g, p, right, n_gold, n_predicted)
        count += counts
        count["exact"] += counts["both"] == counts["words"]
        by_length.setdefault(_length_name(len(g)), Counter()).update(counts)
    return TreeScores(
        sentences=len(gold),
        words=count["words"],
        uas=_f1(count["heads"], count["words"], count["words"]),
        las=_f1(count["both"], count["labelled"], count["labelled"]),
        clas=_f1(count["content"], count["gold content"], count["predicted content"]),
        exact=_f1(count["exact"], len(gold), len(gold)),
        mlas=None if morphology is None else _mlas(gold, predicted, *map(list, morphology)),
        labels={
            name: Counts(right[name], n_predicted[name], n_gold[name])
            for name in sorted(n_gold | n_predicted)
        },
        lengths={
            name: (
                n["words"],
                _f1(n["heads"], n["words"], n["words"]),
                _f1(n["both"], n["labelled"], n["labelled"]),
            )
            for name in map(_name_of, LENGTHS)
            if (n := by_length.get(name)) is not None
        },
    )


def _count(
    gold: Tree,
    predicted: Tree,
    right: Counter[str],
    n_gold: Counter[str],
    n_predicted: Counter[str],
) -> Counter[str]:
    counts: Counter[str] = Counter()
    for (head, label), (predicted_head, its_label) in zip(gold, predicted, strict=True):
        if head is None:
            continue
        wanted, name = universal(label), universal(its_label)
        counts["words"] += 1
        counts["heads"] += head == predicted_head
        if wanted is None:
            continue
        both = head == predicted_head and wanted == name
        counts["labelled"] += 1
        counts["both"] += both
        counts["gold content"] += wanted in CONTENT
        counts["predicted content"] += name in CONTENT
        counts["content"] += both and wanted in CONTENT
        n_gold[wanted] += 1
        n_predicted[str(name)] += 1
        right[wanted] += both
    return counts


def _mlas(
    gold: list[Tree],
    predicted: list[Tree],
    gold_morphology: list[Morphology],
    morphology: list[Morphology],
) -> float:
    right = n_gold = n_predicted = 0
    sentences = zip(gold, predicted, gold_morphology, morphology, strict=True)
    for number, (g, p, g_words, p_words) in enumerate(sentences, start=1):
        if not len(g) == len(g_words) == len(p_words):
            raise BadData(
                f"found the morphology of {len(g_words)} and {len(p_words)} words, expected "
                f"{len(g)}",
                sentence=number,
            )
        wanted, given = _content_words(g, g_words), _content_words(p, p_words)
        n_gold += len(wanted)
        n_predicted += len(given)
        right += sum(given.get(i) == of for i, of in wanted.items())
    return _f1(right, n_gold, n_predicted)


def _content_words(tree: Tree, words: Morphology) -> dict[int, tuple[Any, ...]]:
    """Return what must be right of each content word, by its number."""
    names = [universal(label) for _, label in tree]
    of_words = [(tag, _universal_features(features)) for tag, features in words]
    content: dict[int, tuple[Any, ...]] = {
        i: (head, name, of_words[i - 1], [])
        for i, ((head, _), name) in enumerate(zip(tree, names, strict=True), start=1)
        if name in CONTENT and head is not None
    }
    for i, ((head, _), name) in enumerate(zip(tree, names, strict=True), start=1):
        if name in FUNCTION and head in content:
            content[head][-1].append((i, name, of_words[i - 1]))
    return content


def _universal_features(text: str) -> tuple[str, ...]:
    return tuple(sorted(f for f in text.split("|") if f.partition("=")[0] in FEATURES))


def _f1(correct: int, gold: int, predicted: int) -> float:
    return 200 * correct / (gold + predicted) if gold + predicted else 0.0


def _name_of(bounds: tuple[int, int | None]) -> str:
    low, high = bounds
    return f"{low} or more" if high is None else f"{low} to {high}"


def _length_name(n: int) -> str:
    return _name_of(next(each for each in LENGTHS if each[1] is None or n <= each[1]))
