"""The compiled engine: the same algorithms over integer states, at native speed.

problem.py     CompiledProblem: what a user overrides
layout.py      the arrays, and an enumeration for the columns of each
kernels/       Figures 1 and 2, and the updates
lattice/       exact search: best paths, marginals, likelihood
native/        engine + problem -> machine code, cached
machine.py     beam search: arrays in, arrays out
exact.py       exact search: arrays in, arrays out
space.py       the working space of exact search
likelihood.py  gradient steps and L-BFGS
passes.py      epochs, progress, held-out score, interruption
options.py     beam(5), alma(), early ... as options
reference.py   the same problem, uncompiled, in the reference engine
"""
