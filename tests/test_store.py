"""Learning from files that are mapped into memory: the same weights as in memory."""

from typing import Any

import numpy as np
import pytest

from laso import BadData, Chunker, Tagger, exact
from laso.data import load_bundled, write_columns
from laso.engine.machine import as_names
from laso.estimators.learning import streaming

TRAIN, TEST = load_bundled()
SMALL = TRAIN[:90]


def features(sentences, value):
    return [
        ([{"w": w, "n": len(w) / 10 if value else True} for w, *_ in s], [t for *_, t in s])
        for s in sentences
    ]


MODELS = {
    "tagger": (Tagger(epochs=2), SMALL),
    "constraints": (Tagger(epochs=2, constraints="BIO"), SMALL),
    "exact": (Tagger(epochs=1, features=["w[0]", "label[-1]"], queue=exact()), SMALL),
    "chunker": (Chunker(epochs=2, features="paper"), SMALL),
    "features": (Tagger(epochs=2), features(SMALL, False)),
    "values": (Tagger(epochs=2), features(SMALL, True)),
    "some values": (Tagger(epochs=2), features(SMALL[:50], False) + features(SMALL[50:], True)),
}


@pytest.mark.parametrize(("model", "data"), MODELS.values(), ids=MODELS.keys())
def test_a_stream_teaches_what_memory_teaches(model, data, tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "EXAMPLES_AT_A_TIME", 20)
    pairs = isinstance(data[0], tuple)
    X, y = ([x for x, _ in data], [y for _, y in data]) if pairs else (data, None)
    wanted = as_names(model.fit(X, y).weights_)
    history, labels = model.n_iter_, list(model.task_.encoder_.labels)
    model.fit_stream(lambda: iter(data), store=tmp_path / "store")
    assert as_names(model.weights_) == wanted
    assert (model.n_iter_, list(model.task_.encoder_.labels)) == (history, labels)
    again = model.predict(X)
    model.save(tmp_path / "model")
    assert type(model).load(tmp_path / "model").predict(X) == again


def test_a_file_is_streamed_and_scored_on_other_data(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "EXAMPLES_AT_A_TIME", 7)
    write_columns(tmp_path / "train.txt", SMALL)
    seen: list[Any] = []
    model = Tagger(epochs=3, patience=2)
    model.fit_stream(
        tmp_path / "train.txt", store=tmp_path / "s", dev=TEST[:20], progress=seen.append
    )
    memory = Tagger(epochs=3, patience=2).fit(SMALL, dev=TEST[:20])
    assert model.scores_ == memory.scores_
    assert as_names(model.weights_) == as_names(memory.weights_)
    assert seen


def test_what_a_stream_cannot_do(tmp_path):
    with pytest.raises(ValueError, match="held_out needs all"):
        Tagger(held_out=0.1).fit_stream(lambda: SMALL, store=tmp_path)
    with pytest.raises(BadData, match="found no sentence"):
        Tagger().fit_stream(list, store=tmp_path)


def test_few_sentences_are_in_memory_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "EXAMPLES_AT_A_TIME", 10)
    alive = set()

    class Counted(list):  # type: ignore[type-arg]
        def __init__(self, tokens):
            super().__init__(tokens)
            alive.add(id(self))

        def __del__(self):
            alive.discard(id(self))

    most = 0

    def stream():
        nonlocal most
        for sentence in SMALL:
            most = max(most, len(alive))
            yield Counted(sentence)

    model = Tagger(epochs=1).fit_stream(stream, store=tmp_path)
    assert most <= 30
    assert np.isfinite(model.weights_.v).all()
