"""Compile what most tests use, before the first of them: ``python -m tests.precompile part parts``.

So no test waits for code that all tests share, and several processes compile at once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np


def calls() -> Iterator[Callable[[], object]]:
    """Yield calls that compile something, those that the others build upon first."""
    from laso import CRF, Tagger, beam, exact, lbfgs, perceptron, standard
    from laso.data import load_bundled
    from laso.engine.machine import warm
    from laso.engine.options import options_for
    from laso.learn import restart
    from laso.tasks.chunking.problem import Chunking
    from laso.tasks.clustering.problem import Clustering
    from laso.tasks.joint.problem import Joint
    from laso.tasks.parsing.arc_eager import ArcEager
    from laso.tasks.parsing.arc_hybrid import ArcHybrid
    from laso.tasks.tagging.problem import Tagging, WeightedTagging
    from tests.engine_inputs import Segmenting

    sentences = load_bundled()[0][:4]
    X = [[token[:2] for token in sentence] for sentence in sentences]
    dicts = [[{"w": token[0]} for token in sentence] for sentence in sentences]
    y = [[token[2] for token in sentence] for sentence in sentences]

    def warmed(problem, strategy, dtype) -> Callable[[], object]:
        options = options_for(problem, beam(1), perceptron(), strategy)
        return lambda: warm(problem, options, dtype=dtype)

    yield warmed(Tagging, restart, np.float32)
    yield warmed(Segmenting, restart, np.float64)
    yield lambda: Tagger(queue=exact(), update=lbfgs()).fit(X, y).predict_marginals(X)
    yield lambda: Tagger(queue=exact(), epochs=1).fit(X, y).predict_nbest(X, 2)
    yield lambda: CRF(algorithm="lbfgs", max_iterations=1).fit(dicts, y).predict(dicts)
    double = (Tagging, Joint, ArcHybrid, Chunking, Clustering, Segmenting)
    yield from (warmed(p, restart, np.float32) for p in (Joint, Chunking, ArcHybrid, ArcEager))
    yield from (warmed(p, standard, np.float32) for p in (Joint, Chunking))
    yield from (warmed(p, restart, np.float64) for p in double)
    yield warmed(WeightedTagging, restart, np.float32)


def in_parallel(n: int) -> None:
    """Make all calls in so many processes."""
    parts = [
        subprocess.Popen([sys.executable, "-m", "tests.precompile", str(part), str(n)])
        for part in range(n)
    ]
    for part in parts:
        part.wait()


if __name__ == "__main__":
    import logging

    logging.getLogger("laso").setLevel(logging.ERROR)
    part, parts = map(int, sys.argv[1:])
    for i, call in enumerate(calls()):
        if i % parts == part:
            call()
