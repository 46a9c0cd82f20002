"""The third part of the study of defaults: what O costs, and how many features are left out.

``Tagger`` learns from the training part of a corpus and is scored on its development part, whose
texts are others. Its features are those of the tutorial of sklearn-crfsuite, or its own of columns.
The default is compared with its variants, with ``Chunker`` and with CRFsuite.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from studies.defaults import data as study_data
from studies.defaults.data import CORPORA, Example, Part, Tokens
from studies.defaults.learners import ordered
from studies.measure import Row, Say, load, run_missing, table
from studies.peers.systems import crfsuite_tag, crfsuite_trainer
from studies.report import Sample

SEEDS = 3
DEFAULT = "default"
CRFSUITE = "CRFsuite"  # how the names of its configurations begin
NEAR = 0.3  # how far below the best the default may be
MOST_RANK = 1.5  # the mean rank of the default that is aimed at

Labels = list[list[str]]


class Parts(NamedTuple):
    """The examples to learn from, and those to compare on."""

    train: list[Example]
    dev: list[Example]


# --------------------------------------------------------------------------- corpora


def texts(name: str, step: int = 1, kind: str = "") -> Callable[[], Parts]:
    """Return a reader of every ``step``-th training sentence of a corpus, and its other texts.

    With ``kind`` only the entities of that type are chunks.
    """

    def read() -> Parts:
        parts = Parts(list(CORPORA[name]("train"))[::step], list(CORPORA[name]("dev")))
        return Parts(*([of_kind(e, kind) for e in part] for part in parts)) if kind else parts

    return read


def of_kind(example: Example, kind: str) -> Example:
    """Return an example with O for the labels of other types."""
    tokens, labels = example
    return tokens, [label if label.endswith(f"-{kind}") else "O" for label in labels]


def held_out(name: str, divisor: int) -> Callable[[], Parts]:
    """Return a reader of a part of a corpus without development data, a tenth of it held out."""
    return lambda: Parts(*study_data.split(list(CORPORA[name]("train")), divisor))


CASES: dict[str, Callable[[], Parts]] = {
    "danish entities": texts("danish entities"),
    "croatian entities 1/2": texts("croatian entities", 2),
    "portuguese entities 1/2": texts("portuguese entities", 2),
    "danish places": texts("danish entities", kind="LOC"),
    "croatian organisations 1/2": texts("croatian entities", 2, "ORG"),
    "portuguese persons 1/2": texts("portuguese entities", 2, "PER"),
    "wnut17 entities": texts("wnut17 entities"),
    "litbank entities 1/2": texts("litbank entities", 2),
    "ewt names 1/4": texts("ewt names", 4),
    "conll2000 chunks 1/16": held_out("conll2000 chunks", 16),
    "bundled chunks": held_out("bundled chunks", 1),
    "ewt upos 1/4": texts("ewt upos", 4),
    "turkish upos": texts("turkish upos"),
}


def share_outside(examples: list[Example]) -> float:
    """Return the share of tokens that are O."""
    labels = [label for _, each in examples for label in each]
    return labels.count("O") / len(labels)


# --------------------------------------------------------------------------- settings


def tutorial(tokens: Tokens) -> list[list[str]]:
    """Return the features of the tutorial of sklearn-crfsuite: few for each token."""
    features = []
    for i, (word, *tags) in enumerate(tokens):
        own = ["bias", f"word.lower()={word.lower()}", f"word[-3:]={word[-3:]}"]
        own += [f"word[-2:]={word[-2:]}", f"word.isdigit()={word.isdigit()}"]
        own += _case_and_tags("", word, tags)
        for offset, end in ((-1, "BOS"), (1, "EOS")):
            if 0 <= i + offset < len(tokens):
                other, *others = tokens[i + offset]
                own.append(f"{offset:+}:word.lower()={other.lower()}")
                own += _case_and_tags(f"{offset:+}:", other, others)
            else:
                own.append(end)
        features.append(own)
    return features


def _case_and_tags(place: str, word: str, tags: list[str]) -> list[str]:
    case = [f"{place}word.istitle()={word.istitle()}", f"{place}word.isupper()={word.isupper()}"]
    return case + [
        text for tag in tags for text in (f"{place}tag={tag}", f"{place}tag[:2]={tag[:2]}")
    ]


def as_tutorial(examples: list[Example]) -> Part:
    """Return examples with the features of the tutorial."""
    return Part([tutorial(tokens) for tokens, _ in examples], [labels for _, labels in examples])


FEATURES = {"tutorial": as_tutorial, "columns": study_data.as_columns}
CHANGES: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "equal costs": {"class_weight": {}},
    "no dropout": {"dropout": 0.0},
    "neither": {"class_weight": {}, "dropout": 0.0},
    "O costs 0.3": {"class_weight": {"O": 0.3}},
    "dropout 0.2": {"dropout": 0.2},
}
WITHOUT: dict[str, Callable[[str], bool]] = {
    "without affixes of neighbours": lambda template: "fix3[-1,1]" in template,
    "without capitals, hyphens, digits": lambda template: (
        ".istitle[" in template or ".has" in template
    ),
}
PRIORS = {"L-BFGS, c1 0.1, c2 0.1": (0.1, 0.1), "L-BFGS, c2 1": (0.0, 1.0)}

Run = Callable[[Part, Part, int], Labels]


class Setting(NamedTuple):
    """A system with its settings; ``seeds`` is 1 if the seed changes nothing."""

    features: str
    name: str
    run: Run
    seeds: int = SEEDS
    chunks: bool = False  # only where labels mark chunks


def settings() -> Iterator[Setting]:
    """Yield what is compared, with each of the two kinds of features."""
    from laso import Chunker, Tagger
    from laso.estimators.learning.dropout_rates import RATE
    from laso.features import default_templates

    def of(cls: Any, given: dict[str, Any]) -> Run:
        def run(train: Part, dev: Part, seed: int) -> Labels:
            found: Labels = cls(**given, seed=seed).fit(train.X, train.y).predict(dev.X)
            return found

        return run

    for features in FEATURES:
        for name, given in CHANGES.items():
            yield Setting(features, name, of(Tagger, given), chunks="class_weight" in given)

    def without(left_out: Callable[[str], bool]) -> Run:
        def run(train: Part, dev: Part, seed: int) -> Labels:
            names = ("w", "pos") if isinstance(train.X[0][0], tuple) else ("w",)
            features = [t for t in default_templates(names) if not left_out(t)]
            return of(Tagger, {"features": features, "dropout": RATE})(train, dev, seed)

        return run

    for name, left_out in WITHOUT.items():
        yield Setting("columns", name, without(left_out))
    everything = without(lambda template: any(is_out(template) for is_out in WITHOUT.values()))
    yield Setting("columns", "without both", everything)
    yield Setting("columns", "Chunker", of(Chunker, {}), chunks=True)
    yield Setting("tutorial", f"{CRFSUITE} ap", crfsuite("ap"))
    for name, (c1, c2) in PRIORS.items():
        run = crfsuite("lbfgs", c1=c1, c2=c2, max_iterations=100)
        yield Setting("tutorial", f"{CRFSUITE} {name}", run, seeds=1)


def crfsuite(algorithm: str, **given: Any) -> Run:
    """Return a run of python-crfsuite."""

    def run(train: Part, dev: Part, seed: int) -> Labels:
        X, y = ordered(train, seed)
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "model"))
            crfsuite_trainer(algorithm, X, y, **given).train(path)
            tag = crfsuite_tag(path)
            return [tag(x) for x in dev.X]

    return run


# --------------------------------------------------------------------------- running


def run(say: Say, folder: Path) -> None:
    """Run what is missing, and save each result as soon as it is there."""
    from laso.tasks.tagging.task import TaggingTask

    examples = lru_cache(1)(lambda corpus: CASES[corpus]())

    @lru_cache(1)
    def parts(corpus: str, features: str) -> tuple[Part, Part]:
        train, dev = map(FEATURES[features], examples(corpus))
        return train, dev

    def measured(setting: Setting, corpus: str, seed: int) -> Row:
        train, dev = parts(corpus, setting.features)
        score = TaggingTask().score(dev.y, setting.run(train, dev, seed))
        outside = round(share_outside(examples(corpus).train), 3)
        return {"outside": outside, "dev": round(100 * score, 2)}

    def jobs() -> Iterator[tuple[Row, Callable[[], Row]]]:
        for features in FEATURES:
            for corpus in CASES:
                for setting in settings():
                    if setting.features != features or (setting.chunks and "upos" in corpus):
                        continue
                    for seed in range(setting.seeds):
                        key = {"corpus": corpus, "features": features, "config": setting.name}
                        yield {**key, "seed": seed}, partial(measured, setting, corpus, seed)

    tell = "{corpus}, {features}, {config}, seed {seed}: {dev}"
    path = folder / "choices.json"
    run_missing(path, jobs(), lambda row: say(tell.format(**row)), by_line=True)


# --------------------------------------------------------------------------- report


def report(folder: Path) -> str:
    """Return a table for each kind of features, and how far the default is from the best."""
    rows = load(folder / "choices.json") or []
    return "\n\n".join(
        _of_features(features, [row for row in rows if row["features"] == features])
        for features in FEATURES
        if any(row["features"] == features for row in rows)
    )


def _of_features(features: str, rows: list[Row]) -> str:
    cells: dict[str, dict[str, Sample]] = {}
    shares = {}
    for row in rows:
        shares[row["corpus"]] = row["outside"]
        scores = (*cells.get(row["corpus"], {}).get(row["config"], Sample(())).values, row["dev"])
        cells.setdefault(row["corpus"], {})[row["config"]] = Sample(scores)
    measured = {name for here in cells.values() for name in here}
    names = [s.name for s in settings() if s.features == features and s.name in measured]
    complete = [here for here in cells.values() if DEFAULT in here]
    lines = [
        [corpus, f"{100 * shares[corpus]:.0f} %"]
        + [here[name].text() if name in here else "" for name in names]
        for corpus, here in cells.items()
    ]
    regret = {
        name: [max(_means(here).values()) - _means(here)[name] for here in complete if name in here]
        for name in names
    }
    summary = [
        ["mean below the best", "", *(f"{statistics.mean(regret[n]):.2f}" for n in names)],
        ["most below the best", "", *(f"{max(regret[n]):.2f}" for n in names)],
    ]
    head = [f"{features}", "O", *names]
    return f"{table(head, [*lines, *summary], left=1)}\n\n{_bars(features, cells)}"


def _means(here: dict[str, Sample]) -> dict[str, float]:
    return {name: statistics.mean(sample.values) for name, sample in here.items()}


def _bars(features: str, cells: dict[str, dict[str, Sample]]) -> str:
    """Say how far the default is below each of its variants and CRFsuite, and its mean rank."""
    below, ranks = {}, []
    for corpus, here in cells.items():
        means = _means(here)
        theirs = [mean for name, mean in means.items() if name.startswith(CRFSUITE)]
        rivals = [means[name] for name in list(CHANGES)[1:4] if name in means]
        rivals += [max(theirs)] if theirs else []
        below[corpus] = max(rivals) - means[DEFAULT]
        ranks.append(1 + sum(rival > means[DEFAULT] for rival in rivals))
    far = {corpus: gap for corpus, gap in below.items() if gap > NEAR}
    places = ", ".join(f"{corpus} ({gap:.2f})" for corpus, gap in far.items()) or "none"
    rank = statistics.mean(ranks)
    verdict = "met" if not far else "**missed**"
    ranked = "met" if rank < MOST_RANK else "**missed**"
    return (
        f"With the features of {features}, the default should be at most {NEAR} below equal costs, "
        f"no dropout, neither and CRFsuite: {verdict}; further below on {places}. Its mean rank "
        f"among these should be below {MOST_RANK}: {ranked}, it is {rank:.2f}."
    )
