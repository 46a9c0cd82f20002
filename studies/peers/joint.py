"""Joint tagging and chunking from words alone: ``JointTagger`` against python-crfsuite.

CRFsuite predicts one label a word, so that two layers need product labels, or a pipeline of two
taggers, in which the second uses the tags predicted by the first. Each system is trained and tested
once, in a fresh process with one thread: ``python -m studies joint``.
"""

from __future__ import annotations

import tempfile
import time
from itertools import groupby
from pathlib import Path
from typing import Any

from laso.data import Sentence
from studies import measure
from studies.corpus import Files, plain_read, warmup_file
from studies.measure import Row, Say, fastest, peak_mb, table
from studies.paper import joint
from studies.paper.joint import ALMA, SCORES
from studies.peers.systems import Tag, crfsuite_tag, crfsuite_trainer
from studies.peers.template import padded
from studies.training import parameters

EPOCHS = 10
BEAM = 10
PAIR = "+"
PACKAGES = ("laso", "numba", "numpy", "python-crfsuite")
Tokens = list[tuple[str, ...]]


# --------------------------------------------------------------------------- python-crfsuite


def word_features(sentence: Sentence) -> list[list[str]]:
    """Return the features of each token as strings: words around it, affixes and shapes."""
    words = padded([token[0] for token in sentence])
    features = []
    for i in range(2, len(words) - 2):
        a, b, word, d, e = words[i - 2 : i + 3]
        one = [f"w[-2]={a}", f"w[-1]={b}", f"w[0]={word}", f"w[1]={d}", f"w[2]={e}"]
        one += [f"w[-1]|w[0]={b}|{word}", f"w[0]|w[1]={word}|{d}", f"lower={word.lower()}"]
        one += [f"prefix{n}={word[:n]}" for n in range(1, 5)]
        one += [f"suffix{n}={word[-n:]}" for n in range(1, 5)]
        one += [f"suffix3[-1]={b[-3:]}", f"suffix3[1]={d[-3:]}"]
        one += [f"shape={shape(b)}|{shape(word)}|{shape(d)}", f"shape[0]={shape(word)}"]
        features.append(one)
    return features


def shape(word: str) -> str:
    """Return the case pattern of a word with repeated characters merged."""
    return "".join(kind for kind, _ in groupby(map(_kind, word)))


def _kind(character: str) -> str:
    if character.isupper():
        return "A"
    if character.islower():
        return "a"
    return "0" if character.isdigit() else character


def tag_features(tags: list[str]) -> list[list[str]]:
    """Return the features of the tags around each token, for the second of two taggers."""
    t = padded(tags)
    return [
        [
            *(f"pos[{j}]={t[i + j]}" for j in range(-2, 3)),
            *(f"pos[{j}]|pos[{j + 1}]={t[i + j]}|{t[i + j + 1]}" for j in range(-2, 2)),
            *(f"pos[{j}..{j + 2}]={'|'.join(t[i + j : i + j + 3])}" for j in range(-2, 1)),
        ]
        for i in range(2, len(t) - 2)
    ]


def both(features: list[list[str]], more: list[list[str]]) -> list[list[str]]:
    """Concatenate two feature lists of each token."""
    return [[*a, *b] for a, b in zip(features, more, strict=True)]


def fitted(path: Path, items: Any, labels: Any) -> Tag:
    """Train CRFsuite's averaged perceptron, the fastest of its algorithms; return its tagger."""
    crfsuite_trainer("ap", items, labels, max_iterations=EPOCHS).train(str(path))
    return crfsuite_tag(path)


def product_labels(train: list[Sentence], work: Path) -> tuple[Any, int]:
    """Train one tagger on product labels."""
    path = work / "both"
    gold = ([PAIR.join(token[1:3]) for token in s] for s in train)
    tag = fitted(path, map(word_features, train), gold)

    def predict(sentences: list[Sentence]) -> list[Tokens]:
        predicted = (tag(word_features(s)) for s in sentences)
        return [[tuple(label.split(PAIR)) for label in labels] for labels in predicted]

    return predict, path.stat().st_size


def two_taggers(train: list[Sentence], work: Path) -> tuple[Any, int]:
    """Train a tagger, and a chunker that uses its tags."""
    paths = work / "tags", work / "chunks"
    gold = [[token[1] for token in s] for s in train]
    tag = fitted(paths[0], map(word_features, train), gold)
    given = (both(word_features(s), tag_features(t)) for s, t in zip(train, gold, strict=True))
    chunk = fitted(paths[1], given, ([token[2] for token in s] for s in train))

    def predict(sentences: list[Sentence]) -> list[Tokens]:
        predicted: list[Tokens] = []
        for sentence in sentences:
            features = word_features(sentence)
            tags = tag(features)
            chunks = chunk(both(features, tag_features(tags)))
            predicted.append(list(zip(tags, chunks, strict=True)))
        return predicted

    return predict, sum(path.stat().st_size for path in paths)


# --------------------------------------------------------------------------- laso


def laso_joint(path: Path, epochs: int, work: Path) -> tuple[Any, int]:
    """Train LaSOa_10 of Table 2, without resources."""
    settings = {"queue": BEAM, **ALMA, "epochs": epochs}
    model = joint.tagger()(**parameters(settings), threads=1).fit(path)
    return model.predict, model.save(work / "model.laso")


# --------------------------------------------------------------------------- one measurement

LASO = f"laso LaSOa_{BEAM}"
PEERS = {
    "python-crfsuite, product labels": product_labels,
    "python-crfsuite, two taggers": two_taggers,
}
SYSTEMS = (*PEERS, LASO)


def measure_system(job: Row) -> Row:
    """Train and test a system; return times, memory, the model's size and scores."""
    with tempfile.TemporaryDirectory() as folder:
        return _measure(job, Path(folder))


def _measure(job: Row, work: Path) -> Row:
    system, train, test = job["system"], Path(job["train"]), Path(job["test"])
    if system == LASO:  # code is loaded before the measurement, as that of the peers is
        laso_joint(Path(job["few"]), 1, work)
    else:
        import pycrfsuite  # noqa: F401
    began, cpu = time.perf_counter(), time.process_time()
    if system == LASO:
        predict, size = laso_joint(train, job["epochs"], work)
    else:
        predict, size = PEERS[system](plain_read(train), work)
    train_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    gold = plain_read(test)
    inputs: list[Sentence] = [[token[:1] for token in sentence] for sentence in gold]
    predicted, test_s = predict(inputs), fastest(lambda: predict(inputs))
    tokens = sum(map(len, inputs))
    return {
        "system": system,
        "train_s": train_s,
        "cpu_s": cpu_s,
        "test_s": test_s,
        "tokens_per_s": tokens / test_s,
        "peak_mb": peak_mb(),
        "model_bytes": size,
        **joint.scores([[token[1:3] for token in sentence] for sentence in gold], predicted),
    }


# --------------------------------------------------------------------------- all of them


def in_process(system: str, files: Files, work: Path) -> Row:
    """Return what is measured of a system in a fresh process, with its number of epochs."""
    epochs = chosen_epochs() if system == LASO else EPOCHS
    job = {"system": system, "train": files.train, "test": files.test, "epochs": epochs}
    job["few"] = warmup_file(files.train, work)
    return {**measure.Processes(work).run(f"{__name__}:measure_system", job), "epochs": epochs}


def chosen_epochs() -> int:
    """Return the number of epochs chosen for this row of Table 2, or the default."""
    chosen = measure.load(measure.ROOT / "experiments" / "results" / "chosen.json") or {}
    entry = chosen.get("table2", {}).get(f"LaSOa_{BEAM}, rich, no resources", {})
    return int(entry.get("settings", {}).get("epochs", EPOCHS))


def run(files: Files, work: Path, results: Path, say: Say) -> Path:
    """Measure all systems, save joint.json and write joint.md; return its path."""
    rows: list[Row] = []
    for system in SYSTEMS:
        say(f"{system}: begins")
        one = in_process(system, files, work)
        rows.append({**one, "machine": measure.machine(), "versions": measure.versions(PACKAGES)})
        measure.save(results / "joint.json", rows)
        say(f"{system}: joint {one['joint_acc']:.2f}, train {one['train_s']:.1f} s")
    return measure.write(results / "joint.md", report(rows))


def report(rows: list[Row]) -> str:
    """Return the text of joint.md."""
    ours = next(row for row in rows if row["system"] == LASO)
    lines = [
        [
            row["system"],
            str(row["epochs"]),
            *(f"{row[name]:.2f}" for name in SCORES),
            f"{row['train_s']:.1f}",
            f"{row['train_s'] / ours['train_s']:.1f}",
            f"{row['tokens_per_s']:,.0f}",
            f"{ours['tokens_per_s'] / row['tokens_per_s']:.1f}",
            f"{row['peak_mb']:,.0f}",
            f"{row['model_bytes'] / 1e6:.1f}",
        ]
        for row in rows
    ]
    head = ["system", "passes", "tag", "chunk", "joint", "F", "train s", "laso is faster by"]
    head += ["tokens/s", "laso is faster by", "peak MB", "model MB"]
    parts = ["# Joint tagging and chunking against python-crfsuite", NOTES]
    return "\n\n".join([*parts, table(head, lines, left=1)]) + "\n"


NOTES = """\
Made by `python -m studies joint` on CoNLL-2000, from words alone, without outside resources.
Each system once, in a fresh process with one thread. Training time is from reading the file to the
saved model, decoding time from raw words to labels, the fastest of three passes."""
