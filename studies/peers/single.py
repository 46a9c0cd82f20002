"""One sentence at a time, and the memory of training: ``CRF`` against CRFsuite.

``python -m studies single`` trains both on the same feature dicts of CoNLL-2000 and calls them
in turn with the same sentences, so that whatever else the machine does slows down both. Memory is
that of fresh processes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from laso.data import Sentence
from studies import measure
from studies.corpus import Files, plain_read
from studies.measure import Row, Say, format_table, peak_mb, table
from studies.peers.systems import crfsuite_trainer, labels_of

LASO, THEIRS, PYTHON_CRFSUITE = "laso", "sklearn-crfsuite", "python-crfsuite"
SYSTEMS = (LASO, THEIRS)
SETTINGS: dict[str, Any] = {"algorithm": "ap", "max_iterations": 5}
SENTENCES = 2000  # to learn from for the calls
LENGTH = 20  # tokens of the sentences of the calls
ROUNDS = 10
FORMS = ("generator", "list")


# --------------------------------------------------------------------------- features


def feature_dicts(sentence: Sentence) -> list[dict[str, Any]]:
    """Return the features of sklearn-crfsuite's tutorial: strings, flags and a number."""
    words, tags = [token[0] for token in sentence], [token[1] for token in sentence]
    tokens = []
    for i, (word, tag) in enumerate(zip(words, tags, strict=True)):
        one: dict[str, Any] = {"bias": 1.0, "word[-3:]": word[-3:], "word[-2:]": word[-2:]}
        one |= {"word.isdigit()": word.isdigit(), **_near("", word, tag)}
        if i > 0:
            one |= _near("-1:", words[i - 1], tags[i - 1])
        else:
            one["BOS"] = True
        if i + 1 < len(words):
            one |= _near("+1:", words[i + 1], tags[i + 1])
        else:
            one["EOS"] = True
        tokens.append(one)
    return tokens


def _near(prefix: str, word: str, tag: str) -> dict[str, Any]:
    return {
        f"{prefix}word.lower()": word.lower(),
        f"{prefix}word.istitle()": word.istitle(),
        f"{prefix}word.isupper()": word.isupper(),
        f"{prefix}postag": tag,
        f"{prefix}postag[:2]": tag[:2],
    }


# --------------------------------------------------------------------------- calls


def models(train: list[Sentence]) -> dict[str, Any]:
    """Return the trained models of both systems."""
    import sklearn_crfsuite

    import laso

    X, y = [feature_dicts(sentence) for sentence in train], labels_of(train)
    ours, theirs = laso.CRF(**SETTINGS, threads=1), sklearn_crfsuite.CRF(**SETTINGS)
    return {LASO: ours.fit(X, y), THEIRS: theirs.fit(X, y)}


CALLS: Mapping[str, Callable[[Any], Callable[[Any], Any]]] = {
    "predict_single": lambda model: model.predict_single,
    "predict_marginals_single": lambda model: model.predict_marginals_single,
    "tagger_.tag": lambda model: model.tagger_.tag,
    "predict of a list of one": lambda model: lambda x: model.predict([x]),
}


def seconds_of(
    calls: Mapping[str, Callable[[Any], Any]], inputs: list[Any], rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of all calls of each system; they are called in turn."""
    times: dict[str, list[float]] = {system: [] for system in calls}
    for _ in range(rounds):
        for x in inputs:
            for system, call in calls.items():
                began = time.perf_counter()
                call(x)
                times[system].append(time.perf_counter() - began)
    return times


def forms(sentences: list[Sentence]) -> dict[str, list[Any]]:
    """Return sentences as feature dicts, and as lists of strings."""
    dicts = [feature_dicts(sentence) for sentence in sentences]
    lists = [[[f"{k}:{v}" for k, v in token.items()] for token in x] for x in dicts]
    return {"dicts": dicts, "lists of strings": lists}


def call_rows(train: list[Sentence], test: list[Sentence]) -> Iterator[Row]:
    """Yield the median time of each call, for whole sentences and for one token."""
    made = models(train[:SENTENCES])
    inputs = [feature_dicts(sentence) for sentence in test if len(sentence) == LENGTH]
    for what, method in CALLS.items():
        for tokens in (LENGTH, 1):
            some = [x[:tokens] for x in inputs]
            calls = {name: method(model) for name, model in made.items()}
            for system, times in seconds_of(calls, some, ROUNDS).items():
                ms = 1e3 * statistics.median(times)
                yield {"what": what, "system": system, "tokens": tokens, "ms": ms}
    yield from throughput_rows(made, test)


def throughput_rows(made: Mapping[str, Any], test: list[Sentence]) -> Iterator[Row]:
    """Yield the tokens per second of one call with all sentences: the best of five."""
    tokens = sum(map(len, test))
    tag = made[THEIRS].tagger_.tag
    calls: dict[str, Callable[[Any], Any]] = {
        LASO: made[LASO].predict,
        PYTHON_CRFSUITE: lambda X: [*map(tag, X)],
    }
    for form, X in forms(test).items():
        for system, times in seconds_of(calls, [X], 5).items():
            yield {"what": form, "system": system, "tokens_per_s": tokens / min(times)}


# --------------------------------------------------------------------------- memory


def peak_of_training(job: Row) -> Row:
    """Train in this process, and return its peak memory."""
    train = plain_read(Path(job["train"]))
    X: Any = (feature_dicts(sentence) for sentence in train)
    if job["form"] == "list":
        X = list(X)
    before = peak_mb()
    TRAINERS[job["system"]](X, labels_of(train), str(Path(job["work"], "model")))
    what = f"fit, {job['form']}"
    return {"system": job["system"], "what": what, "before_mb": before, "peak_mb": peak_mb()}


def _train_ours(X: Any, y: Any, path: str) -> None:
    from laso import CRF

    CRF(**SETTINGS).fit(X, y).save(path)


def _train_theirs(X: Any, y: Any, path: str) -> None:
    from sklearn_crfsuite import CRF

    CRF(**SETTINGS, model_filename=path).fit(X, y)


def _train_crfsuite(X: Any, y: Any, path: str) -> None:
    crfsuite_trainer(items=X, labels=y, **SETTINGS).train(path)


TRAINERS = {LASO: _train_ours, THEIRS: _train_theirs, PYTHON_CRFSUITE: _train_crfsuite}


# --------------------------------------------------------------------------- all of it


def run(files: Files, work: Path, results: Path, say: Say) -> Path:
    """Measure everything, save single.json and write single.md; return its path."""
    about = {"machine": measure.machine(), "corpus": "CoNLL-2000"}
    packages = ("laso", "numba", "numpy", PYTHON_CRFSUITE, THEIRS)
    about["versions"] = measure.versions(packages)
    rows: list[Row] = []
    for row in call_rows(plain_read(files.train), plain_read(files.test)):
        rows.append({**row, **about})
        number = f"{row['ms']:.3f} ms" if "ms" in row else f"{row['tokens_per_s']:,.0f} tokens/s"
        say(f"{row['what']}, {row['system']}: {number}")
    for form in FORMS:
        for system in TRAINERS:
            job = {"system": system, "form": form, "train": files.train, "work": work}
            row = measure.Processes(work).run(f"{__name__}:peak_of_training", job)
            rows.append({**row, **about})
            say(f"{row['what']}, {system}: {row['peak_mb']:.0f} MB")
    measure.save(results / "single.json", rows)
    return measure.write(results / "single.md", report(rows))


def report(rows: list[Row]) -> str:
    """Return the text of single.md."""
    calls = [row for row in rows if "ms" in row]
    fits = [row for row in rows if "peak_mb" in row]
    many = [row for row in rows if "tokens_per_s" in row]
    named = list(dict.fromkeys((row["what"], row["tokens"]) for row in calls))
    found = {(row["what"], row["tokens"], row["system"]): row["ms"] for row in calls}
    lines = [[what, str(n), *(f"{found[what, n, s]:.3f}" for s in SYSTEMS)] for what, n in named]
    parts = ["# One sentence at a time, and the memory of training", NOTES]
    parts.append(table(["call", "tokens", *(f"{s}, ms" for s in SYSTEMS)], lines, left=1))
    parts.append(MANY)
    speeds = {"tokens are": "{what}", "system": "{system}", "tokens/s": "{tokens_per_s:,.0f}"}
    parts += [format_table(many, speeds), MEMORY]
    peaks = {"before, MB": "{before_mb:.0f}", "peak, MB": "{peak_mb:.0f}"}
    parts.append(format_table(fits, {"X is a": "{what}", "system": "{system}", **peaks}))
    return "\n\n".join(parts).replace("fit, ", "") + "\n"


NOTES = f"""\
Made by `python -m studies single` on CoNLL-2000 with the features of sklearn-crfsuite's
tutorial, about 18 a token, and `{SETTINGS}` for both. The systems are called in turn with the same
sentences of {LENGTH} tokens, and with their first tokens, {ROUNDS} times; a time is the median."""
MANY = """\
All sentences of the test data in one call; python-crfsuite's tagger is called for each. The best of
five, in turn, on one thread."""
MEMORY = """\
The peak memory of a process that trains on all of the training data, and the peak before: with the
corpus in memory, and with all features if they are a list. python-crfsuite gets one sentence at a
time."""
