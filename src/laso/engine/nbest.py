"""The outputs that a beam holds at its end: its n-best list."""

from __future__ import annotations

import numpy as np

from laso.engine import layout as at
from laso.engine.exact import NBest
from laso.engine.layout import Array, Corpus, Out, Run, Table
from laso.engine.machine import Machine, failure, grown_run, longer, mapped, parts, sizes


def beam_nbest(
    machine: Machine, corpus: Corpus, order: Array, table: Table, n: int, *, threads: int = 1
) -> NBest:
    """Up to n outputs of each input named, best first; the first is the one that decoding finds.

    There are no more than the beam is wide. A queue that is no beam has one.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, found {n}")
    found = mapped(lambda part: _some(machine, corpus, part, table, n), parts(order, threads))
    paths = [path for some in found for input_paths in some for path in input_paths]
    counts = [len(input_paths) for some in found for input_paths in some]
    steps = [step for _, path in paths for step in path]
    return NBest(
        np.array(steps, np.int32).reshape(-1, 2),
        np.cumsum([len(path) for _, path in paths], dtype=np.int64),
        np.array([score for score, _ in paths]),
        np.array(counts, np.int64),
    )


Path = tuple[float, list[tuple[int, int]]]


def _some(machine: Machine, corpus: Corpus, order: Array, table: Table, n: int) -> list[list[Path]]:
    run = machine.new_run(corpus, order, table)
    longest = int(sizes(corpus, order).max(initial=0))
    steps = np.zeros((longest + 16, 2), np.int32)
    results = Out(np.zeros(1, np.int64), np.zeros(1))
    found: list[list[Path]] = []
    while len(found) < len(order):
        one = order[len(found) : len(found) + 1]
        _, status = machine.kernels(
            "decode_many", corpus, one, table, run, machine.options, steps, results
        )
        if status == at.DONE:
            best = steps[: results.keys[0]]
            found.append(_held(run, machine.options.kind, best, float(results.values[0]))[:n])
        elif status == at.MORE_ENTRIES:
            steps = longer(steps, 2 * len(steps))
        elif status == at.MORE_NODES:
            run = grown_run(run, status)
        else:
            raise failure(status, f"input {int(one[0])}")
    return found


def _held(run: Run, kind: int, best: Array, score: float) -> list[Path]:
    """The goals of the last round that was opened, of which the first was dequeued."""
    if kind == at.RANKED:
        return [(score, [(int(group), int(label)) for group, label in best])]
    opened = run.lists[len(run.lists) - 2]
    nodes = opened[at.FIRST : at.FIRST + int(run.meta[at.ROUND_END])].tolist()
    return [
        (float(run.reals[node, at.G]), _path(run, node))
        for node in nodes
        if run.ints[node, at.GOAL]
    ]


def _path(run: Run, node: int) -> list[tuple[int, int]]:
    steps = []
    while run.ints[node, at.PARENT] >= 0:
        steps.append((int(run.ints[node, at.GROUP]), int(run.ints[node, at.LABEL])))
        node = int(run.ints[node, at.PARENT])
    return steps[::-1]
