"""The paper's tables, re-run: ``laso reproduce table1``.

    table1     one experiment: plain data, and what its report says
    runner     any experiment: choose settings on held-out data, run jobs, keep results, go on
    worker     one job in a fresh process
    report     means and spreads, claims, tables
    plots      figures as SVG
    corpus, measure  what the benchmarks use too

A new experiment is one more module with an ``EXPERIMENT``, named here.
"""

EXPERIMENTS = {"table1": "laso.experiments.table1"}
"""The module of each experiment."""
