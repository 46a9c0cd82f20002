"""Working space for sums that many inputs share, and for bounds on the sums of segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine import option_kinds as kinds
from laso.engine import thresholds
from laso.engine.layout import Array, Out, Run, WeightTable
from laso.engine.memory_limit import new_arrays
from laso.engine.option_kinds import Options
from laso.engine.problem import (
    CompiledProblem,
    has_named_factors,
    is_capped,
    is_factored,
    is_shared,
)

CAPPED = slice(int(at.CAPPED_UPDATES), int(at.CAPPED_AT) + 1)


@dataclass
class KeptCaps:
    """The upper bounds on weights that a decoding has chosen, for the next with the same weights.

    The weights must not change in place.
    """

    of: tuple[Array, Array] | None = None  # weights and bounds


def named_rows(problem: type[CompiledProblem], factors: int) -> tuple[int, int]:
    """Return the number of pages for named bundles, and of the rows of each, a power of two."""
    if has_named_factors(problem):
        return factors, thresholds.NAMED_FACTORS
    return 1, thresholds.NAMED_STEPS if is_shared(problem) else 1


def with_bundles(run: Run, numbered: int, named: tuple[int, int], what: str = "inputs") -> Run:
    """Return working space with so many rows for numbered bundles, and pages for named ones."""
    pages, size = named
    shapes = bundle_shapes(numbered + pages * size, len(run.sums), run.sums.dtype)
    run.meta[at.FIRST_NAMED], run.meta[at.NAMED_MASK] = numbered, size - 1
    arrays: dict[str, Any] = {
        **new_arrays(shapes, what, "shorter inputs or chunks, or fewer labels")
    }
    return run._replace(**arrays)


def bundle_shapes(n: int, labels: int, dtype: Any) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return the shapes and types of the arrays for n bundles."""
    return {
        "bundle_names": ((n,), np.int64),
        "bundle_sums": ((n, labels), dtype),
        "bundle_maxima": ((n,), np.float64),
    }


def with_segments(problem: type[CompiledProblem], options: Options, run: Run, form: int) -> Run:
    """Return working space in which rounds are filled when they open, if steps are segments."""
    in_rounds = options.kind == kinds.ROUNDS and options.keyed
    if form != at.SEGMENTS or not is_shared(problem) or not in_rounds:
        return run
    rounds, width, features = (
        len(run.agenda),
        options.width,
        thresholds.FEATURES_AHEAD + len(run.rows),
    )
    run = run._replace(
        out=Out(np.zeros(features, np.int64), np.ones(features)),
        rows=np.zeros(features, np.int64),
        expanded=np.zeros((rounds, at.FIRST_EXPANDED + width), np.int64),
        waiting=np.zeros((thresholds.BLOCKS_AHEAD, len(at.WaitingColumn)), np.int64),
    )
    return with_bundles(run, len(run.block_owners) + rounds * width, (1, thresholds.NAMED_SEGMENTS))


def with_shared(
    problem: type[CompiledProblem], run: Run, table: WeightTable, items: int, kept: KeptCaps
) -> Run:
    """Return working space for decoding so many items, with room for what a problem shares."""
    if is_shared(problem):
        n = 1 << min(thresholds.CONTENTS_PER_ITEM * items, thresholds.MOST_CONTENTS).bit_length()
        size = max(n, int(run.meta[at.NAMED_MASK]) + 1)
        run = with_bundles(run, int(run.meta[at.FIRST_NAMED]), (1, size))
    if not has_caps(problem, run, table):
        return run
    known = kept.of
    if known is not None and known[0] is table.v:
        return run._replace(caps=known[1])
    return with_caps(run, table)


def has_caps(problem: type[CompiledProblem], run: Run, table: WeightTable) -> bool:
    """Return whether upper bounds on weights make a search faster.

    A table without a filter has too many rows for so few items.
    """
    used = is_factored(problem) or len(run.expanded) > 0
    return is_capped(problem) and used and len(table.bloom) > 0


def capped(problem: type[CompiledProblem], run: Run, table: WeightTable) -> Run:
    """Return working space for learning, with upper bounds that are true of a table, or with none.

    Updates keep them true, and make them worse, so that they are chosen anew at times.
    """
    if not has_caps(problem, run, table):
        return run._replace(caps=run.caps[:1])
    known = len(run.caps) == n_caps(table) and run.meta[CAPPED].tolist() == _state(table)
    if known and thresholds.CAPS_PER_RAISED * run.meta[at.RAISED] < len(run.caps):
        return run
    run.meta[at.RAISED] = 0
    return with_caps(run, table)


def note_capped(run: Run, table: WeightTable) -> None:
    """Note that the upper bounds are those of a table, as it is now."""
    run.meta[CAPPED] = _state(table)


def _state(table: WeightTable) -> list[int]:
    return [*table.ints[[at.GENERATION, at.TICKS]].tolist(), table.v.ctypes.data]


def n_caps(table: WeightTable) -> int:
    """Return the number of caps for a table, which several rows may share."""
    return max(2, min(len(table.slots) // 2, thresholds.MOST_CAPS))


def with_caps(run: Run, table: WeightTable) -> Run:
    """Return working space for upper bounds on weights, which the kernels choose."""
    run.meta[at.CAPS_WANTED] = 1
    return run._replace(caps=np.zeros(n_caps(table), np.uint8))
