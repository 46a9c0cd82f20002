"""How long two versions of laso take to label the same file, call by call in turn.

    python tools/compare_speed.py ../before . model.laso test.txt --rounds 40

The two arguments before the model are folders with clones. A machine that others use changes its
speed within seconds; so each version labels the file once, one after the other on one core, and
what counts is the median of the ratios of their processor times.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

WORKER = "--worker"


def main() -> None:
    """Compare two folders, or be the process that labels with the version of one."""
    if sys.argv[1:2] == [WORKER]:
        work(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path, help="a folder with a clone")
    parser.add_argument("new", type=Path, help="another one")
    parser.add_argument("model", type=Path)
    parser.add_argument("file", type=Path, help="sentences in any format that laso tag reads")
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    workers = [started(folder, given.model, given.file) for folder in (given.old, given.new)]
    digests = [answer(worker) for worker in workers]
    times = [[float(ask(worker)) for worker in workers] for _ in range(given.rounds)]
    for worker in workers:
        worker.communicate()
    ratio = statistics.median(new / old for old, new in times)
    fastest = [min(column) for column in zip(*times, strict=True)]
    say("same outputs" if digests[0] == digests[1] else "OTHER OUTPUTS")
    say(f"median of {given.rounds} ratios: {ratio:.3f} of the old time")
    say(f"fastest: old {fastest[0]:.3f} s, new {fastest[1]:.3f} s")


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def started(folder: Path, model: Path, file: Path) -> subprocess.Popen[str]:
    """Start a process that labels with the version of a folder."""
    command = [sys.executable, __file__, WORKER, str(model.resolve()), str(file.resolve())]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder.resolve() / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(worker: subprocess.Popen[str]) -> str:
    """Let a process label once; return its answer."""
    assert worker.stdin is not None
    worker.stdin.write("\n")
    worker.stdin.flush()
    return answer(worker)


def answer(worker: subprocess.Popen[str]) -> str:
    """Return the next line of a process."""
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise SystemExit("one of the versions failed: its message is above")
    return line.strip()


def work(model: str, file: str) -> None:
    """Label once, and then each time a line comes; write a digest, then seconds."""
    from hashlib import blake2b

    from laso import load_model

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    loaded = load_model(model)
    loaded.threads = 1
    say(blake2b(repr(loaded.predict(Path(file))).encode()).hexdigest())
    for _ in sys.stdin:
        began = time.process_time()
        loaded.predict(Path(file))
        say(str(time.process_time() - began))


if __name__ == "__main__":
    main()
