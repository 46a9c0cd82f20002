"""Broken promises on a late input: every call ends with its answer or with one clear error.

``python -m tests.fuzz.late [KIND ...]`` tries every code with every call, each in a process of its
own with five seconds and four gigabytes.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

from laso import (
    LasoError,
    adagrad,
    beam,
    bounded_best_first,
    exact,
    fit,
    lbfgs,
    own_key,
    perceptron,
    standard,
)
from laso.engine.beam_nbest import beam_nbest
from laso.engine.choose import engine_for
from laso.engine.dataset import make_dataset
from laso.engine.decoder import Decoder
from laso.engine.machine import all_of, new_table
from laso.engine.problem import is_factored
from tests.fuzz.late_problems import CODES, KINDS, NORMAL, spec_for

SECONDS, MEMORY = 5, 4 << 30
INPUTS, LATE = 40, 30  # the number of inputs, and which of them breaks the promise
ROOM = 10  # the length of the longest array that a method is given, about


def items_of(i: int, late: bool) -> list[tuple[int, int]]:
    return [(w % 7, int(late)) for w in range(i, i + 4 + (i < 2))]


X = [items_of(i, i == LATE) for i in range(INPUTS)]
Y = [[word % 2 for word, _ in x] for x in X]


@cache
def known_table() -> Any:
    return new_table(2)


def learn(problem: Any, spec: list[int], **settings: Any) -> Any:
    data = list(zip(X, Y, strict=True))
    model = fit(problem, data, n_labels=2, spec=spec, epochs=2, seed=None, **settings)
    return model.weights_.v


def decode(problem: Any, spec: list[int], queue: Any) -> Any:
    """Decode all inputs together, and each alone, with the same result."""
    machine, dataset = engine_for(problem, queue), make_dataset(X, spec=spec)
    single = Decoder(machine, known_table())
    apart: list[Any] = []
    try:
        steps, _, scores = machine.decode(dataset, all_of(dataset), known_table())
    except LasoError as error:
        for x in X:
            try:
                single.decode(make_dataset([x], spec=spec))
            except LasoError as other:
                apart.append(type(other).__name__)
        if apart != [type(error).__name__]:
            raise AssertionError(f"alone {apart}, together {error}") from error
        raise
    for x in X:
        apart.append(single.decode(make_dataset([x], spec=spec))[0])
    if np.concatenate(apart).tolist() != steps.tolist():
        raise AssertionError("one input alone is labelled otherwise than among others")
    return scores


def nbest(problem: Any, spec: list[int]) -> Any:
    machine: Any = engine_for(problem, beam(3, key=own_key))
    dataset = make_dataset(X, spec=spec)
    return beam_nbest(machine, dataset, all_of(dataset), known_table(), 3).scores


def exact_nbest(problem: Any, spec: list[int]) -> Any:
    machine: Any = engine_for(problem, exact())
    dataset = make_dataset(X, spec=spec)
    return machine.nbest(dataset, all_of(dataset), known_table(), 3).scores


def probabilities(problem: Any, spec: list[int]) -> Any:
    machine: Any = engine_for(problem, exact())
    dataset = make_dataset(X, spec=spec)
    return machine.marginals(dataset, all_of(dataset), known_table()).probability


by_key = beam(3, key=own_key)
CALLS: dict[str, Callable[[Any, list[int]], Any]] = {
    "learn": lambda problem, spec: learn(problem, spec, queue=by_key, update=perceptron()),
    "learn in full": lambda problem, spec: learn(problem, spec, queue=by_key, strategy=standard),
    "decode": lambda problem, spec: decode(problem, spec, by_key),
    "decode ranked": lambda problem, spec: decode(problem, spec, bounded_best_first(5)),
    "n-best": nbest,
}
EXACT: dict[str, Callable[[Any, list[int]], Any]] = {
    "learn exactly": lambda problem, spec: learn(problem, spec, queue=exact(), update=perceptron()),
    "ascent": lambda problem, spec: learn(problem, spec, queue=exact(), update=adagrad()),
    "l-bfgs": lambda problem, spec: learn(problem, spec, queue=exact(), update=lbfgs()),
    "decode exactly": lambda problem, spec: decode(problem, spec, exact()),
    "exact n-best": exact_nbest,
    "marginals": probabilities,
}


def calls_for(kind: str) -> dict[str, Callable[[Any, list[int]], Any]]:
    """Return the calls that a kind of problem supports."""
    return CALLS if is_factored(KINDS[kind]) else CALLS | EXACT


def outcome(kind: str, call: str, code: int) -> str:
    """Return what happens: "ok", "error: ..." or, in capitals, what must not happen."""
    try:
        found = np.asarray(calls_for(kind)[call](KINDS[kind], spec_for(code, ROOM)))
    except LasoError as error:
        return f"error: {type(error).__name__}: {error}"
    except AssertionError as error:
        return f"DIFFERENT: {error}"
    except BaseException as error:
        return f"FOREIGN: {type(error).__name__}: {error}"
    return "ok" if np.isfinite(found).all() else "NAN"


def in_child(work: Callable[[], str], seconds: float = SECONDS) -> str:
    """Return the text of some work in a process of its own, or how that process ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            os.write(writing, work().encode("utf-8", "replace")[:60_000])
        finally:
            os._exit(0)
    os.close(writing)
    text, deadline = b"", time.monotonic() + seconds
    import select

    while select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(reading, 1 << 16)
        text += part
        if not part:
            break
    else:
        os.kill(child, signal.SIGKILL)
        text = b"HANG"
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and text != b"HANG":
        return f"SIGNAL {os.WTERMSIG(status)}"
    return text.decode()


def campaign(
    kinds: Iterable[str], codes: Iterable[int], only: str | None = None
) -> Iterator[tuple[str, str, int, str]]:
    """Yield kind, call, code and outcome of each trial; of ``only`` one call if it is given."""
    codes = list(codes)
    for kind in kinds:
        for call in calls_for(kind) if only is None else [only]:
            outcome(kind, call, NORMAL)  # compiles, and loads, what the children need
            for code in codes:
                yield kind, call, code, in_child(lambda: outcome(kind, call, code))  # noqa: B023


def main() -> None:
    """Print what must not happen, and how many trials there were."""
    counts: dict[str, int] = {}
    for kind, call, code, text in campaign(sys.argv[1:] or KINDS, CODES):
        what = text.split(":")[0].split(" ")[0]
        counts[what] = counts.get(what, 0) + 1
        if what not in ("ok", "error"):
            sys.stdout.write(f"{kind} | {call} | {code} | {text[:300]}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{counts}\n")


if __name__ == "__main__":
    main()
