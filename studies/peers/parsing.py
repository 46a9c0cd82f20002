"""Dependency parsers on UD English EWT, with gold and with predicted tags, and on Turkish.

``python -m studies parsers`` trains each system in a process of its own and keeps its model in
the folder ``--work``; a row of parsing.json is saved as soon as it is there, and not repeated.
``python -m studies parsers --decode`` only repeats the decoding of the models that are there.

Predicted tags are one common set: UPOS and XPOS by ``laso.Tagger``, those of the training data by
taggers that have not seen the sentence (jackknifing). Words are gold, and so is their number.
The development data of Turkish stand for its test data; every tenth training sentence is held out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from laso.data import find_corpus
from laso.metrics.trees import tree_scores
from studies import measure
from studies.measure import Failures, Job, Row, Say, fastest, format_table, peak_mb
from studies.peers.parsers import SYSTEMS, ParserSystem, read_trees, trees_of
from studies.peers.systems import absent

PARTS = ("train", "dev", "test")
TAGS = ("gold", "predicted")
EWT, IMST = "ud_ewt", "ud_tr_imst"
EVERY = 10  # of the training sentences of Turkish, each of these is held out
FOLDS = 5
PASSES = 8  # over the test data: some systems are faster when they have parsed a while
TAGGED = (3, 4)  # columns of CoNLL-U that are predicted: UPOS and XPOS
FEATS = 5
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

# --------------------------------------------------------------------------- data


def gold_files() -> dict[str, Path]:
    """Return the files of the treebank by their part."""
    folder = find_corpus(EWT)
    return {part: folder / f"en_ewt-ud-{part}.conllu" for part in PARTS}


def turkish_files(work: Path) -> dict[str, Path]:
    """Return files of the Turkish treebank, whose training data are divided at the first call."""
    folder = find_corpus(IMST)
    files = {part: work / "turkish" / f"{part}.conllu" for part in PARTS[:2]}
    files["train"].parent.mkdir(parents=True, exist_ok=True)
    text = (folder / "tr_imst-ud-train.conllu").read_text(encoding="utf-8")
    sentences = [f"{each}\n\n" for each in text.split("\n\n") if each.strip()]
    held_out = sentences[::EVERY]
    del sentences[::EVERY]
    for path, part in zip(files.values(), (sentences, held_out), strict=True):
        path.write_text("".join(part), encoding="utf-8")
    return {**files, "test": folder / "tr_imst-ud-dev.conllu"}


def predicted_files(work: Path, say: Say) -> dict[str, Path]:
    """Return files with predicted UPOS and XPOS and no other morphology, made at the first call."""
    gold = gold_files()
    files = {part: work / "predicted" / f"{part}.conllu" for part in PARTS}
    if all(path.exists() for path in files.values()):
        return files
    files["train"].parent.mkdir(parents=True, exist_ok=True)
    rows = {part: [[list(token) for token in s] for s in raw(gold[part])] for part in PARTS}
    for column in TAGGED:
        say(f"predicted tags: column {column + 1} of CoNLL-U")
        for part, found in tagged(rows, column):
            for sentence, tags in zip(rows[part], found, strict=True):
                for token, tag in zip(sentence, tags, strict=True):
                    token[column] = tag
    for part, path in files.items():
        path.write_text("".join(map(conllu, rows[part])), encoding="utf-8")
    return files


def raw(path: Path) -> list[list[tuple[str, ...]]]:
    """Return all columns of the words of a CoNLL-U file."""
    from laso.data import read

    return [[tuple(row) for row in block.tokens] for block in read(path, format="conllu")]


def conllu(sentence: list[list[str]]) -> str:
    """Return a sentence as CoNLL-U, without morphological features, which are not predicted."""
    for token in sentence:
        token[FEATS] = "_"
    return "".join("\t".join(token) + "\n" for token in sentence) + "\n"


def tagged(rows: dict[str, Any], column: int) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the tags of each part; those of the training data are jackknifed."""
    from laso import Tagger

    words = {part: [[token[1] for token in s] for s in rows[part]] for part in PARTS}
    gold = [[token[column] for token in s] for s in rows["train"]]

    def tags(chosen: Iterable[int], inputs: list[list[str]]) -> list[list[str]]:
        picked = list(chosen)
        made = Tagger(queue=1, epochs=5, threads=1)
        made.fit([[(w,) for w in words["train"][i]] for i in picked], [gold[i] for i in picked])
        return made.predict([[(w,) for w in sentence] for sentence in inputs])

    n = len(gold)
    jackknifed: list[list[str]] = [[]] * n
    for fold in range(FOLDS):
        held = range(fold, n, FOLDS)
        rest = (i for i in range(n) if i % FOLDS != fold)
        for i, found in zip(held, tags(rest, [words["train"][i] for i in held]), strict=True):
            jackknifed[i] = found
    others = tags(range(n), words["dev"] + words["test"])
    yield "train", jackknifed
    yield "dev", others[: len(words["dev"])]
    yield "test", others[len(words["dev"]) :]


# --------------------------------------------------------------------------- one measurement


def train(job: Row) -> Row:
    """Train a system; times are processor seconds, from reading the files to the saved model."""
    system, folder = SYSTEMS[job["system"]], Path(job["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    began, cpu = time.perf_counter(), time.process_time()
    system.train(Path(job["train"]), Path(job["dev"]), folder, job["settings"])
    return {
        "train_s": time.process_time() - cpu,
        "wall_s": time.perf_counter() - began,
        "peak_mb": peak_mb(),
    }


def decode(job: Row) -> Row:
    """Parse the test sentences, and score the trees; the fastest of PASSES counts, no loading."""
    system, folder = SYSTEMS[job["system"]], Path(job["folder"])
    sentences = read_trees(Path(job["test"]))
    parse = system.load(folder, job["settings"])
    predicted = parse(sentences)
    seconds = fastest(lambda: parse(sentences), PASSES, time.process_time)
    scores = tree_scores(trees_of(sentences), predicted)
    return {
        "uas": scores.uas,
        "las": scores.las,
        "clas": scores.clas,
        "tokens_per_s": scores.words / seconds,
        "model_bytes": sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()),
    }


# --------------------------------------------------------------------------- all of them


class Chosen(NamedTuple):
    """Names of what to measure; those that are not given mean all."""

    systems: Sequence[str] = ()
    configs: Sequence[str] = ()  # without their seeds
    tags: Sequence[str] = ()
    corpus: str = EWT


def run(work: Path, results: Path, say: Say, chosen: Chosen, *, again: bool) -> Path:
    """Measure what is chosen, save parsing.json and write parsers.md; return its path.

    ``again`` decodes once more with the models that are there.
    """
    work.mkdir(parents=True, exist_ok=True)
    predicted = cache(partial(predicted_files, work, say))
    files: dict[str, Callable[[], dict[str, Path]]] = {"gold": gold_files, "predicted": predicted}
    if chosen.corpus == IMST:
        files = {"gold": cache(partial(turkish_files, work))}

    def jobs() -> Iterator[Job]:
        for tags in (each for each in files if each in (chosen.tags or files)):
            for system in (SYSTEMS[name] for name in chosen.systems or SYSTEMS):
                if missing := absent(system.module):
                    say(f"{system.name}: skipped, {missing}")
                    continue
                for config, settings in system.configs.items():
                    if not chosen.configs or config.partition(", seed")[0] in chosen.configs:
                        key = {"corpus": chosen.corpus, "system": system.name, "config": config}
                        key["tags"] = tags
                        full = {**key, "settings": settings}
                        yield key, partial(measured, system, work, full, files[tags], say)

    rows = measure.run_missing(
        results / "parsing.json",
        jobs(),
        lambda row: say(f"{name_of(row)}: LAS {row['las']:.2f}"),
        again=again,
        order=order,
        failures=Failures(say),
    )
    return measure.write(results / "parsers.md", report(rows))


def measured(
    system: ParserSystem, work: Path, key: Row, files: Callable[[], dict[str, Path]], say: Say
) -> Row:
    """Train unless the model is there, then decode."""
    what, folder = name_of(key), folder_of(work, key)
    job = {**key, "folder": folder / "model", **files()}
    before: Row = {}
    if other := key["settings"].get("of"):  # made from the model of another configuration
        source = folder_of(work, {**key, "config": other})
        before = measure.load(source / "train.json") or {}
        job["settings"] = {**key["settings"], "source": source / "model"}
    processes = measure.Processes(work, **ONE_THREAD)
    note = folder / "train.json"
    if not note.exists():
        say(f"{what}: training")
        made = processes.run(f"{__name__}:train", job)
        measure.save(note, {**made, "train_s": made["train_s"] + before.get("train_s", 0.0)})
    say(f"{what}: decoding")
    return {
        "settings": key["settings"],
        **measure.load(note),
        **processes.run(f"{__name__}:decode", job),
        "machine": measure.machine(),
        "versions": measure.versions(system.packages),
    }


def name_of(key: Row) -> str:
    """Return the name of a configuration with its tags."""
    corpus = "" if key["corpus"] == EWT else f"{key['corpus']}, "
    return f"{corpus}{key['system']} {key['config']}, {key['tags']} tags"


def folder_of(work: Path, key: Row) -> Path:
    """Return the folder of a configuration, with its model and the notes of its training."""
    return work / "models" / "".join(c if c.isalnum() else "-" for c in name_of(key))


def order(row: Row) -> tuple[Any, ...]:
    """Return the place of a row: by corpus and tags, then by system and configuration."""
    corpus, tags = (EWT, IMST).index(row["corpus"]), TAGS.index(row["tags"])
    return corpus, tags, list(SYSTEMS).index(row["system"]), row["config"]


def means(rows: list[Row]) -> list[Row]:
    """Return the rows with the means over seeds in place of the rows of each seed."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in sorted(rows, key=order):
        config = row["config"].partition(", seed")[0]
        groups.setdefault((row["tags"], row["system"], config), []).append(row)
    names = ("uas", "las", "clas", "train_s", "tokens_per_s", "peak_mb")
    return [
        {
            **dict(zip(("tags", "system", "config"), key, strict=True)),
            "runs": len(group),
            "spread": f" ± {statistics.stdev(r['las'] for r in group):.2f}" if group[1:] else "",
            **{name: sum(row[name] for row in group) / len(group) for name in names},
            "mb": sum(row["model_bytes"] for row in group) / len(group) / 1e6,
        }
        for key, group in groups.items()
    ]


COLUMNS = {
    "system": "{system}",
    "configuration": "{config}",
    "seeds": "{runs}",
    "UAS": "{uas:.2f}",
    "LAS": "{las:.2f}{spread}",
    "CLAS": "{clas:.2f}",
    "train s": "{train_s:,.0f}",
    "tokens/s": "{tokens_per_s:,.0f}",
    "peak MB": "{peak_mb:,.0f}",
    "model MB": "{mb:.1f}",
}


def report(rows: list[Row]) -> str:
    """Return the text of parsers.md."""
    parts = ["# Dependency parsers on UD English EWT", NOTES.rstrip()]
    of_corpus = {name: [row for row in rows if row["corpus"] == name] for name in (EWT, IMST)}
    headings = [(EWT, tags, f"## {tags.capitalize()} tags") for tags in TAGS]
    for corpus, tags, heading in [*headings, (IMST, "gold", "## Turkish, gold tags")]:
        some = [row for row in means(of_corpus[corpus]) if row["tags"] == tags]
        text = format_table(some, COLUMNS) if some else "Not measured yet."
        parts += [heading, text]
    return "\n\n".join(parts) + "\n"


NOTES = f"""\
Made by `python -m studies parsers`: test data, gold words, scores as the CoNLL 2018 evaluation
defines them (labels without subtypes, punctuation counted). Each system is trained on the training
data and chooses its number of passes on the development data, in a process of its own with one
thread; rows of laso are means over seeds, LAS ± its standard deviation. Predicted tags are UPOS and
XPOS by `laso.Tagger`, jackknifed over {FOLDS} folds for the training data, and the same for all
systems; UDPipe also sees the morphological features of gold tags, and so does `Parser` with its
defaults, whose other rows have templates of words and tags. Turkish is UD IMST: its development
data stand for test data, and a tenth of its training data for development data. Seconds are
processor time: training from reading the files to the saved model, decoding from words and tags to
trees, in the fastest of {PASSES} passes over the test data. Other programs may have run meanwhile.
"""
