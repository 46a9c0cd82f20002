"""Figures 1 and 2 of the paper over integer states."""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.kernels.agenda import (
    enqueue,
    make_queue,
    make_state,
    n_rounds,
    new_node,
    remove_front,
    size,
    start,
    step_to,
    write_groups,
)
from laso.engine.kernels.moves import forget_moves
from laso.engine.kernels.placeholders import allowed, is_good, key, loss
from laso.engine.kernels.promises import chosen_label, n_chosen, note_fault, write_choices
from laso.engine.kernels.segments import expand_node, max_successors
from laso.engine.kernels.steps import step_score
from laso.engine.kernels.weight_updates import begin_delta, clear_marks, take_step, update
from laso.engine.layout import (
    BAD_KEY,
    BEST,
    BEST_GOOD,
    CONTENDERS,
    DEPTH,
    DONE,
    ERRORS,
    FAILED,
    FAULT,
    FIRST,
    FRONTIER,
    GOAL,
    GOOD,
    GOODS,
    GROUP,
    HELD,
    IN_KEY,
    IN_LIMITS,
    KEY,
    LABEL,
    LOSS,
    MARGIN,
    MORE_NODES,
    MORE_SCRATCH,
    NODES,
    ONLY_GOOD,
    OPEN_ROUND,
    ORACLE,
    PARENT,
    PATH,
    PENDING,
    ROUND_AT,
    ROUND_END,
    SCORE,
    SIBLINGS,
    STOP,
    STOPPED,
    UNREACHABLE,
    WAITING,
    WAITING_GOALS,
    WITH_GOLD,
    G,
)
from laso.engine.option_kinds import DELAYED, EARLY, MAX_VIOLATION, RANKED


def search_one(x, y, table, run, options):
    """Figure 1: return the goal that is dequeued, or minus the status.

    The best node dequeued in each round is noted for ``max_violation``. After -MORE_NODES the
    search can be started again.
    """
    best = BEST_GOOD if run.meta[ORACLE] == ONLY_GOOD else BEST
    for at in range(run.agenda.shape[0]):
        run.agenda[at, best] = -1
    start(x, table, run, options)
    while size(run) > 0:
        if run.meta[STOP]:
            return -STOPPED
        node = remove_front(x, run, options)
        at = run.ints[node, KEY]
        known = run.agenda[at, best]
        if known < 0 or run.reals[node, SCORE] > run.reals[known, SCORE]:
            run.agenda[at, best] = node
        if run.ints[node, GOAL]:
            return node
        status = expand_node(x, y, table, run, options, node)
        if status != DONE:
            return -status
    return -FAILED


def learn_one(x, y, table, run, options):
    """Figure 2: search, and update whenever no node is good or a bad goal is dequeued.

    Where arrays must grow it stops before it changes anything, with the node in PENDING, and
    continues from there when it is called again; see ``forget_example`` for delayed updates.
    """
    if run.meta[PENDING] < 0:
        run.meta[ORACLE] = WITH_GOLD
        begin_delta(run)
        forget_moves(x)
        start(x, table, run, options)
    while size(run) > 0 or run.meta[PENDING] >= 0:
        if run.meta[STOP]:
            return STOPPED
        if run.meta[PENDING] < 0:
            run.meta[PENDING] = remove_front(x, run, options)
        node = run.meta[PENDING]
        good = run.ints[node, GOOD] > 0
        goal = run.ints[node, GOAL] > 0
        if not (good or run.meta[GOODS] > 0) or (goal and not good):
            before = run.meta[NODES]
            status, n_siblings = siblings(x, y, table, run, options, node)
            if status == DONE:
                n_contenders = contenders(run, options, node)
                status = update(x, table, run, options, n_siblings, n_contenders)
            if status != DONE:
                run.meta[NODES] = before
                return status
            make_queue(run)
            run.meta[PENDING] = -1
            if options.strategy == EARLY:
                return DONE
            for i in range(n_siblings):
                node = run.compared[SIBLINGS, i]
                run.reals[node, SCORE] = run.reals[node, G] - table.reals[MARGIN]
                if n_siblings > 1:  # else all that follows has this one path before it
                    rescore(x, table, run, node)
                enqueue(run, options, node)
        else:
            if goal:
                run.meta[PENDING] = -1
                if options.strategy == DELAYED and run.meta[ERRORS] > 0:
                    take_step(table, run, options)
                return DONE
            if run.meta[NODES] + max_successors(x, run, options, node) > run.ints.shape[0]:
                return MORE_NODES
            status = expand_node(x, y, table, run, options, node)
            if status != DONE:
                return status
            run.meta[PENDING] = -1
    return UNREACHABLE


def forget_example(table, run):
    """Let the next call of ``learn_one`` start again, after a delayed update could not go on.

    The weights are as they were before the example.
    """
    clear_marks(table.mark, run)
    begin_delta(run)
    run.meta[PENDING] = -1


def learn_full(x, y, table, run, options):
    """Standard and max-violation updates: decode in full, then compare with the good path."""
    run.meta[NODES] = 0
    run.meta[ORACLE] = WITH_GOLD
    bad = search_one(x, y, table, run, options)
    if bad < 0:
        return -bad
    if run.ints[bad, GOOD]:
        return DONE
    run.meta[ORACLE] = ONLY_GOOD
    good = search_one(x, y, table, run, options)
    if good < 0:
        return UNREACHABLE if good == -FAILED else -good
    if options.strategy == MAX_VIOLATION:
        largest = -math.inf
        final_bad, final_good = bad, good
        for at in range(run.agenda.shape[0]):
            b, w = run.agenda[at, BEST], run.agenda[at, BEST_GOOD]
            if b >= 0 and w >= 0 and not run.ints[b, GOOD]:
                violation = run.reals[b, SCORE] - run.reals[w, SCORE]
                if violation > largest:
                    largest, bad, good = violation, b, w
        if run.reals[final_bad, SCORE] - run.reals[final_good, SCORE] > largest:
            bad, good = final_bad, final_good
    run.compared[SIBLINGS, 0] = good
    run.compared[CONTENDERS, 0] = bad
    return update(x, table, run, options, 1, 1)


def siblings(x, y, table, run, options, node):
    """*siblings*: back to the first good ancestor, forward over good nodes to the same round.

    The siblings are written to run.compared; returns the status and their number.
    """
    ints, reals, states = run.ints, run.reals, run.states
    sibs, front = run.compared[SIBLINGS], run.scratch[FRONTIER]
    ancestor = node
    while ints[ancestor, GOOD] == 0:
        ancestor = ints[ancestor, PARENT]
    front[0] = ancestor
    begin, end, n_front, n_found = 0, 1, 1, 0
    while begin < end:
        parent = front[begin]
        begin += 1
        # The ancestor itself is no sibling, whatever the keys say.
        if parent != ancestor and (ints[parent, GOAL] or ints[parent, KEY] >= ints[node, KEY]):
            if n_found == sibs.shape[0]:
                return MORE_SCRATCH, 0
            sibs[n_found] = parent
            n_found += 1
            if begin == end:
                n_front = next_step(run, front, begin, n_front, options.siblings)
                begin, end = 0, n_front
            continue
        before = n_front
        state = states[parent]
        for i in range(write_groups(x, run, parent)):
            group = run.groups[i]
            n_listed = write_choices(x, state, group, run)
            for c in range(n_chosen(run, n_listed)):
                label = chosen_label(run, c, n_listed)
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
                check_round(run, options, child)
                score_step(x, table, run, child)
                front[n_front] = child
                n_front += 1
        if run.meta[FAULT] != DONE:
            return run.meta[FAULT], 0
        if n_front == before:
            return UNREACHABLE, 0
        if begin == end:
            n_front = next_step(run, front, begin, n_front, options.siblings)
            begin, end = 0, n_front
    return DONE, keep_best(run, sibs, n_found, options.siblings)


def next_step(run, front, begin, end, most):
    """Move the nodes from ``begin`` to ``end`` to the front, the best of them; their number."""
    for i in range(end - begin):
        front[i] = front[begin + i]
    return keep_best(run, front, end - begin, most)


def keep_best(run, nodes, n, most):
    """Keep the best of n nodes in their order, of equals the first; return how many there are."""
    if n <= most:
        return n
    scores, kept = run.coefficients[SIBLINGS], 0
    for i in range(n):
        scores[i] = run.reals[nodes[i], SCORE]
    for i in range(n):
        better = 0
        for j in range(n):
            better += scores[j] > scores[i] or (scores[j] == scores[i] and j < i)
        if better < most:
            nodes[kept] = nodes[i]
            kept += 1
    return kept


def check_round(run, options, node):
    """Record a fault if the round of a node does not exist or is not after its parent's."""
    ints, rounds = run.ints, n_rounds(run.agenda)
    low = ints[ints[node, PARENT], KEY]
    if not low < ints[node, KEY] < rounds:
        method = IN_KEY if options.keyed else IN_LIMITS
        note_fault(run.meta, BAD_KEY, method, ints[node, KEY], low + 1, rounds - 1)


def contenders(run, options, node):
    """Write the dequeued node and those it competes with to run.compared; return their number."""
    agenda, meta, nodes = run.agenda, run.meta, run.compared[CONTENDERS]
    rounds = n_rounds(agenda)
    if options.kind == RANKED:
        at, begin, end, waiting = 0, 0, agenda[0, HELD], 0
    else:
        at, begin, end = rounds + OPEN_ROUND, meta[ROUND_AT], meta[ROUND_END]
        waiting = meta[WAITING]
    nodes[0] = node
    for i in range(end - begin):
        nodes[1 + i] = agenda[at, FIRST + begin + i]
    for i in range(waiting):
        nodes[1 + end - begin + i] = agenda[rounds + WAITING_GOALS, FIRST + i]
    return 1 + end - begin + waiting


def score_step(x, table, run, node):
    """Compute g and score of a node from those of its parent."""
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
    """Score a path again after the weights have changed."""
    path, ints = run.scratch[PATH], run.ints
    depth = ints[node, DEPTH]
    for i in range(depth, -1, -1):
        path[i] = node
        node = ints[node, PARENT]
    for i in range(depth + 1):
        score_step(x, table, run, path[i])
