"""Recognise lattices that are chains, and write down all of them that no weight changes."""

# mypy: ignore-errors

from __future__ import annotations

from laso.engine.hashing import mix
from laso.engine.kernels.entry import input_of
from laso.engine.kernels.placeholders import has_values
from laso.engine.kernels.promises import (
    checked_block,
    checked_block_features,
    checked_features,
    checked_sub_block,
)
from laso.engine.kernels.weight_table import fill, find, shorten_keys
from laso.engine.lattice.build import build
from laso.engine.lattice.chain_layout import (
    CHAIN_INPUTS,
    CONTEXT_FEATURES,
    MATRICES,
    MOST_MATRICES,
    POSITION_FEATURES,
    POSITIONS,
)
from laso.engine.lattice.layout import (
    EDGE_GOOD,
    EDGE_GROUP,
    EDGE_LABEL,
    END_OUT,
    FIRST_OUT,
    IS_GOAL,
    N_EDGES,
    N_NODES,
    N_ROUNDS,
    ON_GOOD_PATH,
    ORDER_BEGIN,
    ORDER_END,
    ROUND,
    SOURCE,
    TARGET,
)
from laso.engine.layout import BITS, DONE, FAULT, MORE_ENTRIES, NO_CHAIN, ORACLE, SLACK, WITH_GOLD


def write_chains(dataset, order, table, run, options, lat, chain):
    """Append the chains of the given examples; return how many are done, and the status."""
    run.meta[ORACLE], run.meta[FAULT] = WITH_GOLD, DONE
    for n in range(order.shape[0]):
        i = order[n]
        x = input_of(dataset, i)
        y = dataset.outputs[dataset.output_starts[i] : dataset.output_starts[i + 1]]
        status = build(x, y, table, run, options, lat)
        if status == DONE:
            status = write_chain(x, table, run, lat, chain)
        if status != DONE:
            return n, status
    return order.shape[0], DONE


def write_chain(x, table, run, lat, chain):
    """Append the chain of a lattice; NO_CHAIN if it is none, or what must grow."""
    used, n_labels = chain.used, chain.slots.shape[0]
    steps, max_features = lat.meta[N_ROUNDS] - 1, run.rows.shape[0] - SLACK
    first = used[POSITIONS]
    if (
        first + steps > chain.matrices.shape[0]
        or used[POSITION_FEATURES] + steps * max_features > chain.rows.shape[0]
        or used[CONTEXT_FEATURES] + (steps + 1) * n_labels * max_features
        > chain.context_rows.shape[0]
    ):
        return MORE_ENTRIES
    if not has_chain_edges(lat):
        return NO_CHAIN
    before = used[POSITION_FEATURES]
    for at in range(steps):
        if not (
            fill_slots(lat, at, chain)
            and write_position(x, table, run, lat, at, first + at, chain)
            and write_good(lat, first + at, chain)
        ):
            used[POSITION_FEATURES] = before
            return NO_CHAIN
        matrix = write_matrix(x, table, run, lat, chain)
        if matrix < 0:
            used[POSITION_FEATURES] = before
            return NO_CHAIN
        chain.matrices[first + at] = matrix
    used[POSITIONS] = first + steps
    used[CHAIN_INPUTS] += 1
    chain.starts[used[CHAIN_INPUTS]] = first + steps
    return run.meta[FAULT]


def has_chain_edges(lat):
    """Return whether edges lead to the next round, and the goals are the nodes of the last."""
    nodes, edges, last = lat.nodes, lat.edges, lat.meta[N_ROUNDS] - 1
    chain = True
    for node in range(lat.meta[N_NODES]):
        chain &= (nodes[node, IS_GOAL] != 0) == (nodes[node, ROUND] == last)
    for e in range(lat.meta[N_EDGES]):
        chain &= nodes[edges[e, TARGET], ROUND] == nodes[edges[e, SOURCE], ROUND] + 1
    return chain


def fill_slots(lat, at, chain):
    """Write the node of each label in a round, -1 for none; False if a label has several nodes.

    The label of a node is that of the edges into it, which must all have the same; the start has
    label 0.
    """
    slots, edges, nodes, order, rounds = chain.slots, lat.edges, lat.nodes, lat.order, lat.rounds
    fill(slots, -1)
    if at == 0:
        slots[0] = order[0]
        return True
    n = 0
    for i in range(rounds[at - 1, ORDER_BEGIN], rounds[at - 1, ORDER_END]):
        node = order[i]
        for e in range(nodes[node, FIRST_OUT], nodes[node, END_OUT]):
            label, target = edges[e, EDGE_LABEL], edges[e, TARGET]
            if slots[label] < 0:
                slots[label] = target
                n += 1
            elif slots[label] != target:
                return False
    return n == rounds[at, ORDER_END] - rounds[at, ORDER_BEGIN]


def write_position(x, table, run, lat, at, position, chain):
    """Write the features of a position; False if it has more than one group, block or sub-block."""
    edges, keys, values, used = lat.edges, run.out.keys, run.out.values, chain.used
    nodes, number, n, single = lat.nodes, -1, 0, True
    for slot in range(chain.slots.shape[0]):
        node = chain.slots[slot]
        if node < 0:
            continue
        first, end = nodes[node, FIRST_OUT], nodes[node, END_OUT]
        for e in range(first, end):
            single &= edges[e, EDGE_GROUP] == edges[first, EDGE_GROUP]
        if first < end:
            block = checked_block(x, lat.states[node], edges[first, EDGE_GROUP], run)
            single &= n == 0 or block == number
            number = block
            n += 1
    if not single or (number >= 0 and checked_sub_block(x, number, 0, run.meta) >= 0):
        return False
    n = used[POSITION_FEATURES]
    if number >= 0:
        count = shorten_keys(keys, checked_block_features(x, number, run), table.ints[BITS])
        for f in range(count):
            row = find(table.slots, keys[f])
            if row >= 0:
                chain.rows[n] = row
                chain.values[n] = values[f] if has_values() else 1.0
                n += 1
    used[POSITION_FEATURES] = chain.ends[position] = n
    return True


def write_good(lat, position, chain):
    """Write the good labels of a position; False if they depend on the label before."""
    nodes, edges, good = lat.nodes, lat.edges, chain.good[position]
    fill(good, -1)
    same = True
    for slot in range(chain.slots.shape[0]):
        node = chain.slots[slot]
        if node >= 0 and nodes[node, ON_GOOD_PATH]:
            for e in range(nodes[node, FIRST_OUT], nodes[node, END_OUT]):
                label, is_good = edges[e, EDGE_LABEL], edges[e, EDGE_GOOD]
                same &= good[label] < 0 or good[label] == is_good
                good[label] = is_good
    n, only = 0, -1
    for label in range(good.shape[0]):
        if good[label] > 0:
            n += 1
            only = label
        else:
            good[label] = 0
    chain.golds[position] = only if n == 1 else -1
    return same


def write_matrix(x, table, run, lat, chain):
    """Return the transition matrix of the nodes in the slots, a new one if needed; -1: too many."""
    nodes, edges, keys, values = lat.nodes, lat.edges, run.out.keys, run.out.values
    used, n_labels = chain.used, chain.slots.shape[0]
    matrix, n = used[MATRICES], used[CONTEXT_FEATURES]
    if matrix == MOST_MATRICES:
        return -1
    code = 0
    for slot in range(n_labels):
        node = chain.slots[slot]
        allowed = chain.allowed[matrix, slot]
        fill(allowed, 0)
        if node >= 0:
            first, end = nodes[node, FIRST_OUT], nodes[node, END_OUT]
            code = mix(code, slot)
            for e in range(first, end):
                allowed[edges[e, EDGE_LABEL]] = 1
                code = mix(code, edges[e, EDGE_LABEL])
            if first < end:
                count = checked_features(x, lat.states[node], edges[first, EDGE_GROUP], run)
                for f in range(shorten_keys(keys, count, table.ints[BITS])):
                    row = find(table.slots, keys[f])
                    if row >= 0:
                        code = mix(code, row)
                        chain.context_rows[n] = row
                        chain.context_values[n] = values[f] if has_values() else 1.0
                        n += 1
        chain.context_ends[matrix * n_labels + slot] = n
    for other in range(matrix):
        if chain.hashes[other] == code and is_same_matrix(chain, other, matrix):
            return other
    chain.hashes[matrix] = code
    used[MATRICES], used[CONTEXT_FEATURES] = matrix + 1, n
    return matrix


def is_same_matrix(chain, a, b):
    """Return whether two transition matrices have the same features and allowed labels."""
    ends, n_labels, allowed = chain.context_ends, chain.slots.shape[0], chain.allowed
    rows, values = chain.context_rows, chain.context_values
    same = True
    for slot in range(n_labels):
        i, j = a * n_labels + slot, b * n_labels + slot
        first, other = (ends[i - 1] if i > 0 else 0), ends[j - 1]
        size = ends[i] - first
        same &= size == ends[j] - other
        for label in range(n_labels):
            same &= allowed[a, slot, label] == allowed[b, slot, label]
        f = 0
        while same and f < size:
            same = rows[first + f] == rows[other + f] and values[first + f] == values[other + f]
            f += 1
    return same
