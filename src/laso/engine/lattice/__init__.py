"""Exact search and likelihood on the lattice of an input.

layout.py      the arrays and their columns
build.py       the lattice: every path of an input
algebra.py     the recursion over it: max-plus, log-sum-exp, backward
gradient.py    from edges to weights
likelihood.py  expectations, costs, gradient ascent
entry_points.py       many inputs in one call
chain_layout.py, chain_build.py, chain.py   lattices with one node for each label in every round
chain_search.py   search where a problem promises such lattices

The lattice holds every path: its nodes are pairs (key, signature), its edges the allowed steps with
their scores. One recursion serves all algorithms; the algebra decides what it computes for a node:
the best paths (Viterbi, or lists for n-best), the best good and the best bad path, or the sum over
all paths. Compilation is that of ``laso.engine.kernels``.
"""

from laso.engine import kernels
from laso.engine.lattice import (
    algebra,
    build,
    chain,
    chain_build,
    chain_layout,
    chain_search,
    entry_points,
    gradient,
    layout,
    likelihood,
)

MODULES = (
    *kernels.MODULES,
    layout,
    build,
    algebra,
    gradient,
    likelihood,
    entry_points,
    chain_layout,
    chain_build,
    chain,
    chain_search,
)
"""The modules that make up the compiled code."""

ENTRY_POINTS = (
    "best_many",
    "marginals_many",
    "learn_exact_many",
    "likelihood_many",
    "write_chains",
    "chain_likelihoods",
    "gold_features",
    "best_chains",
    "chain_probabilities",
)
"""The functions that Python calls."""

INLINED = kernels.INLINED | {
    "add_span",
    "backward_step",
    "enter",
    "forward_step",
    "home",
    "is_ahead",
    "may_add_row",
    "multiply",
    "open_node",
    "slot_for",
    "take_span",
    "target_of",
}
"""Functions called per feature, edge or node: a call costs more, since arrays travel by value."""
