"""Working space for sums that many inputs share, and for bounds on the sums of segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine import option_kinds as kinds
from laso.engine.layout import Out, Run, WeightTable
from laso.engine.option_kinds import Options
from laso.engine.problem import CompiledProblem, has_segments, is_shared
from laso.engine.rows import is_sparse

CONTENTS_PER_ITEM, MOST_CONTENTS = 4, (1 << 17) - 1
BLOCKS_AHEAD, FEATURES_AHEAD = 256, 1024  # that are looked up together
KEPT_STEPS = 1 << 12
HEAVY_BITS = 1 << 16
MOST_HEAVIER = HEAVY_BITS // 8
CAPPED = slice(int(at.CAPPED_UPDATES), int(at.CAPPED_AT) + 1)
ROWS_PER_HEAVY = 1 << 10  # about one row of so many may exceed the cap of most rows
ROWS_DRAWN = 1 << 14  # to choose that cap
ROWS_AT_ONCE = 1 << 13  # that fit into the processor's cache


def no_sharing(labels: int, dtype: Any) -> dict[str, Any]:
    """Return the arrays of a run in which nothing is shared."""
    return {
        "contents": np.zeros(1, np.int64),
        "content_sums": np.zeros((1, labels), dtype),
        "step_names": np.zeros(0, np.int64),
        "step_sums": np.zeros((0, labels), dtype),
        "step_maxima": np.zeros(0),
        "kept_names": np.zeros(1, np.int64),
        "kept_steps": np.zeros((1, labels), dtype),
        "heavy": np.zeros(1, np.uint8),
        "caps": np.full(2, -1.0),
        "expanded": np.zeros((0, at.FIRST_EXPANDED), np.int64),
        "listed": np.zeros((0, len(at.ListedColumn)), np.int64),
        "ahead": Out(np.zeros(0, np.int64), np.zeros(0)),
        "ahead_rows": np.zeros(0, np.int64),
    }


def with_segments(problem: type[CompiledProblem], options: Options, run: Run) -> Run:
    """Return working space in which rounds are filled when they open, if steps are segments."""
    if not has_segments(problem) or options.kind != kinds.ROUNDS or not options.keyed:
        return run
    rounds, width, ahead = len(run.agenda), options.width, FEATURES_AHEAD + len(run.rows)
    labels, dtype = run.content_sums.shape[1], run.content_sums.dtype
    return run._replace(
        step_names=np.zeros(rounds * width, np.int64),
        step_sums=np.zeros((rounds * width, labels), dtype),
        step_maxima=np.zeros(rounds * width),
        kept_names=np.zeros(KEPT_STEPS, np.int64),
        kept_steps=np.zeros((KEPT_STEPS, labels), dtype),
        expanded=np.zeros((rounds, at.FIRST_EXPANDED + width), np.int64),
        listed=np.zeros((BLOCKS_AHEAD, len(at.ListedColumn)), np.int64),
        ahead=Out(np.zeros(ahead, np.int64), np.ones(ahead)),
        ahead_rows=np.zeros(ahead, np.int64),
    )


def with_shared(problem: type[CompiledProblem], run: Run, table: WeightTable, items: int) -> Run:
    """Return working space for decoding so many items, with room for what a problem shares."""
    if not is_shared(problem) or problem.weighted:
        return run
    labels, dtype = run.content_sums.shape[1], run.content_sums.dtype
    n = 1 << min(CONTENTS_PER_ITEM * items, MOST_CONTENTS).bit_length()
    run = run._replace(contents=np.zeros(n, np.int64), content_sums=np.zeros((n, labels), dtype))
    # A table without a filter has too many rows for so few items.
    has_caps = len(run.expanded) and len(table.bloom) and not is_sparse(table)
    return with_caps(run, table) if has_caps else run


def capped(run: Run, table: WeightTable) -> Run:
    """Return working space for learning, with upper bounds that are true of a table, or with none.

    Updates keep them true, and make them worse, so that they are chosen anew at times.
    """
    if not len(run.expanded) or not len(table.bloom) or is_sparse(table):
        run.caps[1] = -1.0
        return run
    known = run.caps[1] >= 0.0 and run.meta[CAPPED].tolist() == _state(table)
    if known and run.meta[at.HEAVIER] < MOST_HEAVIER:
        return run
    run.meta[at.HEAVIER] = 0
    return with_caps(run, table)


def note_capped(run: Run, table: WeightTable) -> None:
    """Note that the upper bounds are those of a table, as it is now."""
    run.meta[CAPPED] = _state(table)


def _state(table: WeightTable) -> list[int]:
    return [*table.ints[[at.GENERATION, at.TICKS]].tolist(), table.v.ctypes.data]


def with_caps(run: Run, table: WeightTable) -> Run:
    """Return working space with upper bounds on the weights of a table's rows."""
    rows = int(table.ints[at.ROWS])
    most = np.zeros(rows + 1, table.v.dtype)  # by row + 1, as in slots; no weight is below 0 here
    for first in range(0, rows, ROWS_AT_ONCE):
        part = table.v[first : min(first + ROWS_AT_ONCE, rows)]
        highest = most[first + 1 : first + 1 + len(part)]
        for label in range(part.shape[1]):
            np.maximum(highest, part[:, label], out=highest)
    if not np.isfinite(most.max()):
        return run._replace(caps=np.full(2, -1.0))
    some = np.sort(most[1 :: 1 + rows // ROWS_DRAWN])
    caps = np.array([some[-1 - len(some) // ROWS_PER_HEAVY] if rows else 0.0, most.max()])
    keys = table.slots[(most > caps[0])[table.slots[:, at.SLOT_ROW]], at.SLOT_KEY]
    flags = np.zeros(HEAVY_BITS, bool)
    flags[(keys >> 20) & (HEAVY_BITS - 1)] = True
    return run._replace(heavy=np.packbits(flags, bitorder="little"), caps=caps.astype(np.float64))
