"""The n-best list of a beam: the outputs that it holds at its end."""

from __future__ import annotations

import numpy as np

from laso.engine import layout as at
from laso.engine import option_kinds as kinds
from laso.engine.failures import failure
from laso.engine.lattice.exact import NBest
from laso.engine.layout import Array, Dataset, Out, Run, WeightTable
from laso.engine.machine import Machine, grown_run, longer, mapped, parts, sizes


def beam_nbest(
    machine: Machine,
    dataset: Dataset,
    order: Array,
    table: WeightTable,
    n: int,
    *,
    threads: int = 1,
) -> NBest:
    """Return up to n outputs of each given input, best first; the first is that of ``decode``.

    There are at most as many as the beam is wide. A queue that is not a beam has one.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, found {n}")
    by_part = mapped(lambda part: _some(machine, dataset, part, table, n), parts(order, threads))
    paths = [path for part_paths in by_part for input_paths in part_paths for path in input_paths]
    counts = [len(input_paths) for part_paths in by_part for input_paths in part_paths]
    steps = [step for _, path in paths for step in path]
    return NBest(
        np.array(steps, np.int32).reshape(-1, len(at.StepColumn)),
        np.cumsum([len(path) for _, path in paths], dtype=np.int64),
        np.array([score for score, _ in paths]),
        np.array(counts, np.int64),
    )


Path = tuple[float, list[tuple[int, int]]]


def _some(
    machine: Machine, dataset: Dataset, order: Array, table: WeightTable, n: int
) -> list[list[Path]]:
    run = machine.new_run(dataset, order, table)
    longest = int(sizes(dataset, order).max(initial=0))
    steps = np.zeros((longest + 16, len(at.StepColumn)), np.int32)
    results = Out(np.zeros(1, np.int64), np.zeros(1))
    by_input: list[list[Path]] = []
    while len(by_input) < len(order):
        one = order[len(by_input) : len(by_input) + 1]
        _, status = machine.kernels(
            "decode_many", dataset, one, table, run, machine.options, steps, results
        )
        if status == at.DONE:
            best = steps[: results.keys[0]]
            by_input.append(_held(run, machine.options.kind, best, float(results.values[0]))[:n])
        elif status == at.MORE_ENTRIES:
            steps = longer(steps, 2 * len(steps))
        elif status == at.MORE_NODES:
            run = grown_run(run, status, f"input {int(one[0]) + 1}")
        else:
            raise failure(status, dataset, int(one[0]), machine.problem, run)
    return by_input


def _held(run: Run, kind: int, best: Array, score: float) -> list[Path]:
    """Return the goals of the last round that was opened; the first of them was dequeued."""
    if kind == kinds.RANKED:
        return [(score, [(int(group), int(label)) for group, label in best])]
    opened = run.agenda[len(run.agenda) - at.EXTRA_LISTS + at.OPEN_ROUND]
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
