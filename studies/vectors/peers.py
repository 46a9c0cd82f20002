"""What others make of the same data: CRFsuite with the same vectors, spaCy's small network.

They are imported only where they run: ``pip install python-crfsuite spacy``.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from studies.defaults.data import attributes
from studies.measure import Row

EPOCHS = 10  # of CRFsuite's averaged perceptron
PASSES, WORDS = 10, 1000  # of spaCy's network: over the data, and words in a batch


def crfsuite(job: Row) -> Row:
    """Return the score of CRFsuite, averaged perceptron, with attributes and vectors as floats."""
    import pycrfsuite

    from laso.encoders import load_encoder
    from studies.vectors.systems import ENCODER, TASKS, Part, scored

    data = TASKS[job["task"]].load()
    encoder = load_encoder(ENCODER)
    names = [f"v{i}" for i in range(encoder.dimensions)]
    train = encoder.encode(data.train.words)
    stacked = np.concatenate(train)
    mean, deviation = stacked.mean(0), stacked.std(0) + 1e-6
    del stacked

    def sequence(x: Any, vectors: Any) -> Any:
        rows = (0.1 * (vectors - mean) / deviation).tolist()
        tokens = [token if isinstance(token, tuple) else (token,) for token in x]
        given = zip(attributes(tokens), rows, strict=True)
        return pycrfsuite.ItemSequence(
            [dict.fromkeys(own, 1.0) | dict(zip(names, row, strict=True)) for own, row in given]
        )

    began = time.perf_counter()
    trainer = pycrfsuite.Trainer(verbose=False)
    order = list(range(len(train)))
    random.Random(job["seed"]).shuffle(order)
    for i in order:
        trainer.append(sequence(data.train.X[i], train[i]), data.train.y[i])
    trainer.select("ap")
    trainer.set("max_iterations", EPOCHS)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        train_s = time.perf_counter() - began
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        plain = load_encoder(ENCODER, cache=False)
        began = time.perf_counter()
        encoded = plain.encode(data.test.words)
        predicted = [
            tagger.tag(sequence(x, vectors))
            for x, vectors in zip(data.test.X, encoded, strict=True)
        ]
        test_s = time.perf_counter() - began
    return scored(data, Part(data.test.X, predicted), train_s, test_s) | {"encoder": ENCODER}


def spacy(job: Row) -> Row:
    """Return the score of spaCy's small convolutional network for entities."""
    import spacy as library
    from spacy.tokens import Doc
    from spacy.training import Example
    from spacy.training.batchers import minibatch_by_words
    from spacy.util import fix_random_seed

    from studies.vectors.systems import TASKS, Part, scored

    data = TASKS[job["task"]].load()
    fix_random_seed(job["seed"])
    nlp = library.blank("en")
    nlp.add_pipe("ner")

    def doc(words: list[str]) -> Any:
        return Doc(nlp.vocab, words=words)

    examples = [
        Example(doc(words), Doc(nlp.vocab, words=words, ents=y))
        for words, y in zip(data.train.words, data.train.y, strict=True)
    ]
    began = time.perf_counter()
    optimizer = nlp.initialize(lambda: examples)
    order = random.Random(job["seed"])
    for _ in range(PASSES):
        order.shuffle(examples)
        for batch in minibatch_by_words(examples, size=WORDS):
            nlp.update(list(batch), sgd=optimizer, drop=0.1)
    train_s = time.perf_counter() - began
    began = time.perf_counter()
    predicted = []
    with nlp.use_params(optimizer.averages):
        for tagged in nlp.pipe([doc(words) for words in data.test.words]):
            marks = [(token.ent_iob_, token.ent_type_) for token in tagged]
            predicted.append([f"{mark}-{kind}" if kind else "O" for mark, kind in marks])
    test_s = time.perf_counter() - began
    return scored(data, Part(data.test.X, predicted), train_s, test_s) | {"encoder": "spaCy"}
