"""The compiled engine: the same algorithms over integer states, at native speed.

problem.py    what a problem for it looks like
kernels.py    Figures 1 and 2, and the updates
native/       engine + problem -> machine code, cached
machine.py    arrays in, arrays out
passes.py     epochs, progress, held-out score, interruption
options.py    beam(5), alma(), early ... as options
reference.py  the same problem, uncompiled, in the reference engine
"""
