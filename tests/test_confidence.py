"""Probabilities from the lattice and from the beam, calibration, and n-best lists of beams."""

import itertools
import json

import numpy as np
import pytest

from laso import Chunker, Tagger, beam, bounded_best_first, exact, load_model
from laso.data import load_bundled, write_columns
from laso.engine.reference import input_of
from laso.estimators.capabilities.chunk_confidence import inside
from laso.estimators.capabilities.scored_reference import Walk
from laso.features.schemes import convert_tags
from laso.metrics.calibration import reliability

TRAIN, TEST = load_bundled()
LITTLE = ["w[0]", "pos[0]", "label[-1]"]
SHORT = [[token[:2] for token in s][:3] for s in TEST[:4]]


def all_outputs(model, sentence):
    """Every output with its score, by enumeration."""
    corpus = model.task_.encode(model.task_.read_inputs([sentence]))
    steps, x = Walk(model, corpus), input_of(corpus, 0)
    found = []

    def go(state, path, score):
        if steps.is_goal(x, state):
            found.append((score, path))
            return
        for operator in steps.operators(x, state):
            after = steps.apply(x, state, operator)
            go(after, (*path, operator), score + steps.step_score(x, state, operator))

    go(steps.initial(x), (), 0.0)
    return sorted(found, key=lambda each: -each[0])


def few_labels(sentences):
    kinds = {"B-NP": "N", "I-NP": "N"}
    return [[(w, p, kinds.get(t, "X" if t == "O" else "V")) for w, p, t in s] for s in sentences]


@pytest.fixture(scope="module")
def data():
    return few_labels(TRAIN[:60])


@pytest.mark.parametrize("temperature", [1.0, 7.0])
@pytest.mark.parametrize("queue", [exact(), beam(1000)], ids=["lattice", "beam"])
def test_probabilities_are_those_of_all_outputs(queue, temperature, data):
    """A beam that holds everything knows what the lattice knows."""
    model = Tagger(features=LITTLE, queue=queue, epochs=2).fit(data)
    model.metadata_["temperature"] = temperature
    for sentence, found in zip(SHORT, model.predict_confidence(SHORT), strict=True):
        outputs = all_outputs(model, sentence)
        shares = np.exp(np.array([score for score, _ in outputs]) / temperature)
        shares /= shares.sum()
        assert found.probability == pytest.approx(shares[0], rel=1e-3)
        for i, part in enumerate(found.parts):
            label = list(model.classes_).index(part.label)
            true = sum(
                p for p, (_, path) in zip(shares, outputs, strict=True) if path[i][1] == label
            )
            assert part.probability == pytest.approx(true, rel=1e-3)
            assert (part.start, part.end) == (i, i + 1)
        assert found.output == [part.label for part in found.parts]


@pytest.mark.parametrize("constraints", [None, "BIO"])
@pytest.mark.parametrize("queue", [exact(), beam(1000)], ids=["lattice", "beam"])
@pytest.mark.parametrize("scheme", ["BIO", "IOB1", "IOBES"])
def test_whole_chunks_are_as_probable_as_all_outputs_that_have_them(queue, scheme, constraints):
    if constraints and scheme != constraints:
        return
    kinds = {"B-NP": "B-N", "I-NP": "I-N"}
    bio = [[kinds.get(t, "O") for _, _, t in s] for s in TRAIN[:60]]
    words = [[token[:2] for token in s] for s in TRAIN[:60]]
    model = Tagger(features=LITTLE, queue=queue, epochs=1, constraints=constraints)
    model.fit(words, convert_tags(bio, scheme))
    model.metadata_["temperature"] = 20.0  # so that much is possible
    seen = set()
    for sentence, found in zip(SHORT, model.predict_confidence(SHORT, chunks=True), strict=True):
        outputs = all_outputs(model, sentence)
        shares = np.exp(np.array([score for score, _ in outputs]) / 20.0)
        shares /= shares.sum()
        chunks = [inside([model.classes_[label] for _, label in path]) for _, path in outputs]
        assert found.output == [model.classes_[label] for _, label in outputs[0][1]]
        assert [part[:3] for part in found.parts] == chunks[0]
        for part in found.parts:
            true = sum(p for p, some in zip(shares, chunks, strict=True) if part[:3] in some)
            assert part.probability == pytest.approx(true, rel=1e-3)
            seen.add(part.end - part.start)
    assert len(seen) > 1


def test_chunks_of_a_chunker_are_its_parts():
    model = Chunker(features="paper", epochs=1).fit(TRAIN[:60])
    for one, all_parts in zip(
        model.predict_confidence(SHORT, chunks=True), model.predict_confidence(SHORT), strict=True
    ):
        assert one.parts == [part for part in all_parts.parts if part.label != "O"]


def test_the_n_best_of_a_beam_are_those_of_all_if_it_holds_them(data):
    model = Tagger(features=LITTLE, queue=beam(1000), epochs=2).fit(data)
    for sentence, found in zip(SHORT, model.predict_nbest(SHORT, 10), strict=True):
        wanted = all_outputs(model, sentence)[:10]
        assert [score for score, _ in found] == pytest.approx([s for s, _ in wanted], abs=1e-3)
        assert found[0][1] == model.predict_single(sentence)


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (Tagger(epochs=1), 5),
        (Tagger(epochs=1, queue=1), 1),
        (Tagger(epochs=1, queue=bounded_best_first(4)), 1),
        (Chunker(epochs=1, features="paper"), 5),
    ],
)
def test_a_beam_has_as_many_outputs_as_it_is_wide(model, most, data):
    model.fit(TRAIN[:30])
    found = model.predict_nbest(TEST[:20], 50)
    assert max(map(len, found)) == most
    assert [outputs[0][1] for outputs in found] == model.predict(TEST[:20])
    for outputs in found:
        scores = [score for score, _ in outputs]
        assert scores == sorted(scores, reverse=True)
        assert len({json.dumps(answer) for _, answer in outputs}) == len(outputs)
    with pytest.raises(ValueError, match="at least 1"):
        model.predict_nbest(TEST[:1], 0)


@pytest.mark.parametrize("model", [Tagger(epochs=3), Chunker(epochs=2, features="paper")])
def test_calibration_makes_probabilities_truer(model, tmp_path):
    model.fit(TRAIN[:200])
    raw = model.reliability(TEST).error
    model.calibrate(TRAIN[200:])
    assert model.reliability(TEST).error < raw
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.predict_confidence(TEST[:3]) == model.predict_confidence(TEST[:3])
    for found in again.predict_confidence(TEST[:5]):
        assert 0 <= found.probability <= min(part.probability for part in found.parts) + 1e-9
        assert all(b.start == a.end for a, b in itertools.pairwise(found.parts))


def test_the_expected_calibration_error_by_hand(tmp_path):
    table = reliability([0.95, 0.95, 0.55, 0.05], [True, False, True, False])
    assert [each.n for each in table.bins] == [1, 1, 2]
    assert table.error == pytest.approx((2 * 0.45 + 0.45 + 0.05) / 4)
    assert "expected calibration error 0.3500" in str(table)
    assert json.loads(json.dumps(table.as_json()))["error"] == table.error
    assert reliability([], []).error == 0.0
    with pytest.raises(ValueError, match="2 probabilities for 1"):
        reliability([0.1, 0.2], [True])
    pytest.importorskip("matplotlib")
    table.plot(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_the_command_line_tells_probabilities(laso, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_columns("train.txt", TRAIN[:60])
    result = json.loads(laso("train", "train.txt", "--task", "tag", "--epochs", "2", "--json").out)
    assert 0 <= result["calibration_error"] < 0.5
    text = "The DT\nkettle NN\n"
    rows = [
        line.split()
        for line in laso("tag", "train.laso", "--confidence", stdin=text).out.split("\n")
    ]
    assert [len(row) for row in rows[:2]] == [4, 4]
    assert all(0 <= float(row[3]) <= 1 for row in rows[:2])
    shown = laso("tag", "train.laso", "--confidence", "--nbest", "3", "--json", stdin=text)
    record = json.loads(shown.out)
    assert len(record["probabilities"]) == 2
    assert record["nbest"][0]["labels"] == record["labels"]
    assert laso("tag", "train.laso", "--nbest", "3", stdin=text).code == 2
    scores = json.loads(laso("eval", "train.laso", "train.txt", "--confidence", "--json").out)
    assert scores["calibration"]["error"] >= 0
    told = laso("eval", "train.laso", "train.txt", "--confidence").out
    assert "expected calibration error" in told
