"""How an estimator learns: examples, epochs, checkpoints, and going on later."""

from __future__ import annotations

import math
import os
import random
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from laso.engine import layout as at
from laso.engine.costs import with_costs
from laso.engine.dropout import WithDropout
from laso.engine.epochs import (
    CORRECTING,
    ENDED,
    LEARNING,
    After,
    InTurn,
    Plan,
    Training,
    shorten_past,
    start_at_average,
)
from laso.engine.epochs import train as train_passes
from laso.engine.lattice.exact import ExactMachine
from laso.engine.lattice.objective import in_threads
from laso.engine.layout import Dataset, WeightTable
from laso.engine.machine import Machine, all_of, new_table
from laso.engine.parallel.gradients import gradients_on
from laso.engine.parallel.shards import MIXINGS, ShardLearner
from laso.engine.parallel.workers import Workers, in_shards
from laso.engine.step_length import mean_step_length
from laso.engine.weights.compact import compact_table
from laso.engine.weights.row_layouts import LARGEST_WEIGHT, densified, largest_of, n_weights
from laso.errors import BadData, BadFeature, SearchFailed, Unreachable, WorkerLost, quoted
from laso.estimators.learning.class_weights import BALANCED, class_weights
from laso.estimators.learning.learned_vectors import (
    KeptEncoder,
    Words,
    reencoded,
    with_encoder,
    words_to_learn,
)
from laso.estimators.learning.tables import check_overflow, moved, wider
from laso.features.encoder import take_inputs
from laso.tasks.base import Task
from laso.training import Progress
from laso.updates import Lbfgs

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor
    from laso.estimators.search import SearchEstimator

Model = TypeVar("Model", bound="SearchEstimator")

CORRECTIONS = 3  # calls of ``partial_fit`` that weigh as much as all that ``fit`` has learned


@dataclass
class Checkpoint:
    """Where a run is saved as it goes on, after an epoch, at most once in ``seconds``.

    A run that was killed goes on from there by ``load`` and ``resume``.

    Examples
    --------
    >>> import tempfile
    >>> from laso import Checkpoint, Tagger
    >>> X, y = [["a", "dog"]], [["DET", "NOUN"]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Tagger(epochs=2).fit(X, y, checkpoint=Checkpoint(f"{folder}/run", seconds=0))
    ...     Tagger.load(f"{folder}/run").resume(X, y, epochs=3).predict(X)
    [['DET', 'NOUN']]
    """

    path: str | os.PathLike[str]
    seconds: float = 30.0
    metadata: dict[str, Any] = field(default_factory=dict)  # to be saved with it
    saved: float = field(default_factory=time.monotonic)  # when it was last saved

    def save(self, model: SearchEstimator, plan: Plan, training: Training) -> None:
        """Save the run; if that is impossible, warn and try again after the next epoch."""
        try:
            best = plan.kept(training.table) if training.best is None else training.best
            model.weights_ = compact_table(best)
            report(model, training)
            model.metadata_ = {**model.metadata_, **self.metadata}
            model.save(self.path, training=True)
        except (OSError, MemoryError) as error:
            self.saved = -math.inf
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            warnings.warn(
                f"{os.fspath(self.path)}: the checkpoint could not be saved ({reason}); training "
                "goes on and tries again after the next epoch",
                RuntimeWarning,
                stacklevel=2,
            )

    def is_due(self) -> bool:
        """Whether enough time has passed; if so, it begins again."""
        now = time.monotonic()
        due = now - self.saved >= self.seconds
        if due:
            self.saved = now
        return due


class Size(NamedTuple):
    """The size of a model in memory."""

    features: int  # features that have a row of weights
    weights: int  # weights that are not zero
    bytes: int


def size_of(table: WeightTable) -> Size:
    """The size of a weight table."""
    used = table.slots.nbytes + table.v.nbytes + table.heads.nbytes
    return Size(int(table.ints[at.ROWS]), n_weights(table), used)


class Clock:
    """Takes the time of named stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Take the time of one stage."""
        started = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - started


@dataclass(frozen=True)
class Examples:
    """Encoded examples, and others with gold outputs to score each epoch on."""

    train: Dataset
    held_out: Dataset | None = None
    inputs: Any = None  # of the held-out examples
    gold: Sequence[Any] = ()
    words: Words | None = None  # of those to learn from, if the encoder learns
    held_words: Words = ()  # of the held-out examples then

    @property
    def fingerprint(self) -> int:
        """Tells whether two sets of examples are the same."""
        crc = 0
        train = self.train
        signs = np.packbits(train.vectors > 0)  # whatever their scale
        if self.words is not None:  # learning changes them
            signs = signs[:0]
        for array in (train.starts, train.items, train.outputs, train.pool, signs):
            crc = zlib.crc32(np.ascontiguousarray(array).data, crc)
        return crc


def with_held_out(model: SearchEstimator, dataset: Dataset, inputs: Any, gold: Any) -> Examples:
    """Hold out a part of the examples, drawn by the seed."""
    assert model.held_out is not None
    n = len(dataset.starts) - 1
    chosen = held_out(n, model.held_out, model.seed)
    rest, words = np.delete(np.arange(n), chosen), words_to_learn(model, inputs)
    return Examples(
        take_inputs(dataset, rest),
        take_inputs(dataset, np.array(chosen)),
        model.task_.take(inputs, chosen),
        [gold[i] for i in chosen],
        None if words is None else [words[i] for i in rest.tolist()],
        () if words is None else [words[i] for i in chosen],
    )


def held_out(n: int, fraction: float, seed: int | None) -> list[int]:
    """Which of n examples are held out: a part drawn by the seed, in their order."""
    k = max(1, round(n * fraction))
    if k >= n:
        raise ValueError(f"held_out={fraction} leaves none of {n} examples to learn from")
    return sorted(random.Random(f"{seed}/held out").sample(range(n), k))


# --------------------------------------------------------------------------- beginning, going on


def begin(model: SearchEstimator, task: Task) -> None:
    """Start from empty weights, for the labels that the task has observed."""
    labels = task.classes
    check_text(labels)
    model.task_ = task
    model.metadata_ = {}
    counts = getattr(task, "label_counts_", ())
    if model.class_weight is None:
        model.class_weight_ = model.default_class_weight(task, counts)
    else:
        model.class_weight_ = class_weights(model.class_weight, labels, counts)
    model.classes_ = np.array(labels, dtype=object)
    engine = model.engine_for(task, task.problem)
    table = new_table(
        len(labels),
        margin=engine.options.margin,
        dtype=model.dtype,
        hash_bits=model.hash_bits,
        sparse=model.has_sparse_rows(task),
    )
    model.training_ = Training(table)


def check_text(labels: Iterable[Any]) -> None:
    """Raise BadData for a label that no file in UTF-8 can have."""
    for label in labels:
        try:
            str(label).encode()
        except UnicodeEncodeError:
            found = f"found the label {quoted(label)}, which cannot be written as UTF-8"
            raise BadData(f"{found}, expected text without half a pair of surrogates") from None


def resumable(model: Predictor) -> Training:
    """The state of the training to go on with."""
    model.require("task_")
    if model.training_ is None:
        raise ValueError(
            "the state of the training is not there to go on from: the model was saved "
            "without it (save(path, training=True) keeps it)"
        )
    return model.training_


def continue_with(model: SearchEstimator) -> None:
    """Let a draft learn more without changing what was published."""
    model.training_ = resumable(model).copied()
    model.task_ = model.task_.copied()


def resume(
    model: Model,
    examples: Examples,
    epochs: int,
    progress: Callable[[Progress], None] | None,
    checkpoint: Checkpoint | None,
) -> Model:
    """Go on to so many epochs in all, if the examples are those of ``fit``."""
    if examples.fingerprint != model.fingerprint_:
        raise ValueError("resume needs the data of fit; for other data there is partial_fit")
    if not Plan(patience=model.patience).is_out_of_patience(resumable(model)):
        train(model, examples, epochs, progress, checkpoint)
    end(model)
    return model


def end(model: SearchEstimator) -> None:
    """Note that ``fit`` has ended, so that more data are corrections."""
    resumable(model).stage = ENDED


def make_corrections_count(model: SearchEstimator, examples: int) -> None:
    """Let a model that ``fit`` has ended learn so many examples within a handful of calls.

    Learning goes on from the averaged weights, which predict better than the last ones. In the
    average, all that was learned before counts as CORRECTIONS calls.
    """
    training = resumable(model)
    if training.stage == LEARNING or not model.averages():
        return
    if training.stage == ENDED:
        start_at_average(training.table)
    shorten_past(training.table, CORRECTIONS * examples)
    training.stage = CORRECTING


def check_partial(model: SearchEstimator) -> None:
    """Raise ValueError if the parameters need all data at once."""
    if isinstance(model.update_rule(model.make_task()), Lbfgs):
        raise ValueError("lbfgs() needs all data at once, for fit; here use adagrad() or sgd()")
    if model.class_weight == BALANCED:
        raise ValueError("class_weight='balanced' needs all data at once: give the weights")


def widen(model: SearchEstimator) -> None:
    """Make room in the weights for labels that the task has observed since."""
    old, labels = list(model.classes_), model.task_.classes
    if old == list(labels):
        return
    check_text(labels)
    training = resumable(model)
    places = [labels.index(label) for label in old]
    model.classes_ = np.array(labels, dtype=object)
    training.table = wider(training.table, places, len(labels))
    if training.best is not None:
        model.weights_ = training.best = wider(training.best, places, len(labels))
    if training.squares is not None:
        training.squares = moved(training.squares, places, len(labels))


# --------------------------------------------------------------------------- epochs


def most_epochs(model: SearchEstimator) -> int:
    """The largest number of epochs; of ``lbfgs()``, its iterations."""
    update = model.update_rule(model.make_task())
    return update.iterations if isinstance(update, Lbfgs) else model.epochs


def shards_of(model: SearchEstimator) -> int:
    """Return the number of parts of the data that learn apart."""
    if model.shards is not None or model.n_jobs is None:
        return model.shards or 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(model.n_jobs))


def train(
    model: Model,
    examples: Examples,
    epochs: int,
    progress: Callable[[Progress], None] | None,
    checkpoint: Checkpoint | None = None,
    after_epoch: After | None = None,
) -> Model:
    """Learn until ``epochs`` in all; the weights of the best epoch are the model's."""
    training = resumable(model)
    training.interrupted = False
    dataset = examples.train
    if model.measures_steps() and training.table.ints[at.GENERATION] == 1:
        _measure_steps(model, dataset)
    engine = model.engine(dataset)

    kept = KeptEncoder(model.task_.dense if examples.words is not None else None)

    def score(table: WeightTable) -> float:
        held_out = examples.held_out
        assert held_out is not None
        if examples.words is not None:  # they have moved
            held_out = reencoded(model, held_out, examples.held_words)
        predicted = model.decode(examples.inputs, held_out, table)
        score = model.task_.score(examples.gold, predicted)
        kept.judge(score, training.best_score)
        return score

    def after(training: Training, table: Callable[[], WeightTable]) -> None:
        if after_epoch is not None:
            after_epoch(training, lambda: plan.kept(table()))
        if checkpoint is not None and checkpoint.is_due():
            training.table = table()
            checkpoint.save(model, plan, training)

    plan = Plan(
        epochs=epochs,
        seed=model.seed,
        patience=model.patience,
        average=model.averages(),
        after=None if checkpoint is None and after_epoch is None else after,
    )
    scored = score if examples.held_out is not None else None
    if model.class_weight_ is not None:
        dataset = with_costs(dataset, model.task_.classes, model.class_weight_)
    shards = shards_of(model)
    if isinstance(engine, ExactMachine):  # the parameters may have changed
        training.table = densified(training.table)
    told: dict[str, Any] = {"score": scored, "progress": progress}
    with _finite(training, dataset):
        if shards > 1:
            run = Run(model, engine, training, plan, checkpoint)
            model.traffic_ = _train_in_shards(run, dataset, shards, **told)
        elif isinstance(engine, ExactMachine):
            evaluator = in_threads(model.threads_for(dataset))
            engine.fit(dataset, training, plan, evaluator=evaluator, **told)
        else:
            dataset, learner = with_encoder(model, examples, dataset, with_dropout(model, engine))
            train_passes(InTurn(learner), dataset, training, plan, **told)
    kept.restore()
    assert training.best is not None
    model.weights_ = training.best = compact_table(training.best)
    report(model, training)
    return model


def with_dropout(model: SearchEstimator, engine: Machine) -> Machine | WithDropout:
    """Return the learner, which leaves out features if the model asks for it."""
    rate = model.dropout_rate()
    return WithDropout(engine, rate, model.seed or 0) if rate else engine


class Run(NamedTuple):
    """A training, and who takes part in it."""

    model: SearchEstimator
    engine: Machine | ExactMachine
    training: Training
    plan: Plan
    checkpoint: Checkpoint | None


def _train_in_shards(run: Run, dataset: Dataset, shards: int, **told: Any) -> list[tuple[int, int]]:
    """Learn on joblib's workers; return the bytes that have travelled."""
    engine, training, plan = run.engine, run.training, run.plan
    workers = Workers(run.model.n_jobs)
    if isinstance(engine, ExactMachine) and isinstance(engine.rule, Lbfgs):
        with gradients_on(workers, shards, dataset) as evaluator, _kept(run, lambda: training):
            engine.fit(dataset, training, plan, evaluator=evaluator, **told)
        return evaluator.traffic
    learner = engine if isinstance(engine, ExactMachine) else with_dropout(run.model, engine)
    apart = ShardLearner(learner, plan.average, len(dataset.starts) - 1)
    mixing = MIXINGS[run.model.mixing]
    with (
        in_shards(apart, workers, shards, mixing, dataset) as one_pass,
        _kept(run, lambda: one_pass.before),
    ):
        one_pass.keeps = run.checkpoint is not None
        train_passes(one_pass, dataset, training, plan, **told)
    return one_pass.traffic


@contextmanager
def _kept(run: Run, last: Callable[[], Training | None]) -> Iterator[None]:
    """Save the last complete epoch if workers are lost."""
    try:
        yield
    except WorkerLost:
        training = last()
        if run.checkpoint is not None and training is not None and training.epoch:
            run.model.training_ = training
            run.checkpoint.save(run.model, run.plan, training)
        raise


@contextmanager
def _finite(training: Training, dataset: Dataset) -> Iterator[None]:
    """Raise BadFeature if weights or scores overflow, whatever the search makes of them."""
    message = "found weights that overflow, expected features of smaller values, or dtype='float64'"
    try:
        yield
    except (SearchFailed, Unreachable) as error:
        try:
            check_overflow(None, dataset, largest_of(training.table))
        except BadFeature:
            raise BadFeature(message) from error
        raise
    if training.best is not None and not largest_of(training.best) <= LARGEST_WEIGHT:
        raise BadFeature(message)


def _measure_steps(model: SearchEstimator, dataset: Dataset) -> None:
    """Tell the task how long its steps are, which its default update has as a margin."""
    task, table = model.task_, resumable(model).table
    engine = model.engine(dataset)
    # First what checks a user's own problem, whose errors are more helpful.
    Machine(engine.problem, engine.options).check(dataset, all_of(dataset), table, learning=True)
    task.step_length_ = mean_step_length(engine.problem, dataset, len(task.classes))
    table.reals[at.MARGIN] = model.engine(dataset).options.margin


def report(model: Predictor, training: Training) -> None:
    """Set the attributes that tell how training went."""
    model.n_iter_ = training.epoch
    model.best_epoch_ = training.best_epoch
    model.scores_ = list(training.scores)
    model.converged_ = training.converged
    model.interrupted_ = training.interrupted
