"""Queue, update and strategy of the reference engine as options of the compiled one.

Both engines take the same values: ``beam(5)``, ``alma(alpha=0.9)``, ``early``. A value that the
compiled engine does not support is an error here.
"""

from __future__ import annotations

from typing import Any

from laso.arow import Arow
from laso.engine import option_kinds as kinds
from laso.engine.option_kinds import Options
from laso.engine.problem import CompiledProblem
from laso.errors import quoted
from laso.learn import (
    MOST_SIBLINGS,
    BestSiblings,
    delayed,
    early,
    max_violation,
    restart,
    standard,
)
from laso.problem import shortened
from laso.queues import Beam, BoundedBestFirst, Exact, MakeQueue, depth, own_key
from laso.training import Rule, Strategy
from laso.updates import Alma, Likelihood, PassiveAggressive, Perceptron
from laso.weightings import loss_proportional, uniform, worst

__all__ = ["is_exact", "options_for", "own_key"]

WIDEST = 10_000  # beams of the compiled engine
WEIGHTINGS: list[Any] = [uniform, loss_proportional, worst]
STRATEGIES: list[Any] = [restart, early, delayed, standard, max_violation]


def options_for(
    problem: type[CompiledProblem], queue: MakeQueue, update: Rule, strategy: Strategy = restart
) -> Options:
    """Return the options of the compiled engine that are equal to queue, update and strategy."""
    kind, keyed, width = _queue(problem, queue)
    keep = MOST_SIBLINGS
    if isinstance(strategy, BestSiblings):
        keep, strategy = strategy.keep, strategy.strategy
    if strategy not in STRATEGIES:
        raise ValueError(f"the compiled engine has no strategy {quoted(strategy, limit=200)}")
    if isinstance(update, Likelihood):
        raise ValueError(
            "the likelihood needs exact search, queue=exact(): found " + quoted(update, limit=200)
        )
    weighting = getattr(update, "weighting", None)
    if weighting not in WEIGHTINGS or getattr(update, "kernel", None) is not None:
        raise ValueError(
            f"the compiled engine has no kernels and only the weightings uniform, "
            f"loss_proportional and worst, found {quoted(update, limit=200)}"
        )
    options = Options(
        kind=kind,
        keyed=keyed,
        width=width,
        update=int(kinds.PERCEPTRON),
        weighting=WEIGHTINGS.index(weighting),
        strategy=STRATEGIES.index(strategy),
        normalize_always=0,
        alpha=1.0,
        b=1.0,
        c=1.0,
        margin=0.0,
        by_loss=int(getattr(update, "by_loss", False)),
        siblings=keep,
    )
    if isinstance(update, Alma):
        if update.p != 2.0:
            raise ValueError(f"the compiled engine has ALMA for p = 2 only, found p = {update.p}")
        return options._replace(
            update=int(kinds.ALMA),
            alpha=float(update.alpha),
            b=float(update.b),
            c=float(update.C),
            normalize_always=int(update.normalize_always),
            margin=float(update.margin(1)),
        )
    if isinstance(update, PassiveAggressive):
        return options._replace(
            update=int(kinds.PASSIVE_AGGRESSIVE), c=float(update.C), margin=float(update.margin)
        )
    if isinstance(update, Arow):
        return options._replace(
            update=int(kinds.AROW),
            alpha=float(update.variance),
            c=float(update.gamma),
            margin=float(update.margin),
        )
    if isinstance(update, Perceptron):
        return options._replace(margin=float(update.margin))
    raise ValueError(f"the compiled engine has no update {quoted(update, limit=200)}")


def is_exact(queue: MakeQueue) -> bool:
    """Return whether a queue is ``exact()``, which has an engine of its own (``ExactMachine``)."""
    return type(queue) is Exact and queue.signature is None


def _queue(problem: type[CompiledProblem], queue: MakeQueue) -> tuple[int, int, int]:
    width = getattr(queue, "width", 1)
    if width > WIDEST:
        raise ValueError(f"the width of a beam must be at most {WIDEST}, found {shortened(width)}")
    if type(queue) is BoundedBestFirst:
        return int(kinds.RANKED), 0, queue.width
    if type(queue) is Beam and queue.key in (None, depth, own_key):
        has_key = problem.key is not CompiledProblem.key
        if queue.key == own_key and not has_key:
            raise ValueError(f"{problem.__name__} has no key to group a beam by")
        return int(kinds.ROUNDS), int(has_key and queue.key != depth), queue.width
    raise ValueError(
        "the compiled engine has the queues greedy(), beam(n), beam(n, key=depth), "
        f"bounded_best_first(n) and exact() without a signature, found {quoted(queue, limit=200)}"
    )
