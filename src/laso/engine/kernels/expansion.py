"""Expansion of nodes: the scores of their steps, and which of them enter the agenda."""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.kernels.agenda import (
    child_of,
    count_good,
    entry_threshold,
    insert,
    n_rounds,
    place_for,
    step_to,
    write_groups,
)
from laso.engine.kernels.bundles import score_labels
from laso.engine.kernels.factors import bound_groups, has_good, score_factors
from laso.engine.kernels.placeholders import (
    FACTORED,
    NARROWED,
    allowed,
    has_bounds,
    is_good,
    key,
    loss,
    shares_blocks,
)
from laso.engine.kernels.promises import chosen_label, n_chosen, note_fault, write_choices
from laso.engine.kernels.weight_table import fill
from laso.engine.layout import (
    BAD_KEY,
    DEPTH,
    DONE,
    EXPANSION,
    FAULT,
    FIRST,
    FIRST_NOTED,
    FORM,
    GOOD,
    HELD,
    IN_KEY,
    IN_LIMITS,
    KEY,
    KEY_OF_GROUP,
    LOSS,
    MARGIN,
    MORE_NODES,
    NO_GOLD,
    NOTED,
    NOTES,
    ONLY_GOOD,
    OPEN_ROUND,
    ORACLE,
    PARTIAL_STATES,
    ROUND_AT,
    ROUND_END,
    SCALE,
    SCORE,
    G,
)
from laso.engine.option_kinds import RANKED


def score_group(x, state, group, table, run, least, n):
    """Write the scores of a group's labels; False if none of their sums can exceed ``least``.

    These are the n labels that are listed; all if n is -1.
    """
    if FACTORED():
        return score_factors(x, state, group, table, run, least, n)
    return score_labels(x, state, group, table, run, least)


def checked_round(at, low, rounds):
    """Return the round ``at``, or the first that does not exist if it is not above ``low``."""
    return at if low < at < rounds else rounds


def least_gain(threshold, g, scale):
    """Return the least sum with which a step from a node may exceed a threshold, or a lower one.

    There is room for rounding.
    """
    return (threshold - g - 1e-9 * (abs(threshold) + abs(g))) / scale


def expand(x, y, table, run, options, node):
    """Operators and enqueue of the figures; the status."""
    if not shares_blocks():  # other problems do not compile what follows
        twin = begin_notes(run, options, node)
        if twin >= 0:
            return repeat_steps(x, y, table, run, options, node, twin)
    n, i, n_done = write_groups(x, run, node), 0, 0
    run.meta[EXPANSION] += 1
    at, floor = begin_bounds(x, table, run, options, node, n), -math.inf
    ranking = at >= 0 and run.agenda[at, HELD] < options.width
    while ranking or n_done < n:
        if ranking:
            i = next_to_rank(x, table, run, options, node, n)
            if i < 0:
                ranking, floor = False, run.best_scores[options.width - 1]
                continue
        else:
            i = n_done
            n_done += 1
            if at >= 0 and is_below(table, run, options, node, i, at, floor):
                continue
        chosen = int(run.groups[i]), floor, ranking
        status = expand_group(x, y, table, run, options, node, chosen)
        if status != DONE:
            return status
    return run.meta[FAULT]


def expand_group(x, y, table, run, options, node, chosen):
    """Enqueue the steps of a group with scores that are not below a floor; the status.

    While groups are ranked, only the best scores of steps are kept.
    """
    ints, reals, agenda, meta, sums = run.ints, run.reals, run.agenda, run.meta, run.sums
    state, g, was_good = run.states[node], reals[node, G], ints[node, GOOD] > 0
    scale, margin, rounds = table.reals[SCALE], table.reals[MARGIN], n_rounds(agenda)
    ranked = options.kind == RANKED
    keyed, by_group = options.keyed and not ranked, run.limits[FORM] >= KEY_OF_GROUP
    group, floor, ranking = chosen
    chosen_round = key(x, state, group, 0) if keyed and by_group else ints[node, DEPTH] + 1
    at = checked_round(chosen_round, ints[node, KEY], rounds)
    if ranked and at < rounds:
        at = 0
    threshold_at, threshold = at, entry_threshold(agenda, reals, options.width, at)
    least = -math.inf
    if by_group or not keyed:  # else labels may have lists of their own
        least = least_gain(max(threshold, floor), g, scale)
    n_listed = write_choices(x, state, group, run)
    if (FACTORED() or shares_blocks()) and was_good and not ranking:
        was_good = has_good(x, y, state, group, run, n_listed)
    if was_good:  # good steps count even if they do not enter the agenda
        least = -math.inf
    if ranking:
        least = least_gain(run.best_scores[options.width - 1], g, scale)
    if not score_group(x, state, group, table, run, least, n_listed):
        return DONE
    unknown = least == -math.inf and not (was_good or ranked or (keyed and not by_group))
    if unknown and not ranking and meta[ORACLE] != ONLY_GOOD:  # the first node of a round
        least = least_gain(g + scale * lowest_of_best(x, run, node, group, n_listed), g, scale)
    if FACTORED() and ranking:
        keep_best_scores(x, y, table, run, options, node, (group, n_listed))
        return DONE
    for c in range(n_chosen(run, n_listed)):
        label = chosen_label(run, c, n_listed)
        if sums[label] < least:  # most labels end here
            continue
        good = was_good and is_good(x, y, state, group, label)
        new_g = g + scale * sums[label]
        score = new_g - margin if good else new_g
        if keyed and not by_group:
            chosen_round = key(x, state, group, label)
            at = checked_round(chosen_round, ints[node, KEY], rounds)
        if at != threshold_at:
            threshold_at, threshold = at, entry_threshold(agenda, reals, options.width, at)
        if not score > threshold and not good:
            continue
        if (meta[ORACLE] == ONLY_GOOD and not good) or not allowed(x, state, group, label):
            continue
        if at == rounds:  # this list is always empty, so that all allowed steps come here
            method = IN_KEY if keyed else IN_LIMITS
            note_fault(meta, BAD_KEY, method, chosen_round, ints[node, KEY] + 1, rounds - 1)
            return BAD_KEY
        if offer(x, y, run, options, node, (group, label, at), (good, new_g, score)) != DONE:
            return MORE_NODES
        if not shares_blocks():
            note_step(run, group, label, sums[label])
        threshold = entry_threshold(agenda, reals, options.width, at)
    return DONE


def common_list(x, run, options, node, n):
    """Return the round to which all steps of a node's n groups lead; -1 if there is none."""
    if options.kind == RANKED or n == 0 or (options.keyed and run.limits[FORM] < KEY_OF_GROUP):
        return -1
    at = run.ints[node, DEPTH] + 1
    if options.keyed:
        at = key(x, run.states[node], run.groups[0], 0)
        for i in range(1, n):
            if key(x, run.states[node], run.groups[i], 0) != at:
                return -1
    return at if 0 <= at < n_rounds(run.agenda) else -1


def begin_bounds(x, table, run, options, node, n):
    """Find upper bounds on the sums of a node's n groups, to prune groups.

    Returns the round to which all groups lead. If it has places left, groups are first scored in
    the order of their bounds, until as many steps as it has places set a floor: steps below need
    not be enqueued. -1: bounds do not help.
    """
    if not FACTORED() or not has_bounds() or run.caps.shape[0] == 1:
        return -1
    at = common_list(x, run, options, node, n)
    if at < 0 or run.meta[ORACLE] == ONLY_GOOD:
        return -1
    fill(run.best_scores, -math.inf)
    bound_groups(x, run.states[node], table, run, 0, n)
    return at


def next_to_rank(x, table, run, options, node, n):
    """Return the group with the highest upper bound, whose bound becomes infinite.

    -1: all others are below the floor.
    """
    if not FACTORED() or not has_bounds():
        return -1
    state, bounds, floor = run.states[node], run.group_bounds, run.best_scores[options.width - 1]
    least = least_gain(floor, run.reals[node, G], table.reals[SCALE])
    while True:
        i, highest = -1, -math.inf
        for j in range(n):
            if highest < bounds[j] < math.inf:
                i, highest = j, bounds[j]
        if i < 0 or highest < least:
            return -1
        if NARROWED():
            bound_groups(x, state, table, run, i, -1)
            if bounds[i] < highest:  # then another group may be the next
                continue
        bounds[i] = math.inf
        return i


def keep_best_scores(x, y, table, run, options, node, chosen):
    """Insert the scores of a group's allowed steps into the best of their node."""
    state, g, scale = run.states[node], run.reals[node, G], table.reals[SCALE]
    best, last, sums = run.best_scores, options.width - 1, run.sums
    group, n_listed = chosen
    least = least_gain(best[last], g, scale)
    for c in range(n_chosen(run, n_listed)):
        label = chosen_label(run, c, n_listed)
        if sums[label] < least or not allowed(x, state, group, label):
            continue
        score = g + scale * sums[label]
        if run.ints[node, GOOD] > 0 and is_good(x, y, state, group, label):
            score -= table.reals[MARGIN]
        if score > best[last]:
            insert_score(best, score)
            least = least_gain(best[last], g, scale)


def lowest_of_best(x, run, node, group, n_listed):
    """Return a sum that as many allowed labels of a group reach as a list has places, or -inf."""
    best, state, last = run.best_scores, run.states[node], run.best_scores.shape[0] - 1
    fill(best, -math.inf)
    for c in range(n_chosen(run, n_listed)):
        label = chosen_label(run, c, n_listed)
        if run.sums[label] > best[last] and allowed(x, state, group, label):
            insert_score(best, run.sums[label])
    return best[last]


def insert_score(best, score):
    """Insert a score into the best ones, of which it replaces the last."""
    j = best.shape[0] - 1
    while j > 0 and score > best[j - 1]:
        best[j] = best[j - 1]
        j -= 1
    best[j] = score


def is_below(table, run, options, node, i, at, floor):
    """Return whether all steps of a group are below a floor, or cannot enter round ``at``.

    Good steps count even then.
    """
    threshold = max(floor, entry_threshold(run.agenda, run.reals, options.width, at))
    least = least_gain(threshold, run.reals[node, G], table.reals[SCALE])
    return run.ints[node, GOOD] == 0 and run.group_bounds[i] < least


def offer(x, y, run, options, node, step, scores):
    """Enqueue the successor of a node by an allowed step, if its list has a place; the status."""
    ints, reals, agenda, meta = run.ints, run.reals, run.agenda, run.meta
    ranked = options.kind == RANKED
    group, label, at = step
    good, new_g, score = scores
    place = place_for(agenda, reals, options.width, at, score)
    if good and (place >= 0 or not ranked):
        count_good(agenda, meta, at, ranked, 1)
    if place < 0:
        return DONE
    child = child_of(run, options, at)
    if child < 0:
        return MORE_NODES
    step_to(ints, child, node, group, label)
    ints[child, GOOD] = good
    ints[child, KEY] = ints[child, DEPTH] if ranked else at
    reals[child, G] = new_g
    reals[child, SCORE] = score
    reals[child, LOSS] = reals[node, LOSS]
    if meta[ORACLE] != NO_GOLD:
        was_good = ints[node, GOOD] > 0
        reals[child, LOSS] += loss(x, y, run.states[node], group, label, was_good, good)
    insert(agenda, meta, at, place, child)
    return DONE


# --------------------------------------------------------------------------- equal states


def begin_notes(run, options, node):
    """Begin to note the steps of a node of a beam, which the next one with its state repeats.

    Return the place of such a node in the round, -1 if there is none. The first of equal states has
    the highest score, so steps that were pruned for it stay pruned. Good nodes are lowered by the
    margin, so they do not take part.
    """
    ints, reals, noted, meta = run.ints, run.reals, run.noted, run.meta
    meta[NOTES] = -1
    if options.kind == RANKED or options.width == 1 or run.limits[PARTIAL_STATES]:
        return -1
    rank, opened = meta[ROUND_AT] - 1, run.agenda[n_rounds(run.agenda) + OPEN_ROUND]
    noted[rank, NOTED] = -1
    if ints[node, GOOD] > 0:
        return -1
    for i in range(rank):
        other = opened[FIRST + i]
        if noted[i, NOTED] >= 0 and reals[node, G] <= reals[other, G]:
            same = True
            for j in range(run.states.shape[1]):
                same &= run.states[node, j] == run.states[other, j]
            if same:
                return i
    if rank + 1 < meta[ROUND_END]:
        noted[rank, NOTED] = 0
        meta[NOTES] = rank
    return -1


def note_step(run, group, label, gain):
    """Note a step that had exceeded the threshold; too many are not noted."""
    rank, noted = run.meta[NOTES], run.noted
    if rank < 0:
        return
    n = noted[rank, NOTED]
    if n == run.noted_sums.shape[1]:
        noted[rank, NOTED] = run.meta[NOTES] = -1
        return
    noted[rank, FIRST_NOTED + 2 * n], noted[rank, FIRST_NOTED + 2 * n + 1] = group, label
    run.noted_sums[rank, n] = gain
    noted[rank, NOTED] = n + 1


def repeat_steps(x, y, table, run, options, node, twin):
    """Enqueue the successors of a node by the steps that are noted; the status."""
    noted, agenda, reals, state = run.noted[twin], run.agenda, run.reals, run.states[node]
    g, scale, rounds = reals[node, G], table.reals[SCALE], n_rounds(agenda)
    for i in range(noted[NOTED]):
        group, label = noted[FIRST_NOTED + 2 * i], noted[FIRST_NOTED + 2 * i + 1]
        score = g + scale * run.noted_sums[twin, i]
        at = run.ints[node, DEPTH] + 1
        if options.keyed:
            at = checked_round(key(x, state, group, label), run.ints[node, KEY], rounds)
        if score > entry_threshold(agenda, reals, options.width, at):
            status = offer(x, y, run, options, node, (group, label, at), (False, score, score))
            if status != DONE:
                return status
    return run.meta[FAULT]
