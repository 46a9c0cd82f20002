"""Errors for the status of a call of compiled code."""

from __future__ import annotations

from laso.engine import layout as at
from laso.engine.layout import Dataset, Run
from laso.engine.problem import CompiledProblem
from laso.engine.reference import dead_end, input_of, output_of
from laso.errors import BadProblem, LasoError, SearchFailed, Unreachable, span


def failure(
    status: int, dataset: Dataset, i: int, problem: type[CompiledProblem], run: Run
) -> LasoError:
    """Return the error for the status of a call at input i; messages count inputs from 1."""
    if status == at.UNREACHABLE:
        x, y = input_of(dataset, i), output_of(dataset, i)
        reason = dead_end(problem, x, y, len(run.sums))
        return Unreachable(f"example {i + 1}: {reason}")
    if status in at.FAULTS:
        return broken_promise(f"input {i + 1}", problem, run)
    return SearchFailed(f"input {i + 1}: the queue ran empty before a goal was dequeued")


PROMISES = {
    at.Method.LIMITS: "a path is longer than STEPS",
    at.Method.GROUPS: "the number of groups must stay within MAX_GROUPS",
    at.Method.FACTORS: "a factor's group must be below FACTORS, its label must exist, and a step "
    f"has at most {at.MOST_FACTORS} factors",
    at.Method.BLOCK: "a block must be below BLOCKS, and with SEGMENTS every step must have one",
    at.Method.SUB_BLOCK: "a sub-block must have a smaller number than its block, a block no more "
    "of them than there are such numbers, and a step at most a million",
    at.Method.BLOCK_FEATURES: "the number of features must stay within MAX_FEATURES",
    at.Method.FEATURES: "the number of features must stay within MAX_FEATURES",
    at.Method.KEY: "the key must rise with every step and stay within STEPS",
    at.Method.CHOICES: "a listed label must exist",
    at.Method.VECTORS: "the number of vectors of a block must stay within VECTORS",
}
OF_LIMITS = {
    at.BAD_COUNT: "MAX_LABELS must stay within the width of the weights",
    at.BAD_BLOCK: "CHAIN: BLOCKS must be the number of items",
}
FINITE = "the values of features must be finite numbers"


def broken_promise(what: str, problem: type[CompiledProblem], run: Run) -> BadProblem:
    """Return the error for the fault that a kernel has recorded."""
    method = at.Method(run.meta[at.FAULT_METHOD])
    value, low, high = (
        int(run.meta[column]) for column in (at.FAULT_VALUE, at.FAULT_LOW, at.FAULT_HIGH)
    )
    promise, expected = PROMISES[method], f"found {value}, expected {span(low, high)}"
    if method == at.IN_LIMITS:
        promise = OF_LIMITS.get(at.Status(run.meta[at.FAULT]), promise)
    if run.meta[at.FAULT] == at.BAD_VALUE:
        promise, expected = FINITE, f"found {value} that are not, for example after 5.0 / 0"
    return BadProblem(f"{what}: {promise}; {problem.__name__}.{method.name.lower()}: {expected}")
