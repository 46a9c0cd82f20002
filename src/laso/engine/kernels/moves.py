"""Where updates would move the dense vectors of an input, for encoders that learn.

The score of a step is linear in the vectors it uses: its derivative by one is the row of weights of
the step's label. The move of a vector is the sum of these rows over the steps of an update, each
with the step's coefficient, by the weights from before the update.
"""

# mypy: ignore-errors

from __future__ import annotations

from laso.engine.kernels.placeholders import vectors
from laso.engine.kernels.weight_table import fill, row_of, shorten_keys, weight_at, write_vector
from laso.engine.layout import BITS, SCALE, STACK_BLOCK, STACK_TOP


def forget_moves(x):
    """Begin the moves of an input's vectors anew."""
    for row in range(x.moves.shape[0]):
        fill(x.moves[row], 0.0)


def add_moves(x, table, run, label, mass):
    """Add mass times their weights for a label to the moves of the vectors of the last block."""
    top = run.meta[STACK_TOP] + 1
    if top < 0:  # the features were those of the step itself
        return
    number, i, keys = run.block_stack[top, STACK_BLOCK], 0, run.out.keys
    row, weights = vectors(x, number, i)
    while weights >= 0:
        if 0 <= row < x.vectors.shape[0]:
            n = write_vector(x.vectors[row], weights, run.out, 0)
            n = shorten_keys(keys, n, table.ints[BITS])
            for f in range(n):
                weight = weight_at(table, row_of(table, keys[f]), label)
                x.moves[row, f] += mass * table.reals[SCALE] * weight
        i += 1
        row, weights = vectors(x, number, i)
