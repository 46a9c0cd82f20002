"""Encoders that learn inside the search."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laso
from laso import Chunker, Parser, Tagger
from laso.engine.layout import Array
from laso.engine.machine import Machine
from tests.dense_inputs import NO_WORDS, SIZE, Learner, Words, chunks, classes


def moved(model: Any, X: Any, y: Any) -> tuple[Any, Array]:
    """The dataset of examples, and where one pass over them would move the vectors."""
    task = deepcopy(model.task_)
    dataset = task.arrays(*task.read(X, y))
    dataset = dataset._replace(moves=np.zeros_like(dataset.vectors))
    engine = model.engine(dataset)
    assert isinstance(engine, Machine)
    table = type(model.training_.table)(*(a.copy() for a in model.training_.table))
    order = np.arange(len(dataset.starts) - 1)
    engine.learn(dataset, order, table, engine.new_run(dataset, order, table))
    return dataset, dataset.moves


def hinge(model: Any, dataset: Any, good: Array, bad: Array, vectors: Array) -> float:
    """The score of the good path minus that of the bad one, with other vectors."""
    from laso.engine.machine import current
    from laso.engine.reference import input_of
    from laso.estimators.capabilities.scored_reference import Walk

    walk = Walk(model.with_weights(current(model.training_.table)), dataset)
    x = input_of(dataset._replace(vectors=vectors), 0)
    totals = []
    for path in (good, bad):
        state, total = walk.initial(x), 0.0
        for step in map(tuple, path.tolist()):
            features = walk.reference.features(x, state, step)
            total += sum(walk.weight(key, of) * value for (key, of), value in features.items())
            state = walk.apply(x, state, step)
        totals.append(total)
    return totals[0] - totals[1]


@pytest.mark.parametrize("kind", [Tagger, Chunker, Parser])
def test_moves_are_derivatives_of_the_structured_hinge(kind: Any) -> None:
    """With one update at the end they compare the gold output with the predicted one."""
    from laso.engine.machine import all_of, current

    X, y = classes(12)
    outputs: Any = chunks(y)
    given: dict[str, Any] = {"vector_window": 1} if kind is Tagger else {}
    if kind is Parser:
        X = [[(word,) for word in x] for x in X]  # type: ignore[misc]
        outputs = [[(0, "root"), *((1, label) for label in labels[1:])] for labels in y]
        given = {"columns": ["w"], "features": ["w[s0]"]}
    update = laso.perceptron(weighting=laso.worst)
    model = kind(
        encoder=Words(),
        epochs=1,
        queue=4,
        strategy=laso.standard,
        update=update,
        dtype="float64",
        vector_scale=1.0,
        **({"dropout": 0.0} if kind is Tagger else {}),
        **given,
    ).fit(X, outputs)
    compared = 0
    for x, output in zip(X, outputs, strict=True):
        dataset, moves = moved(model, [x], [output])
        engine = model.engine(dataset)
        steps, _, _ = engine.decode(dataset, all_of(dataset), current(model.training_.table))
        forced = model.with_weights(current(model.training_.table))
        gold = forced_steps(forced, x, output)
        expected = np.zeros_like(moves)
        if model.task_.decode_all(None, steps, np.array([len(steps)])) != [output]:
            compared += 1
            for at in np.ndindex(*moves.shape):
                ends = []
                for sign in (1.0, -1.0):
                    vectors = dataset.vectors.astype(np.float64)
                    vectors[at] += sign
                    ends.append(hinge(model, dataset, gold, steps, vectors))
                expected[at] = (ends[0] - ends[1]) / 2
        assert moves == pytest.approx(expected, abs=1e-4)
    assert compared > 2


def forced_model(model: Any) -> Any:
    return model


def forced_steps(model: Any, x: Any, output: Any) -> Array:
    """The steps of the gold output."""
    from laso.engine.reference import Reference, input_of, output_of

    dataset = model.task_.arrays(*model.task_.read([x], [output]))
    problem = model.task_.problem_for(dataset)
    reference, row, y = Reference(problem, len(model.classes_)), input_of(dataset, 0), None
    y = output_of(dataset, 0)
    state, steps = reference.initial(row), []
    while not reference.is_goal(row, state):
        here = np.array(state.row, np.int32)
        step = next(
            each for each in reference.operators(row, state) if problem.is_good(row, y, here, *each)
        )
        steps.append(step)
        state = reference.apply(row, state, step)
    return np.array(steps, np.int32)


@pytest.mark.parametrize("strategy", [laso.restart, laso.early, laso.delayed, laso.max_violation])
def test_an_encoder_learns_inside_the_search(strategy: Any) -> None:
    X, y = classes(200)
    frozen, learned = (
        Tagger(
            encoder=encoder,
            strategy=strategy,
            queue=3,
            vector_scale=1.0,
            features=["label[-1]"],
            epochs=4,
        )
        for encoder in (Words(), Learner())
    )
    assert frozen.fit(X[:150], y[:150]).score(X[150:], y[150:]) < 0.7
    assert learned.fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.95


def test_the_encoder_of_the_best_epoch_is_kept() -> None:
    X, y = classes(100)

    class Forgets(Learner):
        """Forgets all words in its third epoch."""

        visits = 0

        def learn(self, sentences: Any, gradients: Any) -> None:
            self.visits += len(sentences)
            super().learn(sentences, gradients)
            if self.visits > 2 * 80:
                self.rows = {word: np.zeros(SIZE) for word in self.rows}

    encoder = Forgets()
    model = Tagger(encoder=encoder, vector_scale=1.0, held_out=0.2, **NO_WORDS).fit(X, y)
    assert model.best_epoch_ <= 2
    assert model.scores_[-1] < max(model.scores_) - 0.2
    assert np.abs(encoder.row("w0")).max() > 0
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("given", [{"queue": laso.exact()}, {"shards": 2}])
def test_what_keeps_an_encoder_from_learning(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="found an encoder that learns, and"):
        Tagger(encoder=Learner(), **given).fit(*classes(4))


def test_streams_keep_an_encoder_from_learning(tmp_path: Path) -> None:
    X, y = classes(4)
    with pytest.raises(ValueError, match="found an encoder that learns, and a stream"):
        Tagger(encoder=Learner()).fit_stream(lambda: zip(X, y, strict=True), store=tmp_path)
