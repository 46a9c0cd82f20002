"""How long two versions of laso take to train and to label, call by call in turn.

    LASO_DATA=folder python tools/compare_speed.py ../before . --tasks tagger-5 parser-8 --rounds 20

The first two arguments are folders with clones. A machine that others use changes its speed within
seconds; so each version makes the same call, one after the other on one core, and what counts is
the median of the ratios of their processor times. Each version trains a model of its own, since
formats of files may differ.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORKER = "--worker"
SENTENCES = 2500  # to train on
TASKS = (
    *("tagger-1", "tagger-5", "file-1", "file-5", "single-5", "exact-1"),
    *("chunker-5", "joint-10", "parser-1", "parser-8"),
)


def main() -> None:
    """Compare two folders, or be the process that works with the version of one."""
    if sys.argv[1:2] == [WORKER]:
        work(sys.argv[2])
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path, help="a folder with a clone")
    parser.add_argument("new", type=Path, help="another one")
    parser.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS, metavar="TASK")
    parser.add_argument("--rounds", type=int, default=20, help="calls that label")
    parser.add_argument("--trainings", type=int, default=2, help="calls that train")
    given = parser.parse_args()
    for task in given.tasks:
        compare(task, (given.old, given.new), given.trainings, given.rounds)


def compare(task: str, folders: tuple[Path, Path], trainings: int, rounds: int) -> None:
    """Write how the second version compares with the first."""
    workers = [started(folder, task) for folder in folders]
    digests = [answer(worker) for worker in workers]
    ratios = []
    for call, times in (("train", trainings), ("label", rounds)):
        pairs = [[float(ask(worker, call)) for worker in workers] for _ in range(times)]
        if pairs:
            ratio = statistics.median(new / old for old, new in pairs)
            ratios.append(f"{call} {ratio:.3f} of the old time ({min(pairs)[0]:.3f} s)")
    for worker in workers:
        worker.communicate()
    outputs = "same outputs" if digests[0] == digests[1] else "OTHER OUTPUTS"
    say(f"{task:10} {outputs}, {', '.join(ratios)}")


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def started(folder: Path, task: str) -> subprocess.Popen[str]:
    """Start a process that works with the version of a folder."""
    return subprocess.Popen(
        [sys.executable, __file__, WORKER, task],
        env=os.environ | {"PYTHONPATH": str(folder.resolve() / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(worker: subprocess.Popen[str], call: str) -> str:
    """Let a process make a call; return its answer."""
    assert worker.stdin is not None
    worker.stdin.write(f"{call}\n")
    worker.stdin.flush()
    return answer(worker)


def answer(worker: subprocess.Popen[str]) -> str:
    """Return the next line of a process."""
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise SystemExit("one of the versions failed: its message is above")
    return line.strip()


def work(task: str) -> None:
    """Train and label once, and then what each line asks for; write a digest, then seconds."""
    from hashlib import blake2b

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    train, label = calls(task)
    model = train()
    say(blake2b(repr(label(model)).encode()).hexdigest())
    for line in sys.stdin:
        began = time.process_time()
        train() if line.strip() == "train" else label(model)
        say(str(time.process_time() - began))


def calls(task: str) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """Return what trains a model, and what labels with it."""
    import laso
    from laso.data import find_corpus, read_columns
    from laso.features.templates import CHUNKING

    kind, width = task.split("-")
    given: dict[str, Any] = {"queue": int(width), "epochs": 2, "threads": 1}
    if kind == "parser":
        folder = find_corpus("ud_ewt")
        X, y = trees(folder / "en_ewt-ud-train.conllu", SENTENCES)
        new, _ = trees(folder / "en_ewt-ud-dev.conllu", 1000)
        return lambda: laso.Parser(**given).fit(X, y), lambda model: model.predict(new)
    folder = find_corpus("conll2000")
    tokens = read_columns(folder / "train.txt")[:SENTENCES]
    test = [[token[:2] for token in sentence] for sentence in read_columns(folder / "test.txt")]
    X, y = [[t[:2] for t in s] for s in tokens], [[t[2] for t in s] for s in tokens]
    if kind == "chunker":
        return lambda: laso.Chunker(**given).fit(X, y), lambda model: model.predict(test)
    if kind == "joint":
        words, layers = [[t[:1] for t in s] for s in tokens], [[t[1:] for t in s] for s in tokens]
        new = [[token[:1] for token in sentence] for sentence in test]
        joint = laso.JointTagger
        return (
            lambda: joint(layers=["pos", "chunk"], **given).fit(words, layers),
            lambda model: model.predict(new),
        )
    if kind == "exact":
        given |= {"queue": laso.exact(), "update": laso.lbfgs(), "epochs": 5}
    return (
        lambda: laso.Tagger(features=CHUNKING, **given).fit(X, y),
        {"file": labelling_file(folder / "test.txt"), "single": singly(test)}.get(
            kind, lambda model: model.predict(test)
        ),
    )


def trees(path: Path, n: int) -> tuple[list[Any], list[Any]]:
    """Return words with their tags, and heads with their labels, of n sentences of CoNLL-U."""
    words, arcs = [], []
    for block in path.read_text(encoding="utf-8").split("\n\n")[:n]:
        lines = [line.split("\t") for line in block.splitlines()]
        rows = [line for line in lines if line[0].isdigit()]
        words.append([(row[1], row[3], row[4]) for row in rows])
        arcs.append([(int(row[6]), row[7]) for row in rows])
    return words, arcs


def labelling_file(path: Path) -> Callable[[Any], bytes]:
    """Return what labels a file as ``laso tag`` does."""

    def label(model: Any) -> bytes:
        import inspect
        import io

        from laso.cli.settings import Settings
        from laso.cli.tag import Extras, tag

        out = io.BytesIO()
        # Earlier clones ask whether to write JSON, later ones for a format.
        later = "to" in inspect.signature(tag).parameters
        how: Any = {"to": None} if later else {"as_json": False}
        tag(model, [str(path)], out, Settings(), extras=Extras(), **how)
        return out.getvalue()

    return label


def singly(inputs: list[Any]) -> Callable[[Any], list[Any]]:
    """Return what labels one input at a time."""
    return lambda model: [model.predict_single(x) for x in inputs[:500]]


if __name__ == "__main__":
    main()
