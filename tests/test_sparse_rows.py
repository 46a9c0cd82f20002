"""Sparse weight rows against a table of numbers, by the kernels as plain Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from laso.engine import layout as at
from laso.engine.kernels.weight_table import (
    add_entry_to_row,
    add_sparse_rows,
    entry_of,
    find,
    most_entries,
    weight_at,
)
from laso.engine.machine import new_table
from laso.engine.weights.packed_rows import is_packed, packed
from laso.engine.weights.row_layouts import dense_rows

LABELS, ROWS = 20, 3
cells = st.tuples(st.integers(0, ROWS - 1), st.integers(0, LABELS - 1), st.integers(-9, 9))


@given(st.lists(cells, max_size=40), st.booleans())
def test_entries_are_found_and_summed_as_in_dense_rows(added, has_precisions):
    """Short rows double their room; those with many entries get one for each label."""
    table = new_table(LABELS, sparse=True)
    table.ints[at.ROWS] = ROWS
    if has_precisions:
        table = table._replace(precisions=np.zeros_like(table.u))
    dense = np.zeros((ROWS, LABELS), np.float32)
    filled: list[set[int]] = [set() for _ in range(ROWS)]
    for row, label, weight in added:
        add_entry_to_row(table, row, label)
        table.v[entry_of(table, row, label), 0] = dense[row, label] = weight
        filled[row].add(label)
    for row, labels in enumerate(filled):
        full = len(labels) > most_entries(LABELS)
        assert table.heads[row, at.HEAD_LENGTH] == (LABELS if full else len(labels))
    assert np.array_equal(dense_rows(table, np.arange(ROWS)), dense)
    assert all(weight_at(table, r, n) == dense[r, n] for r in range(ROWS) for n in range(LABELS))
    sums = np.zeros(LABELS, np.float32)
    add_sparse_rows(table, np.ones(ROWS), np.arange(ROWS), ROWS, sums)
    assert np.array_equal(sums, dense.sum(axis=0))
    # Packed rows are found at once, and have the same weights.
    slots = np.zeros((8, 2), np.int64)
    slots[:ROWS] = [(8, 1), (17, 2), (2, 3)]
    table = table._replace(slots=slots, v=table.v.astype(np.float32))
    made = packed(table)
    assert is_packed(made)
    assert packed(made) is made
    rows = [find(made.slots, key) for key in (8, 17, 2)]
    assert find(made.slots, 3) == -1
    for row, expected in zip(rows, dense, strict=True):
        assert [weight_at(made, row, label) for label in range(LABELS)] == expected.tolist()
    sums[:] = 0
    add_sparse_rows(made, np.ones(ROWS), np.array(rows), ROWS, sums)
    assert np.array_equal(sums, dense.sum(axis=0))
    assert packed(table._replace(v=table.v.astype(np.float64))).heads is table.heads
