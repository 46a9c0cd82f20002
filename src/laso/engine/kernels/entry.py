"""The entry points: many inputs in one call, until something must grow."""

# mypy: ignore-errors

from __future__ import annotations

from laso.engine.hashing import mix
from laso.engine.kernels.bundles import forget_sums
from laso.engine.kernels.figures import forget_example, learn_full, learn_one, search_one
from laso.engine.kernels.placeholders import FULL, has_bounds
from laso.engine.kernels.promises import begin_input, write_limits
from laso.engine.kernels.upper_bounds import choose_caps
from laso.engine.layout import (
    CAPS_WANTED,
    DEPTH,
    DEQUEUED,
    DONE,
    DROPOUT_SEED,
    FAULT,
    GENERATED,
    GENERATION,
    GROUP,
    LABEL,
    MORE_ENTRIES,
    NO_GOLD,
    NODES,
    ORACLE,
    PARENT,
    PENDING,
    SCALE,
    SCALES,
    STEP_GROUP,
    STEP_LABEL,
    TICKS,
    VISIT,
    G,
    Input,
)
from laso.engine.option_kinds import DELAYED


def input_of(dataset, i):
    """Return input i of a dataset."""
    return Input(
        dataset.items[dataset.starts[i] : dataset.starts[i + 1]],
        dataset.pool,
        dataset.values,
        dataset.spec,
        dataset.costs,
        dataset.vectors[dataset.starts[i] : dataset.starts[i + 1]],
        dataset.moves[dataset.starts[i] : dataset.starts[i + 1]],
    )


def largest(dataset, order, most, one):
    """Write the largest limits of the given inputs."""
    for n in range(order.shape[0]):
        write_limits(input_of(dataset, order[n]), 0, one)
        for j in range(most.shape[0]):
            most[j] = max(most[j], one[j])


def begin_call(table, run):
    """Forget sums, since rows and weights may have changed since the last call; choose bounds."""
    forget_sums(run)
    if has_bounds() and run.meta[CAPS_WANTED]:
        choose_caps(table, run)


def learn_many(dataset, order, table, run, options):
    """Learn from examples in turn; return how many are done, the number of errors, the status."""
    wrong = 0
    run.meta[FAULT] = DONE
    begin_call(table, run)
    for n in range(order.shape[0]):
        i = order[n]
        x = input_of(dataset, i)
        y = dataset.outputs[dataset.output_starts[i] : dataset.output_starts[i + 1]]
        begin_input(x, run)
        if run.meta[PENDING] < 0:
            run.meta[NODES] = run.meta[DEQUEUED] = 0
            run.meta[GENERATED] = table.ints[GENERATION]
            run.meta[VISIT] = mix(run.meta[DROPOUT_SEED], table.ints[TICKS])
        if FULL():
            status = learn_full(x, y, table, run, options)
        else:
            status = learn_one(x, y, table, run, options)
        if status != DONE:
            if options.strategy == DELAYED:
                forget_example(table, run)
            return n, wrong, status
        table.reals[SCALES] += table.reals[SCALE]
        table.ints[TICKS] += 1
        wrong += table.ints[GENERATION] != run.meta[GENERATED]
    return order.shape[0], wrong, DONE


def decode_many(dataset, order, table, run, options, steps, results):
    """Figure 1 on the given inputs; return how many are done, and the status.

    Writes their operators end to end, where each input ends, and their scores.
    """
    ends, scores = results
    y = dataset.outputs[:0]
    run.meta[FAULT] = DONE
    begin_call(table, run)
    for n in range(order.shape[0]):
        x = input_of(dataset, order[n])
        begin_input(x, run)
        run.meta[NODES] = run.meta[DEQUEUED] = 0
        run.meta[ORACLE] = NO_GOLD
        goal = search_one(x, y, table, run, options)
        if goal < 0:
            return n, -goal
        depth = run.ints[goal, DEPTH]
        begin = ends[n - 1] if n > 0 else 0
        if begin + depth > steps.shape[0]:
            return n, MORE_ENTRIES
        ends[n] = begin + depth
        scores[n] = run.reals[goal, G]
        for j in range(begin + depth - 1, begin - 1, -1):
            steps[j, STEP_GROUP] = run.ints[goal, GROUP]
            steps[j, STEP_LABEL] = run.ints[goal, LABEL]
            goal = run.ints[goal, PARENT]
    return order.shape[0], DONE
