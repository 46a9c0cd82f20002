"""Fields of vectors: pairs of items are compared by their cosine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laso import Clusterer, load_model
from laso.data.coreference import Mention, Text
from laso.errors import BadData
from tests.dense_inputs import Words

IDS = [0, 1, 0, 1, 0, 1]


def documents(n: int, seed: int = 0) -> list[list[dict[str, Any]]]:
    """Documents of items whose clusters nothing but their vectors tells."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        centres = np.linalg.qr(random.normal(size=(4, 4)))[0]
        found.append([{"v": centres[i] + random.normal(size=4) / 20, "name": "x"} for i in IDS])
    return found


def test_items_of_similar_vectors_belong_together():
    train, test = documents(30), documents(5, seed=1)
    model = Clusterer(epochs=5).fit(train, [IDS] * 30)
    assert model.task_.encoder_.kinds["v"] == "vector"
    assert model.predict(test) == [IDS] * 5


def test_vectors_may_be_lists_and_may_be_missing(tmp_path):
    train: Any = [[{"v": i["v"].tolist()} for i in d] for d in documents(30)]
    train[0][0] = {"v": None}
    model = Clusterer(fields={"v": "vector"}, epochs=5).fit(train, [IDS] * 30)
    test: Any = [[{"v": i["v"].tolist()} for i in d] for d in documents(5, seed=1)]
    assert model.predict(test) == [IDS] * 5
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").predict(test) == [IDS] * 5


@pytest.mark.parametrize("bad", ["text", [[1.0]], [float("nan"), 1.0], []])
def test_what_is_no_vector(bad):
    with pytest.raises(BadData, match=r"in the field 'v', expected vector"):
        Clusterer(fields={"v": "vector"}).fit([[{"v": bad}, {"v": [1.0, 2.0]}]], [[0, 1]])


def test_vectors_of_two_sizes():
    items = [{"v": [1.0]}, {"v": [1.0, 2.0]}]
    with pytest.raises(BadData, match="found vectors of 1 and of 2 numbers"):
        Clusterer(fields={"v": "vector"}).fit([items], [[0, 1]])


def texts() -> tuple[list[Text], list[list[str]]]:
    """Texts with two mentions of one entity and one of another."""
    sentences = [["the", "king", "saw", "a", "dog"], ["the", "ruler", "smiled"]]
    mentions = [Mention(0, 0, 1), Mention(0, 3, 4), Mention(1, 0, 1)]
    return [Text(sentences, mentions)] * 3, [["a", "b", "a"]] * 3


class Kings(Words):
    """An encoder for which kings are rulers."""

    def row(self, word: str) -> Any:
        return super().row("king" if word == "ruler" else word)


def test_mentions_compare_the_vectors_of_their_words(tmp_path):
    X, y = texts()
    model = Clusterer(preset="coreference", encoder=Kings(), epochs=5).fit(X, y)
    assert model.predict(X[:1]) == [[0, 1, 0]]
    names = {
        f["name"] for d in model.explain(X[0], features=500)["decisions"] for f in d["features"]
    }
    assert any("vector.similar[any]=0.9" in name for name in names)
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model", encoder=Kings()).predict(X[:1]) == [[0, 1, 0]]
    with pytest.raises(BadData, match="encoder= beside the model"):
        load_model(tmp_path / "model").predict(X[:1])
    sparse = Clusterer(preset="coreference", epochs=5).fit(X, y)
    assert "vector" not in sparse.task_.encoder_.kinds
