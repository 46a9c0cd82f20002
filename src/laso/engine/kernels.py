"""Figures 1 and 2 over integer states, to be compiled together with a problem's functions.

Nothing here is called as it stands. ``native`` gives each function new globals in which the
problem's own functions take the place of the ones named under "the problem", and compiles the
result. With the JIT off the same code runs as plain Python.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.hashing import prefetch
from laso.engine.layout import (
    ALMA,
    BELOW,
    BEST,
    BEST_GOOD,
    BITS,
    CELL,
    DEPTH,
    DEQUEUED,
    DONE,
    EARLY,
    ENTRIES,
    EXPANSION,
    FAILED,
    FIRST,
    GENERATED,
    GENERATION,
    GOAL,
    GOOD,
    GOODS,
    GROUP,
    HELD,
    KEY,
    KNOWN_Y,
    KNOWS,
    LABEL,
    LAST_FEATURES,
    LOSS,
    LOSS_PROPORTIONAL,
    LOW,
    MARGIN,
    MASS,
    MAX_VIOLATION,
    MORE_ENTRIES,
    MORE_NODES,
    MORE_ROWS,
    MORE_SCRATCH,
    NEXT,
    NO_FEATURES,
    NODES,
    OFFERED,
    ONLY_GOOD,
    ORDER,
    PARENT,
    PASSIVE_AGGRESSIVE,
    PATH,
    PENDING,
    QUEUED,
    RANKED,
    ROUND_AT,
    ROUND_END,
    ROWS,
    SAME,
    SCALE,
    SCALES,
    SCORE,
    SIBS,
    SQUARE,
    TICKS,
    TOP,
    UNKNOWN_Y,
    UNREACHABLE,
    VERSION,
    WAITING,
    WORST,
    WRONG,
    G,
    Input,
)

TINY = 1e-12  # a hinge below it is rounding, as in laso.updates

# The problem: replaced by the functions of the problem compiled (see laso.engine.problem).
WEIGHTED = FULL = FACTORED = False
limits = initial = groups = labels = rests = cell = part = shared = features = allowed = None
apply = is_goal = is_good = loss = key = signature = None

# --------------------------------------------------------------------------- the weight table


def fill(array, value):
    """Set all entries. (Assigning to a slice does the same but takes Numba long to compile.)"""
    for i in range(array.shape[0]):
        array[i] = value


def slot_of(slots, key):
    """Where a key is, or would be if it had a row."""
    mask = slots.shape[0] - 1
    i = key & mask
    while (slots[i, 0] != key) & (slots[i, 1] != 0):  # one branch, which is nearly always right
        i = (i + 1) & mask
    return i


def find(slots, key):
    """The row of a key, -1 if it has none."""
    return slots[slot_of(slots, key), 1] - 1


def row_of(slots, rows, key):
    """The row of a key, made if it has none; the table must have room."""
    i = slot_of(slots, key)
    if slots[i, 1] == 0:
        slots[i, 0] = key
        rows[ROWS] += 1
        slots[i, 1] = rows[ROWS]
    return slots[i, 1] - 1


def shortened(keys, n, bits):
    """Cut n keys to some bits (the hashing trick); 0 leaves them whole."""
    if bits > 0:
        for f in range(n):
            keys[f] &= (1 << bits) - 1
    return n


def add_rows(table, run, n, sums):
    """Add the weights of the n features written, for all labels at once.

    In three loops, so that the memory that one needs is on its way during the one before.
    """
    slots, v, keys, values, rows = table.slots, table.v, run.out.keys, run.out.values, run.rows
    shortened(keys, n, table.ints[BITS])
    mask, known = slots.shape[0] - 1, 0
    for f in range(n):
        prefetch(slots, keys[f] & mask)
    for f in range(n):
        rows[known] = find(slots, keys[f])
        prefetch(v, max(rows[known], 0))
        if WEIGHTED:
            values[known] = values[f]
        known += rows[known] >= 0
    for i in range(known):
        row = rows[i]
        if WEIGHTED:
            for label in range(sums.shape[0]):
                sums[label] += v[row, label] * values[i]
        else:
            for label in range(sums.shape[0]):
                sums[label] += v[row, label]


def sum_cell(x, table, run, wanted):
    """run.cells[wanted] <- the weights of its own features and of all its parts."""
    stack, stamps, cells, out = run.stack, run.stamps, run.cells, run.out
    version, n_labels, top = run.meta[VERSION], run.sums.shape[0], 0
    stack[0, 0], stack[0, 1] = wanted, 0
    while top >= 0:
        at = stack[top, 0]
        below = part(x, at, stack[top, 1])
        if below >= 0:
            stack[top, 1] += 1
            if stamps[below] != version:
                top += 1
                stack[top, 0], stack[top, 1] = below, 0
            continue
        cached = cells[at]
        fill(cached, 0.0)
        i, below = 1, part(x, at, 0)
        while below >= 0:
            for label in range(n_labels):
                cached[label] += cells[below, label]
            below = part(x, at, i)
            i += 1
        add_rows(table, run, shared(x, at, out), cached)
        if FACTORED:
            run.tops[at] = highest(cached, labels(x, n_labels))
        stamps[at] = version
        top -= 1


def score_labels(x, state, group, table, run):
    """run.sums <- w . phi for every label of a group; a cell is summed once a version."""
    sums, cells, out = run.sums, run.cells, run.out
    at = cell(x, state, group)
    if at >= 0:
        if run.stamps[at] != run.meta[VERSION]:
            sum_cell(x, table, run, at)
        for label in range(sums.shape[0]):
            sums[label] = cells[at, label]
    else:
        fill(sums, 0.0)
    add_rows(table, run, features(x, state, group, out), sums)


def sums_at(x, state, group, table, run, spare):
    """The row of run.cells with a group's own sums: its cell if that is all, else a spare row.

    -1 if it has no features.
    """
    cells, out = run.cells, run.out
    at = cell(x, state, group)
    if at >= 0 and run.stamps[at] != run.meta[VERSION]:
        sum_cell(x, table, run, at)
    n = features(x, state, group, out)
    if n == 0:
        return at
    sums = cells[spare]
    if at >= 0:
        for label in range(sums.shape[0]):
            sums[label] = cells[at, label]
    else:
        fill(sums, 0.0)
    add_rows(table, run, n, sums)
    run.tops[spare] = highest(sums, labels(x, sums.shape[0]))
    return spare


def highest(sums, n):
    """The highest of the first n; four at a time, since each must wait for the one before."""
    a = b = c = d = sums[0]
    for i in range(0, n - 3, 4):
        a, b = max(a, sums[i]), max(b, sums[i + 1])
        c, d = max(c, sums[i + 2]), max(d, sums[i + 3])
    for i in range(n - n % 4, n):
        a = max(a, sums[i])
    return max(max(a, b), max(c, d))


def score_factors(x, state, group, table, run, least):
    """Like ``score_labels`` for a group that rests on others, if a label may be above ``least``.

    Else nothing is written, and the answer is False. The others are summed once an expansion.
    """
    cells, tops, sums, others, now = run.cells, run.tops, run.sums, run.others, run.meta[EXPANSION]
    n, own = labels(x, sums.shape[0]), others.shape[0] - 1
    top = size = 0.0
    others[own, 0] = -1
    i, other, at = 0, int(group), SAME
    while other >= 0:
        where = own if i == 0 else other
        if others[where, 0] != now:
            others[where, 0] = now
            others[where, 1] = sums_at(x, state, other, table, run, run.stamps.shape[0] + where)
        row = others[where, 1]
        if row >= 0:
            most = tops[row] if at == SAME else float(cells[row, at])
            top += most
            size += abs(most)
        other, at = rests(x, state, group, i)
        i += 1
    if top + 1e-6 * size < least:  # with room for rounding
        return False
    fill(sums, 0.0)
    i, other, at = 0, own, SAME
    while other >= 0:
        row = others[other, 1]
        if row >= 0 and at == SAME:
            for label in range(n):
                sums[label] += cells[row, label]
        elif row >= 0:
            for label in range(n):
                sums[label] += cells[row, at]
        other, at = rests(x, state, group, i)
        i += 1
    return True


def has_good(x, y, state, group, n):
    """Is one of n labels good?"""
    found = False
    for label in range(n):
        found |= is_good(x, y, state, group, label)
    return found


def begin_features(run, at):
    """Go to the features of a step: those of its cell ``at`` and of its parts, then its own."""
    run.stack[0, 0], run.stack[0, 1] = at, 0
    run.meta[TOP] = 0 if at >= 0 else LAST_FEATURES


def next_features(x, state, group, table, run):
    """Write the next features of the step; how many, or -1 if there are no more."""
    stack, top = run.stack, run.meta[TOP]
    if top == NO_FEATURES:
        return -1
    if top == LAST_FEATURES:
        n = features(x, state, group, run.out)
    else:
        below = part(x, stack[top, 0], stack[top, 1])
        while below >= 0:
            stack[top, 1] += 1
            top += 1
            stack[top, 0], stack[top, 1] = below, 0
            below = part(x, below, 0)
        n = shared(x, stack[top, 0], run.out)
    run.meta[TOP] = top - 1
    return shortened(run.out.keys, n, table.ints[BITS])


def factor_group(x, state, group, i):
    """The group of the i-th factor of a step: its own, then those it rests on; -1: no more."""
    return group if i == 0 else rests(x, state, group, i - 1)[0]


def factor_label(x, state, group, label, i):
    """The label of the i-th factor of a step."""
    at = SAME if i == 0 else rests(x, state, group, i - 1)[1]
    return label if at == SAME else at


def step_score(x, state, group, label, table, run):
    """w . phi of one step; memory is on its way as in ``add_rows``."""
    slots, v, keys, values, rows = table.slots, table.v, run.out.keys, run.out.values, run.rows
    mask, total = slots.shape[0] - 1, 0.0
    i, part_of = 0, factor_group(x, state, group, 0)
    while part_of >= 0:
        at, one = factor_label(x, state, group, label, i), 0.0
        begin_features(run, cell(x, state, part_of))
        n = next_features(x, state, part_of, table, run)
        while n >= 0:
            for f in range(n):
                prefetch(slots, keys[f] & mask)
            for f in range(n):
                rows[f] = find(slots, keys[f])
                prefetch(v[:, at], max(rows[f], 0))
            for f in range(n):
                if rows[f] >= 0:
                    if WEIGHTED:
                        one += v[rows[f], at] * values[f]
                    else:
                        one += v[rows[f], at]
            n = next_features(x, state, part_of, table, run)
        total += one
        i += 1
        part_of = factor_group(x, state, group, i)
    return table.reals[SCALE] * total


# --------------------------------------------------------------------------- nodes and agenda


def new_node(run):
    """The number of a node not used yet, -1 if there is no room."""
    node = run.meta[NODES]
    if node == run.ints.shape[0]:
        return -1
    run.meta[NODES] = node + 1
    return node


def step_to(ints, node, parent, group, label):
    """Make a node the result of a step, its scores and state still to be written."""
    ints[node, PARENT] = parent
    ints[node, GROUP] = group
    ints[node, LABEL] = label
    ints[node, DEPTH] = ints[parent, DEPTH] + 1 if parent >= 0 else 0
    ints[node, GOAL] = -1
    ints[node, ORDER] = -1


def make_state(x, run, node):
    """Write the state of a node, if it has none yet."""
    ints, states = run.ints, run.states
    if ints[node, GOAL] < 0:
        state = states[node]
        parent = ints[node, PARENT]
        if parent < 0:
            initial(x, state)
        else:
            apply(x, states[parent], ints[node, GROUP], ints[node, LABEL], state)
        ints[node, GOAL] = is_goal(x, state)


def make_queue(run):
    """An empty agenda."""
    for at in range(run.lists.shape[0]):
        run.lists[at, HELD] = run.lists[at, OFFERED] = 0
    run.meta[ROUND_AT] = run.meta[ROUND_END] = run.meta[WAITING] = 0
    run.meta[QUEUED] = run.meta[GOODS] = 0
    run.meta[LOW] = run.lists.shape[0] - 2


def size(run):
    """The number of nodes in the agenda."""
    return run.meta[ROUND_END] - run.meta[ROUND_AT] + run.meta[WAITING] + run.meta[QUEUED]


def place_for(lists, reals, width, at, score):
    """Where in list ``at`` a node of this score belongs, -1 if the list is full of better ones."""
    place = lists[at, HELD]
    if place == width:
        place -= 1
        if not score > reals[lists[at, FIRST + place], SCORE]:
            return -1
    while place > 0 and score > reals[lists[at, FIRST + place - 1], SCORE]:
        place -= 1
    return place


def bar_of(lists, reals, width, at):
    """What a node must score more than to get into list ``at``."""
    if lists[at, HELD] < width:
        return -math.inf
    return reals[lists[at, FIRST + width - 1], SCORE]


def insert(lists, meta, at, place, node):
    """Put a node into its place in a list, which must have room for it."""
    held = lists[at, HELD]
    for j in range(FIRST + held, FIRST + place, -1):
        lists[at, j] = lists[at, j - 1]
    lists[at, FIRST + place] = node
    lists[at, HELD] = held + 1
    meta[QUEUED] += 1
    meta[LOW] = min(meta[LOW], at)


def drop_last(lists, meta, at, width):
    """Remove the worst node of a full list and answer it, -1 if the list is not full."""
    held = lists[at, HELD]
    if held < width:
        return -1
    lists[at, HELD] = held - 1
    meta[QUEUED] -= 1
    return lists[at, FIRST + held - 1]


def count_good(lists, meta, at, ranked, change):
    """Count a good node that list ``at`` was offered.

    A round is cut when it opens, so until then a good node counts as queued even if it has lost
    its place; the single list of a ranking is cut at once.
    """
    meta[GOODS] += change
    if not ranked:
        lists[at, OFFERED] += change


def enqueue(run, options, node):
    """Enqueue a node that is made."""
    ints, reals, lists, meta = run.ints, run.reals, run.lists, run.meta
    ranked = options.kind == RANKED
    at = 0 if ranked else ints[node, KEY]
    place = place_for(lists, reals, options.width, at, reals[node, SCORE])
    if place >= 0:
        lost = drop_last(lists, meta, at, options.width)
        if ranked and lost >= 0 and ints[lost, GOOD]:
            count_good(lists, meta, at, ranked, -1)
        insert(lists, meta, at, place, node)
    if ints[node, GOOD] and (place >= 0 or not ranked):
        count_good(lists, meta, at, ranked, 1)


def open_round(x, run, options):
    """Cut the lowest list (with the goals that waited) to the width: the nodes to expand next.

    A goal that is not the best of the round waits for the next one.
    """
    ints, reals, lists, meta = run.ints, run.reals, run.lists, run.meta
    rounds = lists.shape[0] - 2
    opened, waiting = lists[rounds], lists[rounds + 1]
    at = meta[LOW]
    if meta[QUEUED] > 0:
        while lists[at, HELD] == 0:
            at += 1
    meta[LOW] = at
    held, n_waiting = lists[at, HELD], meta[WAITING]
    goods = meta[GOODS] - lists[at, OFFERED]
    for i in range(n_waiting):
        goods -= ints[waiting[FIRST + i], GOOD]
    n = i = j = 0
    while n < options.width and (i < n_waiting or j < held):
        if i < n_waiting and (
            j == held or not reals[lists[at, FIRST + j], SCORE] > reals[waiting[FIRST + i], SCORE]
        ):
            node = waiting[FIRST + i]
            i += 1
        else:
            node = lists[at, FIRST + j]
            make_state(x, run, node)
            j += 1
        goods += ints[node, GOOD]
        opened[FIRST + n] = node
        n += 1
    lists[at, HELD] = lists[at, OFFERED] = 0
    meta[QUEUED] -= held
    meta[GOODS] = goods
    meta[WAITING] = meta[ROUND_AT] = 0
    meta[ROUND_END] = n
    if ints[opened[FIRST], GOAL] == 0:
        kept = 0
        for i in range(n):
            node = opened[FIRST + i]
            if ints[node, GOAL]:
                waiting[FIRST + meta[WAITING]] = node
                meta[WAITING] += 1
            else:
                opened[FIRST + kept] = node
                kept += 1
        meta[ROUND_END] = kept


def remove_front(x, run, options):
    """RemoveFront of the figures."""
    ints, lists, meta = run.ints, run.lists, run.meta
    if options.kind == RANKED:
        node = lists[0, FIRST]
        held = lists[0, HELD] - 1
        lists[0, HELD] = held
        for j in range(FIRST, FIRST + held):
            lists[0, j] = lists[0, j + 1]
        meta[QUEUED] -= 1
        make_state(x, run, node)
    else:
        if meta[ROUND_AT] == meta[ROUND_END]:
            open_round(x, run, options)
        node = lists[lists.shape[0] - 2, FIRST + meta[ROUND_AT]]
        meta[ROUND_AT] += 1
    meta[GOODS] -= ints[node, GOOD]
    ints[node, ORDER] = meta[DEQUEUED]
    meta[DEQUEUED] += 1
    return node


def expand(x, y, table, run, options, node):
    """Operators and enqueue of the figures; False if there is no room for the nodes."""
    ints, reals, lists, meta, sums = run.ints, run.reals, run.lists, run.meta, run.sums
    chosen, state = run.groups, run.states[node]
    scale, margin = table.reals[SCALE], table.reals[MARGIN]
    width, ranked = options.width, options.kind == RANKED
    g = reals[node, G]
    was_good, knows = ints[node, GOOD] > 0, meta[KNOWS]
    at = 0 if ranked else ints[node, DEPTH] + 1
    bar_at, bar = at, bar_of(lists, reals, width, at)
    n_labels = labels(x, sums.shape[0])
    meta[EXPANSION] += FACTORED
    for i in range(groups(x, state, chosen)):
        group = chosen[i]
        if FACTORED:
            least = -math.inf
            if not options.keyed or ranked:  # else labels may have lists of their own
                least = (bar - g - 1e-9 * (abs(bar) + abs(g))) / scale
            if was_good and has_good(x, y, state, group, n_labels):
                least = -math.inf
            if not score_factors(x, state, group, table, run, least):
                continue
        else:
            score_labels(x, state, group, table, run)
        for label in range(n_labels):
            new_g = g + scale * sums[label]
            good = was_good and is_good(x, y, state, group, label)
            score = new_g - margin if good else new_g
            if options.keyed and not ranked:
                at = key(x, state, group, label)
            if at != bar_at:
                bar_at, bar = at, bar_of(lists, reals, width, at)
            if not score > bar and not good:
                continue
            place = place_for(lists, reals, width, at, score)
            if (knows == ONLY_GOOD and not good) or not allowed(x, state, group, label):
                continue
            if good and (place >= 0 or not ranked):
                count_good(lists, meta, at, ranked, 1)
            if place < 0:
                continue
            child = drop_last(lists, meta, at, width)
            if ranked and child >= 0 and ints[child, GOOD]:
                count_good(lists, meta, at, ranked, -1)
            if child < 0 or ints[child, GOAL] >= 0:  # else nobody knows the node that was dropped
                child = new_node(run)
                if child < 0:
                    return False
            step_to(ints, child, node, group, label)
            ints[child, GOOD] = good
            ints[child, KEY] = ints[child, DEPTH] if ranked else at
            reals[child, G] = new_g
            reals[child, SCORE] = score
            reals[child, LOSS] = reals[node, LOSS]
            if knows != UNKNOWN_Y:
                reals[child, LOSS] += loss(x, y, state, group, label, was_good, good)
            insert(lists, meta, at, place, child)
            bar = bar_of(lists, reals, width, at)
    return True


def start(x, table, run, options):
    """MakeQueue(MakeNode(problem, initial)) of the figures."""
    run.meta[VERSION] += 1
    make_queue(run)
    node = new_node(run)
    step_to(run.ints, node, -1, -1, -1)
    make_state(x, run, node)
    run.ints[node, KEY] = 0
    run.ints[node, GOOD] = run.meta[KNOWS] != UNKNOWN_Y
    run.reals[node, G] = run.reals[node, LOSS] = 0.0
    run.reals[node, SCORE] = -table.reals[MARGIN] if run.meta[KNOWS] != UNKNOWN_Y else 0.0
    enqueue(run, options, node)


# --------------------------------------------------------------------------- the figures


def search_one(x, y, table, run, options):
    """Figure 1: the goal found, with the best node dequeued in each round; else minus how it ended.

    Answers (-MORE_NODES) if the nodes must grow; the search can then be started again.
    """
    best = BEST_GOOD if run.meta[KNOWS] == ONLY_GOOD else BEST
    for at in range(run.lists.shape[0]):
        run.lists[at, best] = -1
    start(x, table, run, options)
    while size(run) > 0:
        node = remove_front(x, run, options)
        at = run.ints[node, KEY]
        if at < run.lists.shape[0]:
            known = run.lists[at, best]
            if known < 0 or run.reals[node, SCORE] > run.reals[known, SCORE]:
                run.lists[at, best] = node
        if run.ints[node, GOAL]:
            return node
        if not expand(x, y, table, run, options, node):
            return -MORE_NODES
    return -FAILED


def learn_one(x, y, table, run, options):
    """Figure 2: search, and update whenever no node is good or a wrong goal is dequeued.

    Where arrays must grow it stops before it changes anything, with the node in PENDING, and
    goes on from there when called again.
    """
    if run.meta[PENDING] < 0:
        run.meta[KNOWS] = KNOWN_Y
        start(x, table, run, options)
    while size(run) > 0 or run.meta[PENDING] >= 0:
        if run.meta[PENDING] < 0:
            run.meta[PENDING] = remove_front(x, run, options)
        node = run.meta[PENDING]
        good = run.ints[node, GOOD] > 0
        goal = run.ints[node, GOAL] > 0
        if not (good or run.meta[GOODS] > 0) or (goal and not good):
            before = run.meta[NODES]
            status, n_sibs = siblings(x, y, table, run, options, node)
            if status == DONE:
                n_wrong = contenders(run, options, node)
                status = update(x, table, run, options, n_sibs, n_wrong)
            if status != DONE:
                run.meta[NODES] = before
                return status
            make_queue(run)
            run.meta[PENDING] = -1
            if options.strategy == EARLY:
                return DONE
            for i in range(n_sibs):
                node = run.scratch[SIBS, i]
                run.reals[node, SCORE] = run.reals[node, G] - table.reals[MARGIN]
                if n_sibs > 1:  # else all that follows has this one path before it
                    rescore(x, table, run, node)
                enqueue(run, options, node)
        else:
            if goal:
                run.meta[PENDING] = -1
                return DONE
            if run.meta[NODES] + successors(x, run, node) > run.ints.shape[0]:
                return MORE_NODES
            expand(x, y, table, run, options, node)
            run.meta[PENDING] = -1
    return UNREACHABLE


def successors(x, run, node):
    """At most so many nodes does expanding a node make."""
    return groups(x, run.states[node], run.groups) * labels(x, run.sums.shape[0])


def learn_full(x, y, table, run, options):
    """Standard and max-violation updates: decode in full, then compare with the good path."""
    run.meta[NODES] = 0
    run.meta[KNOWS] = KNOWN_Y
    bad = search_one(x, y, table, run, options)
    if bad < 0:
        return -bad
    if run.ints[bad, GOOD]:
        return DONE
    run.meta[KNOWS] = ONLY_GOOD
    good = search_one(x, y, table, run, options)
    if good < 0:
        return UNREACHABLE if good == -FAILED else -good
    if options.strategy == MAX_VIOLATION:
        most = -math.inf
        final_bad, final_good = bad, good
        for at in range(run.lists.shape[0]):
            b, w = run.lists[at, BEST], run.lists[at, BEST_GOOD]
            if b >= 0 and w >= 0 and not run.ints[b, GOOD]:
                violation = run.reals[b, SCORE] - run.reals[w, SCORE]
                if violation > most:
                    most, bad, good = violation, b, w
        if run.reals[final_bad, SCORE] - run.reals[final_good, SCORE] > most:
            bad, good = final_bad, final_good
    run.scratch[SIBS, 0] = good
    run.scratch[WRONG, 0] = bad
    return update(x, table, run, options, 1, 1)


def siblings(x, y, table, run, options, node):
    """*siblings*: back to the first good ancestor, forward through good nodes to the same round.

    Writes them to scratch[SIBS]; status and how many.
    """
    states, ints, reals, chosen = run.states, run.ints, run.reals, run.groups
    sibs, front = run.scratch[SIBS], run.scratch[NEXT]
    ancestor = node
    while ints[ancestor, GOOD] == 0:
        ancestor = ints[ancestor, PARENT]
    front[0] = ancestor
    n_front, at, n_sibs = 1, 0, 0
    while at < n_front:
        parent = front[at]
        at += 1
        # The ancestor itself is no sibling, whatever the keys say.
        if at > 1 and (ints[parent, GOAL] or ints[parent, KEY] >= ints[node, KEY]):
            sibs[n_sibs] = parent
            n_sibs += 1
            continue
        before = n_front
        state = states[parent]
        for gi in range(groups(x, state, chosen)):
            group = chosen[gi]
            for label in range(labels(x, run.sums.shape[0])):
                if not (is_good(x, y, state, group, label) and allowed(x, state, group, label)):
                    continue
                child = new_node(run)
                if child < 0:
                    return MORE_NODES, 0
                if n_front == front.shape[0]:
                    return MORE_SCRATCH, 0
                step_to(ints, child, parent, group, label)
                make_state(x, run, child)
                ints[child, GOOD] = 1
                ints[child, KEY] = ints[child, DEPTH]
                if options.keyed:
                    ints[child, KEY] = key(x, state, group, label)
                reals[child, LOSS] = reals[parent, LOSS]
                reals[child, LOSS] += loss(x, y, state, group, label, True, True)
                score_step(x, table, run, child)
                front[n_front] = child
                n_front += 1
        if n_front == before:
            return UNREACHABLE, 0
    return DONE, n_sibs


def contenders(run, options, node):
    """Write the node dequeued and the ones that compete with it to scratch[WRONG]; how many."""
    lists, meta, nodes = run.lists, run.meta, run.scratch[WRONG]
    rounds = lists.shape[0] - 2
    if options.kind == RANKED:
        at, begin, end, waiting = 0, 0, lists[0, HELD], 0
    else:
        at, begin, end, waiting = rounds, meta[ROUND_AT], meta[ROUND_END], meta[WAITING]
    nodes[0] = node
    for i in range(end - begin):
        nodes[1 + i] = lists[at, FIRST + begin + i]
    for i in range(waiting):
        nodes[1 + end - begin + i] = lists[rounds + 1, FIRST + i]
    return 1 + end - begin + waiting


def score_step(x, table, run, node):
    """g and score of a node from those of its parent."""
    parent = run.ints[node, PARENT]
    if parent < 0:
        run.reals[node, G] = 0.0
    else:
        run.reals[node, G] = run.reals[parent, G] + step_score(
            x, run.states[parent], run.ints[node, GROUP], run.ints[node, LABEL], table, run
        )
    margin = table.reals[MARGIN] if run.ints[node, GOOD] else 0.0
    run.reals[node, SCORE] = run.reals[node, G] - margin


def rescore(x, table, run, node):
    """Value a path again after the weights have changed."""
    path, ints = run.scratch[PATH], run.ints
    depth = ints[node, DEPTH]
    for i in range(depth, -1, -1):
        path[i] = node
        node = ints[node, PARENT]
    for i in range(depth + 1):
        score_step(x, table, run, path[i])


# --------------------------------------------------------------------------- the updates


def best_of(run, nodes, n, bad_only):
    """Where the highest of n nodes stands (the first of equals), -1 if there is none."""
    ints, reals = run.ints, run.reals
    best = -1
    for i in range(n):
        if (not bad_only or not ints[nodes[i], GOOD]) and (
            best < 0 or reals[nodes[i], SCORE] > reals[nodes[best], SCORE]
        ):
            best = i
    return best


def coefficients(run, options, n_sibs, n_wrong):
    """Write how much each node counts: Eq. 2, or Crammer & Singer's other weightings."""
    sibs, wrong = run.scratch[SIBS], run.scratch[WRONG]
    good, bad = run.weights[SIBS], run.weights[WRONG]
    for i in range(n_sibs):
        good[i] = 1.0 / n_sibs
    for i in range(n_wrong):
        bad[i] = -1.0 / n_wrong
    if options.weighting == WORST:
        fill(good[:n_sibs], 0.0)
        fill(bad[:n_wrong], 0.0)
        good[best_of(run, sibs, n_sibs, False)] = 1.0
        worst = best_of(run, wrong, n_wrong, True)
        bad[worst if worst >= 0 else best_of(run, wrong, n_wrong, False)] = -1.0
    elif options.weighting == LOSS_PROPORTIONAL:
        total = 0.0
        for i in range(n_wrong):
            total += run.reals[wrong[i], LOSS]
        if total > 0.0:
            for i in range(n_wrong):
                bad[i] = -run.reals[wrong[i], LOSS] / total


def add_entry(mark, run, row, label, value):
    """Delta[row, label] += value; there must be room for one more entry."""
    delta, values = run.delta, run.values
    e = mark[row]
    while e >= 0:
        if delta[e, 1] == label:
            values[e] += value
            return
        e = delta[e, 2]
    e = run.meta[ENTRIES]
    run.meta[ENTRIES] = e + 1
    delta[e, 0] = row
    delta[e, 1] = label
    delta[e, 2] = mark[row]
    values[e] = value
    mark[row] = e


def spread(run, side, n, add):
    """Add each node's weight to all steps of its path (or clear them); how many nodes have one."""
    ints, reals, nodes, weights = run.ints, run.reals, run.scratch[side], run.weights[side]
    terms = 0
    for i in range(n):
        if weights[i] != 0.0:
            terms += 1
            node = nodes[i]
            while node >= 0:
                ints[node, BELOW] = ints[node, BELOW] + 1 if add else 0
                reals[node, MASS] = reals[node, MASS] + weights[i] if add else 0.0
                node = ints[node, PARENT]
    return terms


def unshared(run, side, n, terms, n_steps):
    """Append to scratch[PATH] the steps that not all terms share, each once; how many, or -1."""
    ints, nodes, weights, steps = run.ints, run.scratch[side], run.weights[side], run.scratch[PATH]
    for i in range(n):
        node = nodes[i]
        first = n_steps
        # A search of its own has a first node of its own, which no step leads to.
        while weights[i] != 0.0 and ints[node, PARENT] >= 0 and ints[node, BELOW] < terms:
            if n_steps == steps.shape[0]:
                return -1
            steps[n_steps] = node
            n_steps += 1
            ints[node, BELOW] = terms  # not twice
            node = ints[node, PARENT]
        last = n_steps - 1
        while first < last:  # from the root on, as the reference engine adds them up
            steps[first], steps[last] = steps[last], steps[first]
            first += 1
            last -= 1
    return n_steps


def find_cells(x, run, n_steps, two):
    """Write to scratch[CELL] the cells of all factors of the steps; False if there is no room.

    Where ``two`` paths are compared, factors of one cell and label cancel, if they are on either
    path: most of those after the paths have parted. They are left out.
    """
    ints, steps, cells, owners = run.ints, run.scratch[PATH], run.scratch[CELL], run.owners
    k = 0
    for i in range(n_steps):
        node = steps[i]
        state, group, label = run.states[ints[node, PARENT]], ints[node, GROUP], ints[node, LABEL]
        j, part_of = 0, factor_group(x, state, group, 0)
        while part_of >= 0:
            if k == cells.shape[0]:
                return False
            at, code = cell(x, state, part_of), -1
            if at >= 0:
                code = at * run.sums.shape[0] + factor_label(x, state, group, label, j)
                code = 2 * code + (run.reals[node, MASS] > 0.0)
                before = owners[at]
                owners[at] = k
                if two and 0 <= before < k and cells[before] == code ^ 1:
                    cells[before] = code = -1
            cells[k] = code
            j, k = j + 1, k + 1
            part_of = factor_group(x, state, group, j)
    return True


def cell_of(run, k):
    """The k-th of the cells that ``find_cells`` found, -1: none, or it is left out."""
    code = run.scratch[CELL, k]
    return code // (2 * run.sums.shape[0]) if code >= 0 else -1


def combine(x, table, run, options, n_sibs, n_wrong):
    """Delta = the weighted sum of Phi over the nodes; steps shared by all of them cancel."""
    coefficients(run, options, n_sibs, n_wrong)
    spread(run, SIBS, n_sibs, False)
    spread(run, WRONG, n_wrong, False)
    terms = spread(run, SIBS, n_sibs, True) + spread(run, WRONG, n_wrong, True)
    n_steps = unshared(run, SIBS, n_sibs, terms, 0)
    if n_steps >= 0:
        n_steps = unshared(run, WRONG, n_wrong, terms, n_steps)
    if n_steps < 0:
        return MORE_SCRATCH
    if not find_cells(x, run, n_steps, terms == 2):
        return MORE_SCRATCH
    slots, rows, mark, keys = table.slots, table.ints, table.mark, run.out.keys
    run.meta[ENTRIES] = k = 0
    for i in range(n_steps):
        node = run.scratch[PATH, i]
        label, mass = run.ints[node, LABEL], run.reals[node, MASS]
        state, group = run.states[run.ints[node, PARENT]], run.ints[node, GROUP]
        j, part_of = 0, factor_group(x, state, group, 0)
        while part_of >= 0:
            at = factor_label(x, state, group, label, j)
            begin_features(run, cell_of(run, k))
            n = next_features(x, state, part_of, table, run)
            while n >= 0:
                status = DONE
                if run.meta[ENTRIES] + n > run.values.shape[0]:
                    status = MORE_ENTRIES
                elif rows[ROWS] + n > table.v.shape[0] or 2 * (rows[ROWS] + n) > slots.shape[0]:
                    status = MORE_ROWS
                if status != DONE:
                    for e in range(run.meta[ENTRIES]):
                        mark[run.delta[e, 0]] = -1
                    return status
                for f in range(n):
                    prefetch(slots, keys[f] & (slots.shape[0] - 1))
                for f in range(n):
                    run.rows[f] = row_of(slots, rows, keys[f])
                    prefetch(mark, run.rows[f])
                    prefetch(table.v[:, at], run.rows[f])
                    prefetch(table.u[:, at], run.rows[f])
                for f in range(n):
                    value = run.out.values[f] if WEIGHTED else 1.0
                    add_entry(mark, run, run.rows[f], at, mass * value)
                n = next_features(x, state, part_of, table, run)
            j, k = j + 1, k + 1
            part_of = factor_group(x, state, group, j)
    return DONE


def add_delta(table, run, step, dot, square):
    """w <- w + step * Delta, and the running sum for the average."""
    v, u, delta, values = table.v, table.u, run.delta, run.values
    scale, scales = table.reals[SCALE], table.reals[SCALES]
    table.reals[SQUARE] += step * (2.0 * dot + step * square)
    for e in range(run.meta[ENTRIES]):
        dv = step * values[e] / scale
        v[delta[e, 0], delta[e, 1]] += dv
        u[delta[e, 0], delta[e, 1]] += scales * dv


def rescale(table):
    """Begin again with scale 1 and the sum so far, before the scale loses its digits."""
    v, u, reals = table.v, table.u, table.reals
    for row in range(table.ints[ROWS]):
        for label in range(v.shape[1]):
            u[row, label] = -(reals[SCALES] * v[row, label] - u[row, label])
            v[row, label] *= reals[SCALE]
    reals[SCALE] = 1.0
    reals[SCALES] = 0.0


def severity(run, options, n_sibs, n_wrong):
    """How long the step is, if by loss: the mean loss of the bad nodes, as in laso.updates."""
    wrong, weights = run.scratch[WRONG], run.weights[WRONG]
    total = mass = 0.0
    for i in range(n_wrong):
        if not run.ints[wrong[i], GOOD]:
            total += run.reals[wrong[i], LOSS] * weights[i]
            mass += weights[i]
    return total / mass if options.by_loss and mass < 0.0 else 1.0


def update(x, table, run, options, n_sibs, n_wrong):
    """*update* of Figure 2 on scratch[SIBS] and scratch[WRONG]: perceptron, ALMA, PA."""
    status = combine(x, table, run, options, n_sibs, n_wrong)
    if status != DONE:
        return status
    rate = severity(run, options, n_sibs, n_wrong)
    v, mark, delta, values, reals = table.v, table.mark, run.delta, run.values, table.reals
    k = table.ints[GENERATION]
    dot = square = 0.0
    for e in range(run.meta[ENTRIES]):
        dot += reals[SCALE] * v[delta[e, 0], delta[e, 1]] * values[e]
        square += values[e] * values[e]
        mark[delta[e, 0]] = -1
    if options.update == ALMA:
        norm = math.sqrt(square)
        if not options.normalize_always:
            norm = max(1.0, norm)
        if norm > 0.0:
            add_delta(table, run, options.c * rate / math.sqrt(k) / norm, dot, square)
            if reals[SQUARE] > 1.0:
                reals[SCALE] *= 1.0 / math.sqrt(reals[SQUARE])
                reals[SQUARE] = 1.0
                if reals[SCALE] < 1e-3:
                    rescale(table)
        reals[MARGIN] = (1.0 - options.alpha) * options.b * math.sqrt(1.0 / (k + 1))
    elif options.update == PASSIVE_AGGRESSIVE:
        hinge = options.margin - dot
        if not (square > 0.0 and hinge > TINY):
            return DONE
        add_delta(table, run, min(options.c * rate, hinge / square), dot, square)
    else:
        add_delta(table, run, rate, dot, square)
    table.ints[GENERATION] = k + 1
    run.meta[VERSION] += 1
    return DONE


# --------------------------------------------------------------------------- many inputs


def input_of(corpus, i):
    """Input i of a corpus."""
    return Input(
        corpus.items[corpus.starts[i] : corpus.starts[i + 1]],
        corpus.pool,
        corpus.values,
        corpus.spec,
    )


def largest(corpus, order, most, one):
    """Write the largest limits of the inputs named."""
    for n in range(order.shape[0]):
        limits(input_of(corpus, order[n]), one)
        for j in range(most.shape[0]):
            most[j] = max(most[j], one[j])


def learn_many(corpus, order, table, run, options):
    """Examples in turn until the end or until something is needed: done, wrong, status."""
    wrong = 0
    for n in range(order.shape[0]):
        i = order[n]
        x = input_of(corpus, i)
        y = corpus.outputs[corpus.output_starts[i] : corpus.output_starts[i + 1]]
        if run.meta[PENDING] < 0:
            run.meta[NODES] = run.meta[DEQUEUED] = 0
            run.meta[GENERATED] = table.ints[GENERATION]
        if FULL:
            status = learn_full(x, y, table, run, options)
        else:
            status = learn_one(x, y, table, run, options)
        if status != DONE:
            return n, wrong, status
        table.reals[SCALES] += table.reals[SCALE]
        table.ints[TICKS] += 1
        wrong += table.ints[GENERATION] != run.meta[GENERATED]
    return order.shape[0], wrong, DONE


def decode_many(corpus, order, table, run, options, steps, results):
    """Figure 1 on the inputs named, until the end or until something is needed: done, status.

    Writes their operators (group, label) end to end, where each input's end, and their scores.
    """
    ends, scores = results
    y = corpus.outputs[:0]
    for n in range(order.shape[0]):
        x = input_of(corpus, order[n])
        run.meta[NODES] = run.meta[DEQUEUED] = 0
        run.meta[KNOWS] = UNKNOWN_Y
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
            steps[j, 0] = run.ints[goal, GROUP]
            steps[j, 1] = run.ints[goal, LABEL]
            goal = run.ints[goal, PARENT]
    return order.shape[0], DONE
