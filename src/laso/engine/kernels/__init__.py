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

from laso.engine.kernels import (
    agenda,
    bundles,
    entry,
    expansion,
    factors,
    figures,
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

INLINED = frozenset(
    {
        "add_bundle",
        "add_entry",
        "add_entry_to_row",
        "add_factors",
        "add_factors_of_listed",
        "add_features",
        "add_full_row",
        "add_known_rows",
        "add_own",
        "add_rows",
        "add_sparse_rows",
        "add_sub_blocks",
        "begin_group",
        "begin_notes",
        "block_features_in",
        "bound_block",
        "bound_of_listed",
        "cap_of",
        "checked_block",
        "checked_block_features",
        "checked_choice",
        "checked_choices",
        "checked_count",
        "checked_features",
        "checked_labels",
        "checked_round",
        "checked_sub_block",
        "child_of",
        "clear_marks",
        "copy_bundle",
        "count_good",
        "drop_features",
        "drop_last",
        "entry_of",
        "entry_threshold",
        "expand",
        "expand_group",
        "factor_group",
        "factor_label",
        "factor_row",
        "features_in",
        "find",
        "find_rows",
        "has_good",
        "highest",
        "highest_listed",
        "insert",
        "insert_score",
        "is_bad_factor",
        "is_below",
        "is_known",
        "is_packed",
        "is_sparse",
        "is_summed",
        "keep_known",
        "leads_to",
        "least_gain",
        "least_sum",
        "length_of",
        "list_below",
        "list_block",
        "listed_label",
        "longest",
        "lowest_of_best",
        "make_state",
        "most_entries",
        "most_features",
        "n_blocks",
        "n_rounds",
        "name_of",
        "new_node",
        "next_block",
        "note_step",
        "offer",
        "offer_labels",
        "offer_segments",
        "open_round",
        "own_name",
        "place_among",
        "place_for",
        "place_of",
        "raise_cap",
        "reach_of",
        "remove_front",
        "request_entries",
        "request_named",
        "request_rows",
        "request_waiting",
        "room_for",
        "row_of",
        "score_factors",
        "score_group",
        "score_labels",
        "set_maximum",
        "shorten_keys",
        "size",
        "slot_of",
        "start_of",
        "step_to",
        "sum_features",
        "sum_listed",
        "sum_named",
        "sum_segment",
        "sum_step",
        "sum_waiting",
        "upper_bound",
        "weight_at",
        "write_choices",
        "write_groups",
    }
)
"""Functions called per feature, label or node: a call costs more, since arrays travel by value."""
