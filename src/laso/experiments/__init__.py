"""The paper's tables, re-run: ``laso reproduce table1``.

    table1 ... one module for each experiment: its rows, its evaluation, its report
    averages   averages of models of any table, for average1
    joint      shared by table2, table3, updates and theorem4
    runner     runs any experiment: chooses settings on held-out data, runs jobs, saves results
    worker     one job in a fresh process
    report     means and standard deviations, claims, tables
    plots      figures as SVG
    labels     names beside the points of a plot
    corpus, measure  shared with the benchmarks

A new experiment is a module with an ``EXPERIMENT``, named here.
"""

NAMES = (
    *("table1", "additions", "margins", "average1"),
    *("table2", "table3", "updates", "theorem4"),
    *("ewt", "parsing", "joint_parsing"),
)
EXPERIMENTS = {name: f"laso.experiments.{name}" for name in NAMES}
"""The module of each experiment."""
