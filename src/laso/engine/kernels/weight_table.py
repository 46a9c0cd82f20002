"""The weight table: feature keys, their rows, and the weights in them."""

# mypy: ignore-errors

from __future__ import annotations

from laso.engine.hashing import flat, mix, prefetch
from laso.engine.kernels.placeholders import has_values
from laso.engine.layout import (
    BITS,
    DROPOUT_SCALE,
    HEAD_LENGTH,
    HEAD_START,
    LABELS,
    ROWS,
    SLOT_KEY,
    SLOT_ROW,
    USED,
    Array,
    Out,
)

PACKED_BITS, PACKED_MASK = 16, (1 << 16) - 1  # of packed rows: the length is below the start
VECTORS_OF = 0x56454354  # so that keys of vectors are not those of other features
LINE = 16  # weights that come into the processor's cache at once


def fill(array, value):
    """Set all entries. (Assigning to a slice does the same but takes Numba long to compile.)"""
    for i in range(array.shape[0]):
        array[i] = value


def vector_key(weights: int, i: int) -> int:
    """Return the key of the i-th dimension of vectors; neighbours are neighbours in the table."""
    return (mix(mix(VECTORS_OF, weights), i // LINE) & -LINE) | (i % LINE)


def write_vector(vector: Array, weights: int, out: Out, n: int) -> int:
    """Append the keys and values of a vector's dimensions to n features; return their number."""
    keys, values, size = out.keys, out.values, vector.shape[0]
    for first in range(0, size, LINE):
        key = vector_key(weights, first)
        for i in range(first, min(first + LINE, size)):
            keys[n + i], values[n + i] = key | (i - first), vector[i]
    return n + size


def slot_of(slots, feature):
    """Return the slot of a feature key, or the free one where it belongs."""
    mask = slots.shape[0] - 1
    i = feature & mask
    # One branch, which is nearly always predicted right.
    while (slots[i, SLOT_KEY] != feature) & (slots[i, SLOT_ROW] != 0):
        i = (i + 1) & mask
    return i


def find(slots, feature):
    """Return the row of a feature key, -1 if it has none."""
    return slots[slot_of(slots, feature), SLOT_ROW] - 1


def row_of(table, feature):
    """Return the row of a feature key, a new one if it has none; the table must have room."""
    slots, bloom = table.slots, table.bloom
    i = slot_of(slots, feature)
    if slots[i, SLOT_ROW] == 0:
        slots[i, SLOT_KEY] = feature
        table.ints[ROWS] += 1
        slots[i, SLOT_ROW] = table.ints[ROWS]
        if bloom.shape[0] > 0:
            bit = feature & (8 * bloom.shape[0] - 1)
            bloom[bit >> 3] |= 1 << (bit & 7)
    return slots[i, SLOT_ROW] - 1


def keep_known(table, out, n):
    """Keep those of the n features in a buffer that may have a row; return their number."""
    bloom, keys, values, known = table.bloom, out.keys, out.values, 0
    if bloom.shape[0] == 0:
        return n
    mask = 8 * bloom.shape[0] - 1
    for f in range(n):
        bit = keys[f] & mask
        keys[known] = keys[f]
        if has_values():
            values[known] = values[f]
        known += (bloom[bit >> 3] >> (bit & 7)) & 1
    return known


def shorten_keys(keys, n, bits):
    """Cut n keys to some bits (the hashing trick; 0 leaves them whole), and return n."""
    if bits > 0:
        for f in range(n):
            keys[f] &= (1 << bits) - 1
    return n


def drop_features(out: Out, n: int, seed: int, share: int) -> int:
    """Leave out a share (of DROPOUT_SCALE) of n features; return the number of those that stay.

    Which ones are left out depends on the seed and on their places alone.
    """
    keys, values, kept = out.keys, out.values, 0
    for f in range(n):
        drawn = mix(mix(seed, f), seed)  # once is not random enough
        keys[kept], values[kept] = keys[f], values[f]
        kept += (drawn & (DROPOUT_SCALE - 1)) >= share
    return kept


def is_sparse(table):
    """Return whether the rows of the table are sparse."""
    return table.heads.shape[0] > 0


def is_packed(table):
    """Return whether sparse rows are packed (see laso.engine.weights.packed_rows)."""
    return table.heads.shape[1] == 0


def start_of(table, row):
    """Return the first entry of a sparse row."""
    return row >> PACKED_BITS if is_packed(table) else int(table.heads[row, HEAD_START])


def length_of(table, row):
    """Return the number of entries of a sparse row."""
    return row & PACKED_MASK if is_packed(table) else int(table.heads[row, HEAD_LENGTH])


def entry_of(table, row, label):
    """Return the entry of a label in a sparse row, -1 if there is none."""
    names, first, n = table.entry_labels, start_of(table, row), length_of(table, row)
    if n == table.ints[LABELS]:
        return first + label
    apart = n if is_packed(table) else 0
    for e in range(first, first + n):
        if names[e + apart] == label:
            return e
    return -1


def weight_at(table, row, label):
    """Return the weight of a label in a row."""
    if not is_sparse(table):
        return table.v[row, label]
    e = entry_of(table, row, label)
    return table.v[e, 0] if e >= 0 else 0.0


def most_entries(labels: int) -> int:
    """Return the largest number of entries of a sparse row; with more it has one for each label.

    From there on it takes less time to add all weights in their order than to look up each label.
    """
    return (labels + 5) // 6


def make_full(table, row):
    """Give all labels an entry in a sparse row, in their order; the table must have room."""
    v, u, past, names = table.v, table.u, table.precisions, table.entry_labels
    heads, labels = table.heads, table.ints[LABELS]
    first, n, new = heads[row, HEAD_START], heads[row, HEAD_LENGTH], table.ints[USED]
    table.ints[USED] += labels
    for label in range(labels):
        names[new + label] = label
        v[new + label, 0] = u[new + label, 0] = 0.0
        if past.shape[0] > 0:
            past[new + label, 0] = 0.0
    for i in range(first, first + n):
        at = new + names[i]
        v[at, 0] = v[i, 0]
        u[at, 0] = u[i, 0]
        if past.shape[0] > 0:
            past[at, 0] = past[i, 0]
    heads[row, HEAD_START], heads[row, HEAD_LENGTH] = new, labels


def add_entry_to_row(table, row, label):
    """Give a label an entry in a sparse row, if it has none; the table must have room."""
    if entry_of(table, row, label) >= 0:
        return
    v, u, past, heads = table.v, table.u, table.precisions, table.heads
    names = table.entry_labels
    first, n = heads[row, HEAD_START], heads[row, HEAD_LENGTH]
    if n == most_entries(table.ints[LABELS]):
        make_full(table, row)
        return
    if n == 0 or (n > 1 and n & (n - 1) == 0):  # there is room for a power of two
        new = table.ints[USED]
        table.ints[USED] += max(2, 2 * n)
        for i in range(n):
            names[new + i] = names[first + i]
            v[new + i, 0] = v[first + i, 0]
            u[new + i, 0] = u[first + i, 0]
            if past.shape[0] > 0:
                past[new + i, 0] = past[first + i, 0]
        heads[row, HEAD_START] = first = new
    names[first + n] = label
    v[first + n, 0] = u[first + n, 0] = 0.0
    if past.shape[0] > 0:
        past[first + n, 0] = 0.0
    heads[row, HEAD_LENGTH] = n + 1


def add_full_row(weights, value, sums):
    """Add the weights of a full row to the sums."""
    for label in range(sums.shape[0]):
        if has_values():
            sums[label] += weights[label] * value
        else:
            sums[label] += weights[label]


def add_sparse_rows(table, values, rows, known, sums):
    """Add the weights of some sparse rows to the sums.

    Labels without an entry have a weight of zero, so that the sums are those of dense rows.
    """
    names, labels = table.entry_labels, sums.shape[0]
    weights, packed = flat(table.v), is_packed(table)
    for i in range(known):
        first, n = start_of(table, rows[i]), length_of(table, rows[i])
        if n == labels:
            add_full_row(weights[first : first + n], values[i] if has_values() else 1.0, sums)
            continue
        apart = n if packed else 0
        for e in range(first, first + n):
            if has_values():
                sums[names[e + apart]] += weights[e] * values[i]
            else:
                sums[names[e + apart]] += weights[e]


# Rows are added in four steps, each of which finds the memory that the one before has prefetched.


def request_rows(table, out, n):
    """Prefetch the slots of those of the n features in a buffer that may have a row; their number.

    Other features are left out of the buffer.
    """
    slots, keys = table.slots, out.keys
    n = keep_known(table, out, shorten_keys(keys, n, table.ints[BITS]))
    for f in range(n):
        prefetch(slots, keys[f] & (slots.shape[0] - 1))
    return n


def find_rows(table, out, n, rows):
    """Write the rows of those of the n features in a buffer that have one; their number."""
    slots, keys, values = table.slots, out.keys, out.values
    known, sparse, packed, width = 0, is_sparse(table), is_packed(table), table.v.shape[1]
    weights, last = flat(table.v), table.v[:, width - 1]
    for f in range(n):
        rows[known] = find(slots, keys[f])
        if packed:
            prefetch(weights, max(rows[known], 0) >> PACKED_BITS)
        elif sparse:
            prefetch(table.heads, max(rows[known], 0))
        else:
            first = max(rows[known], 0) * width
            prefetch(weights, first)
            prefetch(last, max(rows[known], 0))  # most rows begin and end in two lines of the cache
            for label in range(LINE, width - LINE, LINE):
                prefetch(weights, first + label)
        if has_values():
            values[known] = values[f]
        known += rows[known] >= 0
    return known


def request_entries(table, rows, known):
    """Prefetch the entries of some rows, if these are sparse."""
    if is_sparse(table):
        v, names, packed = table.v, table.entry_labels, is_packed(table)
        for i in range(known):
            first, n = start_of(table, rows[i]), length_of(table, rows[i])
            full = n == table.ints[LABELS]
            if packed and not full:
                n = 2 * n
            for e in range(first + LINE if packed else first, first + n, LINE):
                prefetch(v, e)
            if not full and not packed:
                prefetch(names, first)


def add_known_rows(table, values, rows, known, sums):
    """Add the weights of some rows to the sums, for all labels at once."""
    v = table.v
    if is_sparse(table):
        add_sparse_rows(table, values, rows, known, sums)
        return
    if has_values():
        add_weighted_rows(v, values, rows, known, sums)
        return
    for i in range(known):
        row = rows[i]
        for label in range(sums.shape[0]):
            sums[label] += v[row, label]


def add_weighted_rows(v, values, rows, known, sums):
    """Add rows times their values to the sums, four at a time, so that sums are written less."""
    for i in range(0, known - 3, 4):
        a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        of_a, of_b, of_c, of_d = values[i], values[i + 1], values[i + 2], values[i + 3]
        for label in range(sums.shape[0]):
            two = v[a, label] * of_a + v[b, label] * of_b
            sums[label] += two + (v[c, label] * of_c + v[d, label] * of_d)
    for i in range(known - known % 4, known):
        row = rows[i]
        for label in range(sums.shape[0]):
            sums[label] += v[row, label] * values[i]


def add_rows(table, run, n, sums):
    """Add the weights of the n features in the buffer to the sums, for all labels at once."""
    known = find_rows(table, run.out, request_rows(table, run.out, n), run.rows)
    request_entries(table, run.rows, known)
    add_known_rows(table, run.out.values, run.rows, known, sums)
