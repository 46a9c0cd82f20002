"""The paper's tables, re-run: ``laso reproduce table1``.

    table1 ... each an experiment: plain data, and what its report says
    mixtures   what mixture1 and mixture2 have in common
    joint      what table2, table3, updates and theorem4 have in common
    runner     any experiment: choose settings on held-out data, run jobs, keep results, go on
    worker     one job in a fresh process
    report     means and spreads, claims, tables
    plots      figures as SVG
    labels     names beside the points of a plot
    corpus, measure  what the benchmarks use too

A new experiment is one more module with an ``EXPERIMENT``, named here.
"""

NAMES = (
    *("table1", "additions", "margins", "mixture1"),
    *("table2", "table3", "updates", "theorem4", "mixture2"),
    "ewt",
)
EXPERIMENTS = {name: f"laso.experiments.{name}" for name in NAMES}
"""The module of each experiment."""
