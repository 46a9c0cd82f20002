"""Figures 1 and 2 over integer states, to be compiled together with a problem's methods.

placeholders.py  the names of the problem's methods
weight_table.py       the weight table
promises.py      checks of what these methods return
bundles.py       bundles of features, and the memo of their sums
upper_bounds.py        upper bounds on sums
factors.py       steps with factors
steps.py         the features and the score of one step
agenda.py        nodes and the agenda
expansion.py     expansion of nodes
weight_updates.py       Delta, and the updates
figures.py       Figure 1 and Figure 2
segments.py      expansion where steps are segments, when rounds open
entry.py         many inputs in one call

Nothing here is called as it stands. Compilation joins all modules in one namespace, puts the
problem's methods in the place of those named in ``placeholders``, and compiles the result. With the
JIT off the same code runs as plain Python.
"""

from inspect import isfunction

from laso.engine.kernels import (
    agenda,
    bundles,
    entry,
    expansion,
    factors,
    figures,
    moves,
    placeholders,
    promises,
    segments,
    steps,
    upper_bounds,
    weight_table,
    weight_updates,
)

MODULES = (
    placeholders,
    weight_table,
    promises,
    bundles,
    upper_bounds,
    factors,
    steps,
    moves,
    agenda,
    expansion,
    weight_updates,
    figures,
    segments,
    entry,
)
"""The modules that make up the compiled code."""

ENTRY_POINTS = ("learn_many", "decode_many", "largest")
"""The functions that Python calls."""

CALLED = frozenset(
    {
        "add_confident",
        "add_delta",
        "add_losses",
        "add_moves",
        "apply_update",
        "begin_bounds",
        "begin_call",
        "begin_delta",
        "begin_features",
        "begin_input",
        "best_of",
        "bound_groups",
        "check_round",
        "choose_caps",
        "common_list",
        "contenders",
        "count_good_steps",
        "decode_many",
        "enqueue",
        "expand_later",
        "expand_node",
        "factor_sums",
        "fill",
        "fill_round",
        "find_blocks",
        "find_entries",
        "forget_example",
        "forget_sums",
        "found_block",
        "gather_delta",
        "gather_steps",
        "input_of",
        "keep_best",
        "keep_best_scores",
        "keep_caps",
        "largest",
        "learn_full",
        "learn_many",
        "learn_one",
        "look_up",
        "make_full",
        "make_queue",
        "max_successors",
        "mean_loss",
        "next_features",
        "next_step",
        "next_to_rank",
        "note_fault",
        "repeat_steps",
        "rescale",
        "rescore",
        "score_step",
        "search_one",
        "siblings",
        "spread",
        "start",
        "step_score",
        "sum_below",
        "sum_block",
        "sum_factor",
        "take_step",
        "unshared_steps",
        "update",
        "weigh_nodes",
        "write_defaults",
        "write_limits",
    }
)
"""Functions called per input, node or update. The others are inlined, since arrays of a call travel
by value: those called per feature, label or step."""

INLINED = frozenset(
    name
    for module in MODULES
    for name, value in vars(module).items()
    if isfunction(value) and value.__module__ == module.__name__ and name not in CALLED
)
"""Functions that are inlined where they are called."""
