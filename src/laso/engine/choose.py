"""Which engine runs a choice of queue, update and strategy on a compiled problem."""

from __future__ import annotations

from laso.engine.lattice.exact import ExactMachine
from laso.engine.machine import Machine
from laso.engine.options import STRATEGIES, is_exact, options_for
from laso.engine.problem import CompiledProblem
from laso.errors import quoted
from laso.learn import restart
from laso.queues import MakeQueue
from laso.training import Rule, Strategy
from laso.updates import perceptron


def engine_for(
    problem: type[CompiledProblem],
    queue: MakeQueue,
    update: Rule | None = None,
    strategy: Strategy = restart,
) -> Machine | ExactMachine:
    """Return the lattice's engine for ``exact()``, the beam's engine for the other queues.

    ``exact()`` needs a problem with a signature.
    """
    update = perceptron() if update is None else update
    if is_exact(queue):
        if strategy not in STRATEGIES:
            raise ValueError(f"the compiled engine has no strategy {quoted(strategy)}")
        return ExactMachine(problem, update, expected=strategy is restart)
    return Machine(problem, options_for(problem, queue, update, strategy))
