"""Drive the lattice: exact decoding, n-best lists, marginals, exact learning and the likelihood.

    machine = ExactMachine(Tagging)
    training = machine.fit(corpus, Training(machine.new_table(n_labels)), Plan(epochs=10))
    steps, ends, scores = machine.decode(test, all_of(test), training.best)

``fit_likelihood_sgd`` climbs the conditional likelihood example by example instead, and
``fit_likelihood_lbfgs`` goes to its maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from laso.engine import lattice as la
from laso.engine import layout as at
from laso.engine.compile import Kernels, compiled
from laso.engine.lattice import Ascent, Gradient, Lattice, Paths, Shares
from laso.engine.layout import Array, Corpus, Options, Run, Table
from laso.engine.machine import Machine, averaged, grown_table, new_table
from laso.engine.options import options_for, own_key
from laso.engine.passes import Plan, Report, Training, train
from laso.engine.problem import CompiledProblem
from laso.errors import LasoError, SearchFailed, Unreachable
from laso.learn import standard
from laso.queues import beam
from laso.training import Rule
from laso.updates import perceptron

SUPPORTS = ("rows", "pairs", "lattice")
Score = Callable[[Table], float]
Progress = Callable[[Report], None]


@dataclass(frozen=True, kw_only=True)
class Climb:
    """How ``fit_likelihood_sgd`` climbs: ``adagrad()`` or ``sgd()``."""

    adaptive: bool
    rate: float
    variance: float
    batch: int
    average: bool
    first: float = 1.0

    def __post_init__(self) -> None:
        if not (0.0 < self.rate < math.inf and self.variance > 0.0 and self.first > 0.0):
            raise ValueError(f"rate, variance and first must be positive, found {self}")
        if self.batch < 1:
            raise ValueError(f"a batch has at least one example, found batch={self.batch}")

    def prior(self, examples: int) -> float:
        """How hard the prior pulls in one step."""
        return 1.0 / (self.variance * max(1, examples))


def adagrad(
    *,
    rate: float = 0.5,
    variance: float = 10.0,
    batch: int = 1,
    average: bool = False,
    first: float = 1.0,
) -> Climb:
    """AdaGrad: each weight has a rate of its own, rate / sqrt(first + its squared slopes so far).

    ``variance`` is that of the Gaussian prior on each weight (``math.inf``: none).
    """
    return Climb(
        adaptive=True, rate=rate, variance=variance, batch=batch, average=average, first=first
    )


def sgd(
    *, rate: float = 0.1, variance: float = 10.0, batch: int = 1, average: bool = False
) -> Climb:
    """Stochastic gradient ascent, step t at rate / (1 + rate * t / (variance * examples))."""
    return Climb(adaptive=False, rate=rate, variance=variance, batch=batch, average=average)


@dataclass(frozen=True, kw_only=True)
class Lbfgs:
    """How ``fit_likelihood_lbfgs`` goes to the maximum.

    ``support`` says which weights there are: whole ``"rows"`` of the features seen on good paths,
    only the ``"pairs"`` of feature and label seen there, or the rows of all features on the
    ``"lattice"``. ``tolerance`` is for the largest slope of the objective per example.
    """

    variance: float = 10.0
    support: str = "rows"
    iterations: int = 200
    tolerance: float = 1e-5
    memory: int = 6
    threads: int = 1

    def __post_init__(self) -> None:
        if self.support not in SUPPORTS:
            raise ValueError(f"support must be one of {SUPPORTS}, found {self.support!r}")
        if not self.variance > 0.0:
            raise ValueError(f"the variance must be positive, found {self.variance}")


@dataclass(frozen=True)
class Fitted:
    """What ``fit_likelihood_lbfgs`` found."""

    table: Table
    objective: float  # log-likelihood with prior, per example
    slope: float  # its largest derivative
    iterations: int
    converged: bool
    interrupted: bool


@dataclass(frozen=True)
class NBest:
    """The best paths of each input, best first."""

    steps: Array  # (group, label), end to end
    ends: Array  # where each path ends
    scores: Array  # of each path
    counts: Array  # the number of paths of each input

    def of(self, i: int) -> list[tuple[float, list[tuple[int, int]]]]:
        """Score and operators of the paths of the i-th input asked for."""
        first = int(self.counts[:i].sum())
        found = []
        for path in range(first, first + int(self.counts[i])):
            begin = int(self.ends[path - 1]) if path else 0
            steps = [(int(g), int(label)) for g, label in self.steps[begin : self.ends[path]]]
            found.append((float(self.scores[path]), steps))
        return found


@dataclass(frozen=True)
class Marginals:
    """The probability of every step of every input: one entry for each edge of the lattices."""

    start: Array  # the key before the step
    key: Array  # the key after it
    group: Array
    label: Array
    probability: Array
    ends: Array  # where the edges of each input end
    log_z: Array  # of each input


@dataclass
class Space:
    """What the kernels work in. The table is the newest one, should a call be interrupted."""

    table: Table
    run: Run
    lattice: Lattice
    gradient: Gradient
    squares: Array
    clocks: Array
    clock: Array
    seen: int = 0


@dataclass(frozen=True)
class ExactMachine:
    """Exact search for one problem, and learning with it.

    ``rule`` is the update after an error (perceptron, ALMA, passive-aggressive). It compares the
    best good path with the best bad one, or, if ``expected``, the expectation over good paths with
    that over the whole lattice (the paper's LaSO with an infinite beam).
    """

    problem: type[CompiledProblem]
    rule: Rule = field(default_factory=perceptron)
    expected: bool = False

    def __post_init__(self) -> None:
        if self.problem.signature is CompiledProblem.signature:
            raise ValueError(
                f"{self.problem.__name__} has no signature: exact search must know which states "
                "have the same future"
            )

    @property
    def kernels(self) -> Kernels:
        """The entry points."""
        return compiled(self.problem, exact=True)

    @property
    def options(self) -> Options:
        """Queue, update and strategy as numbers."""
        keyed = self.problem.key is not CompiledProblem.key
        queue = beam(1, key=own_key) if keyed else beam(1)
        options = options_for(self.problem, queue, self.rule, standard)
        return options._replace(strategy=la.EXPECTED) if self.expected else options

    def new_table(self, n_labels: int, *, dtype: Any = np.float32, hash_bits: int = 0) -> Table:
        """An empty weight table to learn with this machine's rule."""
        margin = self.options.margin
        return new_table(n_labels, margin=margin, dtype=dtype, hash_bits=hash_bits)

    def new_run(self, corpus: Corpus, order: Array, table: Table, *, lists: int = 2) -> Space:
        """Working space for the largest of the inputs named."""
        run = Machine(self.problem, self.options).new_run(corpus, order, table)
        return Space(
            table,
            run,
            _new_lattice(run, lists, 1 << 10, 1 << 13),
            _new_gradient(run, 1 << 10),
            np.zeros((0, 0), table.v.dtype),
            np.zeros(0),
            np.zeros(1),
        )

    def decode(
        self, corpus: Corpus, order: Array, table: Table, *, threads: int = 1
    ) -> tuple[Array, Array, Array]:
        """The operators (group, label) of the best paths, where each ends, and the scores."""
        found = self.nbest(corpus, order, table, 1, threads=threads)
        return found.steps, found.ends, found.scores

    def nbest(
        self, corpus: Corpus, order: Array, table: Table, n: int, *, threads: int = 1
    ) -> NBest:
        """The n best paths of each input named, or all where there are fewer."""
        if n < 1:
            raise ValueError(f"n must be at least 1, found {n}")
        parts = _parts(order, threads)
        found = _mapped(lambda part: self._nbest(corpus, part, table, n), parts)
        shifts = np.cumsum([0, *(len(one.steps) for one in found)])
        return NBest(
            np.concatenate([one.steps for one in found]),
            np.concatenate([one.ends + s for one, s in zip(found, shifts[:-1], strict=True)]),
            np.concatenate([one.scores for one in found]),
            np.concatenate([one.counts for one in found]),
        )

    def _nbest(self, corpus: Corpus, order: Array, table: Table, n: int) -> NBest:
        space = self.new_run(corpus, order, table, lists=max(2, n))
        paths = Paths(
            np.zeros((n * int(_sizes(corpus, order).sum()) + 16, 2), np.int32),
            np.zeros(n * len(order), np.int64),
            np.zeros(n * len(order)),
            np.zeros(len(order), np.int64),
            np.zeros((n, 2), np.int64),
            np.zeros(3, np.int64),
        )

        def grow() -> None:
            nonlocal paths
            paths = paths._replace(steps=_longer(paths.steps, 2 * len(paths.steps)))

        self._drive("best_many", corpus, order, space, lambda _: paths, grow)
        n_steps, n_paths, _ = paths.used
        return NBest(
            paths.steps[:n_steps], paths.ends[:n_paths], paths.scores[:n_paths], paths.counts
        )

    def marginals(self, corpus: Corpus, order: Array, table: Table) -> Marginals:
        """The probability of every step, paths weighted by exp(their score): forward-backward."""
        space = self.new_run(corpus, order, table)
        shares = Shares(
            np.zeros((1 << 10, 4), np.int32),
            np.zeros(1 << 10),
            np.zeros(len(order), np.int64),
            np.zeros(len(order)),
            np.zeros(3, np.int64),
        )

        def grow() -> None:
            nonlocal shares
            n = 2 * len(shares.shares)
            shares = shares._replace(
                edges=_longer(shares.edges, n), shares=_longer(shares.shares, n)
            )

        self._drive("marginals_many", corpus, order, space, lambda _: shares, grow)
        used = int(shares.used[la.STEPS_USED])
        start, key, group, label = shares.edges[:used].T
        probability = shares.shares[:used]
        return Marginals(start, key, group, label, probability, shares.ends, shares.logs)

    def label_probabilities(self, corpus: Corpus, order: Array, table: Table) -> Array:
        """For taggers: the probability of each label at each item of the inputs, end to end.

        The key of the problem must be the number of items labelled.
        """
        found = self.marginals(corpus, order, table)
        offsets = np.cumsum(_sizes(corpus, order)) - _sizes(corpus, order)
        counts = np.diff(found.ends, prepend=0)
        items = np.repeat(offsets, counts) + found.start
        result = np.zeros((int(_sizes(corpus, order).sum()), table.v.shape[1]))
        np.add.at(result, (items, found.label), found.probability)
        return result

    def log_likelihood(self, corpus: Corpus, order: Array, table: Table) -> Array:
        """log p(y | x) of each example named, all good paths together."""
        space = self.new_run(corpus, order, table)
        return self._likelihood(corpus, order, space, la.VALUE)

    def slope(self, corpus: Corpus, order: Array, table: Table) -> tuple[Array, Array]:
        """log p(y | x) of each example, and the gradient of their sum by the rows of the table."""
        space = self.new_run(corpus, order, table)
        space.gradient = _fixed_gradient(space.run, int(table.ints[at.ROWS]))
        try:
            table.mark[:] = np.arange(len(table.mark))
            logs = self._likelihood(corpus, order, space, la.FIXED)
        finally:
            table.mark.fill(-1)
        return logs, space.gradient.values

    def learn(
        self, corpus: Corpus, order: Array, table: Table, space: Space
    ) -> tuple[Table, Space, int]:
        """Learn from the examples named, in turn; the table as grown, and the errors."""
        space.table = table
        wrong = self._drive("learn_exact_many", corpus, order, space, lambda _: space.gradient)
        return space.table, space, wrong

    def fit(
        self,
        corpus: Corpus,
        training: Training,
        plan: Plan,
        *,
        score: Score | None = None,
        progress: Progress | None = None,
    ) -> Training:
        """``passes.train`` with this machine: learn by its rule to the end of the plan."""
        return _trained(_Learner(self), corpus, training, plan, score=score, progress=progress)

    def fit_likelihood_sgd(
        self,
        corpus: Corpus,
        training: Training,
        plan: Plan,
        climb: Climb | None = None,
        *,
        score: Score | None = None,
        progress: Progress | None = None,
    ) -> Training:
        """``passes.train`` up the conditional likelihood: a conditional random field.

        An example counts as an error while its output has less than half of the probability. What
        AdaGrad knows of past slopes is not kept: a training that is resumed gathers it anew.
        """
        learner = _Climber(self, climb or adagrad(), len(corpus.starts) - 1)
        return _trained(learner, corpus, training, plan, score=score, progress=progress)

    def fit_likelihood_lbfgs(
        self,
        corpus: Corpus,
        order: Array,
        table: Table,
        settings: Lbfgs | None = None,
        *,
        progress: Progress | None = None,
    ) -> Fitted:
        """To the maximum of the conditional likelihood with a Gaussian prior, from ``table`` on.

        Nothing in it is random. Ctrl-C ends it with the best weights so far.
        """
        from scipy.optimize import minimize

        settings = settings or Lbfgs()
        objective = _Objective(self, corpus, order, table, settings)
        best, iteration, interrupted = objective.start, 0, False

        def after(theta: Array) -> None:
            nonlocal best, iteration
            best = theta.copy()
            iteration += 1
            if progress is not None:
                progress(objective.report(iteration))

        options = {
            "maxiter": settings.iterations,
            "maxfun": 10 * settings.iterations,
            "maxcor": settings.memory,
            "gtol": settings.tolerance,
            "ftol": 1e-13,
        }
        try:
            minimize(objective, best, jac=True, method="L-BFGS-B", callback=after, options=options)
        except KeyboardInterrupt:
            interrupted = True
        value, slopes = objective(best)
        slope = float(np.abs(slopes).max(initial=0.0))
        converged = slope <= settings.tolerance
        return Fitted(objective.finished(), -value, slope, iteration, converged, interrupted)

    def _likelihood(
        self,
        corpus: Corpus,
        order: Array,
        space: Space,
        mode: int,
        climb: Climb | None = None,
        examples: int = 1,
    ) -> Array:
        """Call the kernel of the likelihood: log p(y | x) of each example."""
        climb = climb or adagrad()
        logs = np.zeros(len(order))

        def ascent(done: int) -> Ascent:
            return Ascent(
                mode,
                int(climb.adaptive),
                int(climb.average),
                climb.batch,
                climb.rate,
                climb.prior(examples),
                climb.first,
                space.gradient,
                space.squares,
                space.clocks,
                space.clock,
                logs[done:],
            )

        self._drive("likelihood_many", corpus, order, space, ascent)
        return logs

    def _drive(
        self,
        name: str,
        corpus: Corpus,
        order: Array,
        space: Space,
        last: Callable[[int], Any],
        more: Callable[[], None] | None = None,
    ) -> int:
        """Call an entry point until all inputs are done, growing what it asks for; the errors.

        ``last`` makes the last argument, given how many inputs are done; ``more`` makes room for
        results.
        """
        options = self.options
        done = wrong = 0
        while done < len(order):
            n, *errors, status = self.kernels(
                name,
                corpus,
                order[done:],
                space.table,
                space.run,
                options,
                space.lattice,
                last(done),
            )
            done += n
            wrong += sum(errors)
            if status == at.MORE_ENTRIES and more is not None:
                more()
            elif status != at.DONE:
                _grow(space, status, f"{self.problem.__name__}, input {int(order[done])}")
        return wrong


# --------------------------------------------------------------------------- passes


class _Learner:
    """What ``passes.train`` takes for a machine; it remembers the working space."""

    def __init__(self, machine: ExactMachine) -> None:
        self.machine = machine
        self.space: Space | None = None

    def new_run(self, corpus: Corpus, order: Array, table: Table) -> Space:
        self.space = self.machine.new_run(corpus, order, table)
        table.mark.fill(-1)  # an interruption may have left something
        return self.space

    def learn(
        self, corpus: Corpus, order: Array, table: Table, space: Space
    ) -> tuple[Table, Space, int]:
        return self.machine.learn(corpus, order, table, space)

    def settle(self, space: Space) -> None:
        """Bring all weights up to date."""


class _Climber(_Learner):
    """The same up the likelihood of a corpus of so many examples."""

    def __init__(self, machine: ExactMachine, climb: Climb, examples: int) -> None:
        super().__init__(machine)
        self.climb, self.examples = climb, examples

    def new_run(self, corpus: Corpus, order: Array, table: Table) -> Space:
        space = super().new_run(corpus, order, table)
        if not self.climb.average:
            _forget_average(table)
        space.squares = np.zeros(table.v.shape if self.climb.adaptive else (0, 0), table.v.dtype)
        space.clocks = np.zeros(len(table.v))
        return space

    def learn(
        self, corpus: Corpus, order: Array, table: Table, space: Space
    ) -> tuple[Table, Space, int]:
        space.table = table
        logs = self.machine._likelihood(corpus, order, space, la.STEP, self.climb, self.examples)
        space.seen += len(order)
        if space.seen % self.examples == 0:
            self.settle(space)
        return space.table, space, int((logs < math.log(0.5)).sum())

    def settle(self, space: Space) -> None:
        """Let the prior pull at the rows that have missed steps, as lattice.ascend does."""
        table, climb = space.table, self.climb
        rows = int(table.ints[at.ROWS])
        behind = np.flatnonzero(space.clocks[:rows] < space.clock[0])
        for some in np.array_split(behind, 1 + len(behind) // 10_000):
            missed = (space.clock[0] - space.clocks[some]) * climb.prior(self.examples)
            size = np.sqrt(climb.first + space.squares[some]) if climb.adaptive else 1.0
            before = table.v[some]
            table.v[some] = before / (1.0 + missed[:, None] / size)
            table.u[some] += table.reals[at.SCALES] * (table.v[some] - before)
        space.clocks[:rows] = space.clock[0]


def _trained(
    learner: _Learner,
    corpus: Corpus,
    training: Training,
    plan: Plan,
    *,
    score: Score | None,
    progress: Progress | None,
) -> Training:
    machine = cast(Machine, learner)  # train asks for new_run and learn only
    training = train(machine, corpus, training, plan, score=score, progress=progress)
    space = learner.space
    if space is not None:
        # An interruption may come after a table has grown and before it was returned.
        training.table = space.table
        space.table.mark.fill(-1)
        learner.settle(space)
        _measure(space.table)
        if training.interrupted and (score is None or not training.scores):
            training.best = averaged(space.table)
    return training


# --------------------------------------------------------------------------- L-BFGS


class _Objective:
    """The likelihood with its prior, per example and negated, as a function of chosen weights."""

    def __init__(
        self, machine: ExactMachine, corpus: Corpus, order: Array, table: Table, settings: Lbfgs
    ) -> None:
        self.machine, self.corpus, self.settings = machine, corpus, settings
        self.dtype, self.examples = table.v.dtype, max(1, len(order))
        self.table, self.chosen = self._supported(order, table)
        rows = int(self.table.ints[at.ROWS])
        self.weights = self.table.v[:rows].reshape(-1)
        self.start = self.weights[self.chosen]
        self.parts = _parts(order, settings.threads)
        self.spaces = [machine.new_run(corpus, part, self.table) for part in self.parts]
        for space in self.spaces:
            space.gradient = _fixed_gradient(space.run, rows)
        self.table.mark[:] = np.arange(len(self.table.mark))
        self.evaluations, self.value, self.wrong = 0, 0.0, 0.0

    def _supported(self, order: Array, table: Table) -> tuple[Table, Array]:
        """A table of float64 with rows for all features wanted, and which weights are variable."""
        rows, support = int(table.ints[at.ROWS]), self.settings.support
        known = table.v[:rows] * table.reals[at.SCALE]
        work = table._replace(
            slots=table.slots.copy(),
            v=np.zeros(table.v.shape),
            u=np.zeros(table.v.shape),
            mark=np.full(len(table.v), -1, np.int64),
            ints=np.array([rows, 1, 0, table.ints[at.BITS]], np.int64),
            reals=np.array([1.0, 0.0, 0.0, table.reals[at.MARGIN]]),
        )
        space = self.machine.new_run(self.corpus, order, work)
        mode = la.ALL_ROWS if support == "lattice" else la.GOOD_ROWS
        self.machine._likelihood(self.corpus, order, space, mode)
        work, used = space.table, int(space.gradient.ints[la.SLOTS])
        work.v[:rows] = known
        chosen = np.ones((int(work.ints[at.ROWS]), work.v.shape[1]), bool)
        if support == "pairs":
            chosen[:] = False
            chosen[space.gradient.rows[:used]] = space.gradient.values[:used] != 0.0
            chosen[:rows] |= known != 0.0
        return work, np.flatnonzero(chosen)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        self.weights[self.chosen] = theta
        logs = np.concatenate(_mapped(self._part, list(range(len(self.parts)))))
        slopes = np.sum([space.gradient.values for space in self.spaces], axis=0)
        self.evaluations += 1
        self.wrong = float(np.mean(logs < math.log(0.5))) if len(logs) else 0.0
        variance, n = self.settings.variance, self.examples
        self.value = (logs.sum() - theta @ theta / (2.0 * variance)) / n
        return -self.value, (theta / variance - slopes.reshape(-1)[self.chosen]) / n

    def _part(self, number: int) -> Array:
        space = self.spaces[number]
        space.gradient.values.fill(0.0)
        return self.machine._likelihood(self.corpus, self.parts[number], space, la.FIXED)

    def report(self, iteration: int) -> Report:
        n = sum(map(len, self.parts))
        done = self.evaluations
        return Report(iteration, self.settings.iterations, n, n, done, self.wrong, score=self.value)

    def finished(self) -> Table:
        """The table with the weights of the last call."""
        self.table.mark.fill(-1)
        _measure(self.table)
        v, u = self.table.v.astype(self.dtype), self.table.u.astype(self.dtype)
        return self.table._replace(v=v, u=u)


# --------------------------------------------------------------------------- arrays


def _new_lattice(run: Run, lists: int, nodes: int, edges: int) -> Lattice:
    slots = 1 << (2 * nodes - 1).bit_length()
    return Lattice(
        np.zeros((nodes, run.states.shape[1]), np.int32),
        np.zeros((nodes, 12), np.int64),
        np.zeros((nodes, 4)),
        np.zeros((nodes, lists)),
        np.zeros((nodes, lists), np.int64),
        np.zeros((edges, 5), np.int32),
        np.zeros(edges),
        np.zeros(edges),
        np.zeros(edges),
        np.zeros(slots, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros((len(run.lists), 4), np.int64),
        np.zeros(8, np.int64),
    )


def _new_gradient(run: Run, slots: int) -> Gradient:
    cells, labels = run.cells.shape
    return Gradient(
        np.zeros(slots, np.int64),
        np.zeros((slots, labels)),
        np.zeros((cells, labels)),
        np.full(cells, -1, np.int64),
        np.zeros(cells, np.int64),
        np.zeros(2, np.int64),
    )


def _fixed_gradient(run: Run, rows: int) -> Gradient:
    """A gradient with a place for every row of the table, in their order."""
    gradient = _new_gradient(run, rows)
    gradient.rows[:] = np.arange(rows)
    return gradient


def _grow(space: Space, status: int, what: str) -> None:
    """Make room for what a kernel lacks, or raise the error that it stands for."""
    lattice, gradient = space.lattice, space.gradient
    if status in (at.MORE_NODES, la.MORE_EDGES):
        nodes, edges = len(lattice.nodes), len(lattice.edges)
        if status == at.MORE_NODES:
            nodes *= 2
        else:
            edges *= 2
        space.lattice = _new_lattice(space.run, lattice.values.shape[1], nodes, edges)
    elif status == la.MORE_SLOTS:
        n = 2 * len(gradient.rows)
        space.gradient = gradient._replace(
            rows=_longer(gradient.rows, n), values=_longer(gradient.values, n)
        )
    elif status == at.MORE_ENTRIES:
        n = 2 * len(space.run.delta)
        space.run = space.run._replace(delta=np.zeros((n, 3), np.int64), values=np.zeros(n))
    elif status == at.MORE_ROWS:
        # The gradient has room already for as many more rows as the table lacks.
        space.table = table = grown_table(space.table, len(gradient.rows))
        used = int(gradient.ints[la.SLOTS])
        table.mark[gradient.rows[:used]] = np.arange(used)
        if len(space.squares):
            space.squares = _longer(space.squares, len(table.v))
        if len(space.clocks):
            space.clocks = _longer(space.clocks, len(table.v))
    else:
        raise _failure(status, what)


def _failure(status: int, what: str) -> Exception:
    if status == at.UNREACHABLE:
        return Unreachable(f"{what}: no allowed path leads to its output")
    if status == la.BAD_KEY:
        return LasoError(f"{what}: the key must rise with every step and stay within STEPS")
    return SearchFailed(f"{what}: no path leads to a goal")


def _longer(array: Array, length: int) -> Array:
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _forget_average(table: Table) -> None:
    """Go on from the present weights alone."""
    table.v[:] *= table.v.dtype.type(table.reals[at.SCALE])
    table.u.fill(0.0)
    table.reals[at.SCALE], table.reals[at.SCALES] = 1.0, 0.0
    table.ints[at.TICKS] = 0


def _measure(table: Table) -> None:
    """Note the squared length of the weights, which learning by ALMA goes on from."""
    weights = table.v[: int(table.ints[at.ROWS])].astype(np.float64)
    table.reals[at.SQUARE] = table.reals[at.SCALE] ** 2 * np.vdot(weights, weights)


def _sizes(corpus: Corpus, order: Array) -> Array:
    return corpus.starts[order + 1] - corpus.starts[order] if len(order) else order


def _parts(order: Array, threads: int) -> list[Array]:
    """An order cut into one part for each thread, at least one."""
    parts = [part for part in np.array_split(order, max(1, threads)) if len(part)]
    return parts or [order]


def _mapped(function: Callable[[Any], Any], parts: list[Any]) -> list[Any]:
    if len(parts) == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(function, parts))
