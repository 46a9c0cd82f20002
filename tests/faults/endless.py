"""Calls that would run for hours: ``python -m tests.faults.endless CALL`` waits for Ctrl-C."""

from __future__ import annotations

import signal
import sys
from typing import Any

import numpy as np

from laso import Tagger, beam, fit, own_key, perceptron
from laso.engine.choose import engine_for
from laso.engine.dataset import make_dataset
from laso.engine.decoder import Decoder
from laso.engine.machine import all_of, new_table
from tests.careless_problem import Careful


class Endless(Careful):
    """Never comes to an end at inputs that begin with seven."""

    @staticmethod
    def features(x, state, group, out):
        n = 0
        while x.items[0, 0] == 7 and n >= 0:
            n = (n + 1) % 5
        out.keys[0] = 3
        return 1


X = [[0, 1, 2], [0, 1, 2], [7, 1], [1, 0]]
Y = [[0, 1, 0], [0, 1, 0], [1, 1], [1, 0]]
QUEUE = beam(2, key=own_key)


def decode(X: Any, threads: int = 1) -> None:
    dataset = make_dataset(X, spec=[0])
    engine_for(Endless, QUEUE).decode(dataset, all_of(dataset), new_table(2), threads=threads)


def decode_one(x: Any) -> None:
    Decoder(engine_for(Endless, QUEUE), new_table(2)).decode(make_dataset([x], spec=[0]))


def learn(X: Any, Y: Any) -> None:
    data = list(zip(X, Y, strict=True))
    fit(Endless, data, n_labels=2, spec=[0], epochs=2, seed=None, queue=QUEUE, update=perceptron())


def label(times: int) -> None:
    tagger.predict(long * times)


words = [[str(i % 1000) for i in range(50)]]
long = words * 1000
tagger = Tagger(epochs=1, queue=200, update=perceptron(), dropout=0, class_weight={})


def learn_for_hours() -> None:
    rng = np.random.default_rng(0)
    labels = [[str(label) for label in rng.integers(9, size=50)] for _ in long]
    found = Tagger(epochs=1000, queue=50, update=perceptron(), class_weight={}).fit(long, labels)
    assert found.interrupted_
    tell("kept what was learned")


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Warm up, say so, then run the call until it is interrupted."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    call = sys.argv[1]
    if call.endswith("hours"):
        tagger.fit(words, words)
        tagger.predict_single(words[0])
    elif call == "learn":
        learn(X[:2], Y[:2])
    elif call == "decode one":
        decode_one(X[0])
    else:
        decode(X[:1])
    tell("ready")
    calls = {
        "decode": lambda: decode(X),
        "decode in threads": lambda: decode(X, threads=2),
        "decode one": lambda: decode_one(X[2]),
        "learn": lambda: learn(X, Y),
        "label for hours": lambda: label(100),
        "label one for hours": lambda: tagger.predict_single(words[0] * 100_000),
        "learn for hours": learn_for_hours,
    }
    try:
        calls[call]()
    except KeyboardInterrupt as error:
        tell(type(error).__name__)


if __name__ == "__main__":
    main()
