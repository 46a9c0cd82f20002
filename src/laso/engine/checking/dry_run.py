"""One input of a problem, run uncompiled along some paths: every result against its bound."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from laso.engine import layout as at
from laso.engine.checking.guarded_arrays import UNWRITTEN, first_unwritten, guarded
from laso.engine.kernels.promises import write_defaults
from laso.engine.layout import Array, Dataset, Input, Out
from laso.engine.native.method_checks import place_of, plain
from laso.engine.problem import NAMES, CompiledProblem, is_factored, is_narrowed
from laso.errors import BadProblem, span

PATHS = 3  # of each input
GOLD_PATHS = 2  # when learning: the gold path, and one that leaves it
OPERATORS = 24  # of a state, if it has more
DRAWN = 4096  # operators of a state to choose these from
LARGEST = 2**31 - 1  # of a limit
# The method that makes it necessary to set a limit.
NEEDED_BY = {
    at.STATE_SIZE: "initial",
    at.MAX_FEATURES: "features",
    at.BLOCKS: "block",
    at.FACTORS: "factors",
    at.VECTORS: "vectors",
}
FACTS = {at.PARTIAL_STATES: 1, at.FEATURES_OF_STATE: 1, at.FORM: len(at.Form) - 1}
PROMISE_MORE = "Correct the method, or let limits promise more."

Operator = tuple[int, int]


class Place(NamedTuple):
    """A state on a path; ``good`` if it is on the gold path."""

    state: Array
    key: int
    depth: int
    good: bool


class Trial:
    """The methods of a problem on input ``i``, over guarded arrays of the promised sizes.

    ``learning`` includes the gold path and the methods that know the gold output. ``limits`` are
    those of the input after ``run``; as in the engine, there is room for at least one of all.
    """

    def __init__(
        self,
        problem: type[CompiledProblem],
        dataset: Dataset,
        i: int,
        n_labels: int,
        *,
        learning: bool,
    ) -> None:
        self.problem, self.i, self.n_labels, self.learning = problem, i, n_labels, learning
        self.methods = {name: plain(getattr(problem, name)) for name in NAMES}
        begin, end = dataset.starts[i : i + 2]
        self.x = Input(
            guarded(dataset.items[begin:end], "x.items"),
            guarded(dataset.pool, "x.pool"),
            guarded(dataset.values, "x.values"),
            guarded(dataset.spec, "x.spec"),
            guarded(dataset.costs, "x.costs"),
            guarded(dataset.vectors[begin:end], "x.vectors"),
        )
        begin, end = dataset.output_starts[i : i + 2] if learning else (0, 0)
        self.y = guarded(dataset.outputs[begin:end], "y")
        self.keyed = problem.key is not CompiledProblem.key
        self.factored = is_factored(problem)
        self.narrowed = is_narrowed(problem)
        self.random = np.random.default_rng(i)
        self.limits = np.ones(len(at.Limit), np.int64)
        self.labels = self.form = self.n_factors = 0
        self.known_blocks: set[int] = set()
        self.named: dict[tuple[int, int], list[Any]] = {}

    def run(self, deadline: float, *, paths: int | None = None) -> None:
        """Follow some paths, the gold path first, until the thread's clock shows ``deadline``."""
        self._promise()
        for path in range(paths or (GOLD_PATHS if self.learning else PATHS)):
            self.follow(deadline, gold=self.learning and path == 0)

    def follow(self, deadline: float, *, gold: bool) -> None:
        """Follow one path, along y-good steps if ``gold``, else along any steps."""
        here = Place(self._state("initial", "state", self.x), 0, 0, self.learning)
        while not self._truth("is_goal", self.x, here.state):
            successors = []
            for successor in self.successors(here):
                successors.append(successor)
                if time.thread_time() > deadline:
                    return
            good = [successor for successor in successors if successor.good]
            choices = good if gold else successors
            if not choices:  # a dead end; or the output cannot be reached, as learning will tell
                return
            here = choices[self.random.integers(len(choices))]

    # ----------------------------------------------------------------------- one state

    def successors(self, here: Place) -> Iterator[Place]:
        """Yield the results of some steps from a state; those of y-good steps are among them."""
        groups = self._groups(here.state)
        own_features = [
            self._score(here.state, group)
            for group in self.random.permutation(groups)[:OPERATORS].tolist()
        ]
        self._check_own_features(own_features)
        n_allowed = 0
        for n, (group, label) in enumerate(self._operators(groups)):
            enough = n >= OPERATORS and n_allowed > 0
            if enough and not here.good:
                return
            step = (here.state, group, label)
            good = here.good and self._truth("is_good", self.x, self.y, *step)
            if enough and not good:
                continue
            key = self._integer("key", self.x, *step)
            if self._truth("allowed", self.x, *step):
                self._check_listed(*step)
                self._check_form(here, group, key)
                self._check_round(here, key)
                self._integer("signature", self.x, *step)
                if self.learning:
                    self._loss(step, here.good, good)
                yield Place(self._state("apply", "new", self.x, *step), key, here.depth + 1, good)
                n_allowed += 1

    def _operators(self, groups: list[int]) -> Iterator[Operator]:
        """Yield the operators in random order; some of them if they are very many."""
        total = len(groups) * self.labels
        if total <= DRAWN:
            numbers = self.random.permutation(total)
        else:
            numbers = self.random.integers(total, size=DRAWN)
        for number in numbers.tolist():
            yield groups[number // self.labels], number % self.labels

    def _check_listed(self, state: Array, group: int, label: int) -> None:
        """Check the labels that a group lists, among which an allowed one must be."""
        if not self.narrowed:
            return
        out = np.zeros(self.labels, np.int32)

        def write() -> int:
            buffer = guarded(out, "the choices", writable=True)
            n = self._integer("choices", self.x, state, group, buffer)
            self._within("choices", n, -1, self.labels, "there are not more labels than these")
            return n

        n, missing = first_unwritten([out], write)
        if n < 0:
            return
        if missing >= 0:
            raise self._stale("choices", f"out[{missing}]", n)
        listed = out[:n].tolist()
        for one in listed:
            self._within("choices", one, 0, self.labels - 1, "a listed label must exist")
        if label not in listed or listed != sorted(set(listed)):
            raise self._broken(
                "choices",
                f"{self.problem.__name__}.choices lists {listed} for group {group}, expected "
                f"ascending labels with all that are allowed, as {label} is",
                "List every label that allowed accepts, in ascending order.",
            )

    def _check_form(self, here: Place, group: int, key: int) -> None:
        """Check what FORM promises of a step with this key."""
        if self.form >= at.KEY_OF_GROUP:
            promise = "KEY_OF_GROUP: all labels of a group must have the same key"
            first = self._integer("key", self.x, here.state, group, 0)
            self._within("key", key, first, first, promise)
        if self.form == at.SEGMENTS:
            promise = "SEGMENTS: the key of a step is that of its state and its group"
            self._within("key", key, here.key + group, here.key + group, promise)
        if self.form == at.CHAIN:
            promise = "CHAIN: the only group is 0, and a step's block is the number of those before"
            block = self._integer("block", self.x, here.state, group)
            self._within("groups", group, 0, 0, promise)
            self._within("block", block, here.depth, here.depth, promise)

    def _check_round(self, here: Place, key: int) -> None:
        """Check the length of the path and the key after a step."""
        max_steps = int(self.limits[at.STEPS])
        if here.depth >= max_steps:
            raise self._broken(
                "limits",
                f"a path is longer than STEPS; {self.problem.__name__}.limits: found {max_steps}, "
                f"expected at least {here.depth + 1}",
                "Let limits promise more steps, or correct is_goal, allowed or apply.",
            )
        if self.keyed:
            promise = "the key must rise with every step and stay within STEPS"
            self._within("key", key, here.key + 1, max_steps, promise)

    def _check_own_features(self, found: list[list[Any]]) -> None:
        """Check what FEATURES_OF_STATE promises of the features of several groups of a state."""
        if self.limits[at.FEATURES_OF_STATE] and any(one != found[0] for one in found):
            raise self._broken(
                "features",
                f"FEATURES_OF_STATE: {self.problem.__name__}.features writes other features for "
                "another group",
                "Let limits promise less, or let features depend on x and state alone.",
            )

    def _score(self, state: Array, group: int) -> list[Any]:
        """Call what scoring the steps of a group calls; return the features in no block."""
        features = self._features_of(state, group)
        for i in count():
            other, label = self._pair("factors", self.x, state, group, i)
            if other < 0:
                break
            promise = "a factor's group must be below FACTORS, and its label must exist"
            last_factor = int(self.limits[at.FACTORS]) - 1
            self._within("factors", other, -1, last_factor, promise)
            self._within("factors", label, at.SAME_LABEL, self.n_labels - 1, promise)
            self._check_end("factors", i, at.MOST_FACTORS)
            self._features_of(state, other)
        return features

    def _features_of(self, state: Array, group: int) -> list[Any]:
        promise, least = "a block must be below BLOCKS", -1
        if self.form == at.SEGMENTS:
            promise, least = f"{promise}, and with SEGMENTS every step must have one", 0
        block = self._integer("block", self.x, state, group)
        self._within("block", block, least, int(self.limits[at.BLOCKS]) - 1, promise)
        self._block(block, state, group)
        written = self._features("features", self.x, state, group)
        if self.factored and block < 0:
            self._check_name(state, group, -1, written)
        return written

    def _block(self, root: int, state: Array, group: int) -> None:
        """Check a block and its sub-blocks, each once for an input."""
        pending = [root]
        while pending:
            block = pending.pop()
            if block < 0 or block in self.known_blocks:
                continue
            self.known_blocks.add(block)
            for i in count():
                below = self._integer("sub_block", self.x, block, i)
                promise = "a sub-block must have a smaller number than its block"
                self._within("sub_block", below, -1, block - 1, promise)
                if below < 0:
                    break
                self._check_end("sub_block", i, block)
                pending.append(below)
            written = self._features("block_features", self.x, block)
            if not self._n_vectors(block):
                self._check_name(state, group, block, written)

    def _n_vectors(self, block: int) -> int:
        """Check the dense vectors of a block, and return their number."""
        most = int(self.limits[at.VECTORS])
        for i in count():
            _, weights = self._pair("vectors", self.x, block, i)
            if weights < 0:
                return i
            promise = "the number of vectors of a block must stay within VECTORS"
            self._within("vectors", i + 1, 0, most, promise)
        return 0  # count has no end

    def _check_name(self, state: Array, group: int, block: int, written: list[Any]) -> None:
        """Check that bundles of equal names have equal features; factors have their own names."""
        name = self._integer("name", self.x, state, group, block)
        known = self.named.setdefault((name, -1 if block >= 0 else group), written)
        if name and known != written:
            what = f"block {block}" if block >= 0 else f"group {group}"
            raise self._broken(
                "name",
                f"{self.problem.__name__}.name returns {name} for {what} and for a bundle with "
                "other features",
                "Let name return equal numbers for equal features only, or 0.",
            )

    # ----------------------------------------------------------------------- calls that write

    def _promise(self) -> None:
        """Call ``limits``, and check that it sets what is needed."""
        out = np.zeros(len(at.Limit), np.int64)
        write_defaults(self.x, self.n_labels, out)
        self._call("limits", self.x, guarded(out, "out", writable=True))
        largest = {**dict.fromkeys(at.Limit, LARGEST), **FACTS, at.MAX_LABELS: self.n_labels}
        for limit, highest in largest.items():
            promise = f"limits writes upper bounds and facts ({limit.name} here)"
            self._within("limits", int(out[limit]), 0, highest, promise)
        for limit, method in NEEDED_BY.items():
            is_overridden = getattr(self.problem, method) is not getattr(CompiledProblem, method)
            if is_overridden and not self._sets(limit):
                raise self._broken(
                    "limits",
                    f"{self.problem.__name__}.limits does not set {limit.name}, which {method} "
                    "needs",
                    f"Write out[{limit.name}] = ... in limits, for every input.",
                )
        self.n_factors = int(out[at.FACTORS])
        out[: at.MAX_LABELS] = np.maximum(out[: at.MAX_LABELS], 1)
        self.limits, self.labels, self.form = out, int(out[at.MAX_LABELS]), int(out[at.FORM])

    def _sets(self, limit: at.Limit) -> bool:
        values = np.zeros(len(at.Limit), np.int64)

        def write() -> int:
            self._call("limits", self.x, guarded(values, "out", writable=True))
            return 1

        return first_unwritten([values[limit : limit + 1]], write)[1] < 0

    def _state(self, name: str, label: str, *arguments: Any) -> Array:
        """Return the state that ``initial`` or ``apply`` writes."""
        size = int(self.limits[at.STATE_SIZE])
        row = np.zeros(size, np.int32)

        def write() -> int:
            self._call(name, *arguments, guarded(row, label, writable=True))
            return size

        _, missing = first_unwritten([row], write)
        if missing >= 0 and not self.limits[at.PARTIAL_STATES]:
            raise self._broken(
                name,
                f"{self.problem.__name__}.{name} leaves {label}[{missing}] unwritten; limits "
                f"promises STATE_SIZE = {size}",
                f"Write all of {label}, since the engine reuses rows, or promise a smaller "
                "STATE_SIZE, or set PARTIAL_STATES if no method reads what was not written.",
            )
        left_out = np.flatnonzero(np.isin(row, UNWRITTEN)).tolist() if missing >= 0 else ()
        return guarded(row, "state", unwritten=left_out)

    def _groups(self, state: Array) -> list[int]:
        max_groups = int(self.limits[at.MAX_GROUPS])
        out = np.zeros(max_groups, np.int32)
        promise = "the number of groups must stay within MAX_GROUPS"

        def write() -> int:
            buffer = guarded(out, "the groups", writable=True)
            return self._count("groups", max_groups, self.x, state, buffer, promise=promise)

        n, missing = first_unwritten([out], write)
        if missing >= 0:
            raise self._stale("groups", f"out[{missing}]", n)
        groups: list[int] = out[:n].tolist()
        if self.factored:
            promise = "groups have the numbers from FACTORS on"
            for group in groups:
                self._within("groups", group, self.n_factors, LARGEST, promise)
        return groups

    def _features(self, name: str, *arguments: Any) -> list[Any]:
        max_features = int(self.limits[at.MAX_FEATURES])
        keys, values = np.zeros(max_features, np.int64), np.ones(max_features)
        promise = "the number of features must stay within MAX_FEATURES"

        def write() -> int:
            keys_out = guarded(keys, "out.keys", writable=True)
            out = Out(keys_out, guarded(values, "out.values", writable=True))
            return self._count(name, max_features, *arguments, out, promise=promise)

        buffers = [keys, values] if self.problem.weighted else [keys]
        n, missing = first_unwritten(buffers, write)
        if missing >= 0:
            what = f"out.keys[{missing}]" if len(buffers) == 1 else f"key or value {missing}"
            raise self._stale(name, what, n)
        if self.problem.weighted and not np.isfinite(values[:n]).all():
            where = int(np.flatnonzero(~np.isfinite(values[:n]))[0])
            raise self._broken(
                name,
                f"{self.problem.__name__}.{name} writes the value {values[where]} of feature "
                f"{where}, expected a finite number",
                "Correct the value, for example a division by zero.",
            )
        return [keys[:n].tolist(), values[:n].tolist()]

    def _loss(self, step: tuple[Array, int, int], was_good: bool, good: bool) -> None:
        loss = self._call("loss", self.x, self.y, *step, was_good, good)
        if not isinstance(loss, int | float | np.number | np.bool_):
            raise self._wrong_type("loss", loss, "a number")
        if not math.isfinite(loss):
            self._within("loss", float(loss), 0, LARGEST, "a loss must be finite")

    # ----------------------------------------------------------------------- calls that return

    def _call(self, name: str, *arguments: Any) -> Any:
        return self.methods[name](*arguments)

    def _pair(self, name: str, *arguments: Any) -> tuple[int, int]:
        pair = self._call(name, *arguments)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise self._wrong_type(name, pair, "two integers")
        first, second = (self._as_integer(name, one) for one in pair)
        return first, second

    def _integer(self, name: str, *arguments: Any) -> int:
        return self._as_integer(name, self._call(name, *arguments))

    def _as_integer(self, name: str, found: Any) -> int:
        if not isinstance(found, int | np.integer | np.bool_):
            raise self._wrong_type(name, found, "an integer")
        return int(found)

    def _truth(self, name: str, *arguments: Any) -> bool:
        truth = self._call(name, *arguments)
        if not isinstance(truth, int | float | np.number | np.bool_):
            raise self._wrong_type(name, truth, "True or False")
        return bool(truth)

    def _count(self, name: str, most: int, *arguments: Any, promise: str) -> int:
        number = self._integer(name, *arguments)
        self._within(name, number, 0, most, promise)
        return number

    # ----------------------------------------------------------------------- errors

    def _within(self, name: str, found: float, low: int, high: int, promise: str) -> None:
        if not low <= found <= high:
            raise self._broken(
                name,
                f"{promise}; {self.problem.__name__}.{name}: found {found}, "
                f"expected {span(low, high)}",
                PROMISE_MORE,
            )

    def _check_end(self, name: str, i: int, most: int) -> None:
        if i >= most:
            raise self._broken(
                name,
                f"{self.problem.__name__}.{name} has not returned -1 after {i} calls",
                "Return -1 when there are no more.",
            )

    def _stale(self, name: str, what: str, n: int) -> BadProblem:
        return self._broken(
            name,
            f"{self.problem.__name__}.{name} returns {n} but leaves {what} unwritten",
            "Return the number of entries that were written, counted from 0 without gaps.",
        )

    def _wrong_type(self, name: str, found: Any, expected: str) -> BadProblem:
        kind = "None" if found is None else f"{found!r} ({type(found).__name__})"
        return self._broken(
            name,
            f"{self.problem.__name__}.{name} returns {kind}, expected {expected}",
            f"End every path through it with a return of {expected}"
            + (": is a return missing?" if found is None else "."),
        )

    def _broken(self, name: str, what: str, remedy: str) -> BadProblem:
        return BadProblem(
            f"input {self.i + 1}: {what}\n  {place_of(self.methods[name])}\n  {remedy}"
        )
