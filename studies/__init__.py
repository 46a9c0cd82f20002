"""The studies of laso: ``python -m studies --help``, in a clone.

    paper     the paper's tables and questions, one module for each experiment
    peers     laso against other programs on the same data
    speed     speed where users feel it, where it is spent, and more workers
    defaults  the study behind the defaults
    linkage   record linkage beside other programs

    runner    runs any experiment: chooses settings on held-out data, runs jobs, saves results
    training  what one job of an experiment does
    worker    one job in a fresh process
    measure   processes, results in JSON, versions, tables
    corpus    corpora as files
    report    means and standard deviations, claims, tables
    plots     figures as SVG
    labels    names beside the points of a plot

A new experiment is a module of ``paper`` with an ``EXPERIMENT``, named here. Results are in
``experiments/results`` and ``benchmarks/results``.
"""

NAMES = (
    *("table1", "additions", "margins", "average1"),
    *("table2", "table3", "updates", "theorem4"),
    *("ewt", "parsing"),
)
EXPERIMENTS = {name: f"studies.paper.{name}" for name in NAMES}
"""The module of each experiment."""
