"""Clusterer: what it reads, predicts, forces, explains and saves, and what it refuses."""

from __future__ import annotations

import copy
import pickle
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from laso import (
    BadData,
    BadModel,
    Clusterer,
    SearchFailed,
    exact,
    load_model,
)
from laso.estimators.capabilities.explain import explained, traced
from laso.estimators.capabilities.inspection import inspected
from laso.estimators.capabilities.render import as_text
from laso.metrics import partition_scores
from laso.tasks.clustering import ClusteringTask
from tests.people import GOLD, TEST, X, Y, weights

Person = namedtuple("Person", ["name", "year"])


@dataclass
class Record:
    name: str
    year: int


FORMS = {
    "dicts": lambda item: item,
    "tuples": lambda item: (item["name"], item["year"]),
    "named tuples": lambda item: Person(item["name"], item["year"]),
    "objects": lambda item: SimpleNamespace(**item, _hidden=object()),
    "dataclasses": lambda item: Record(**item),
    "strings": lambda item: item["name"],
    "numbers": lambda item: item["year"],
    "numpy": lambda item: {
        "name": np.str_(item["name"]),
        "year": np.float64(item["year"] or "nan"),
    },
}


def by_first(ids: Any) -> list[int]:
    seen = list(dict.fromkeys(ids))
    return [seen.index(each) for each in ids]


@pytest.fixture(scope="module")
def model() -> Clusterer:
    return Clusterer(epochs=4, seed=1).fit(X, Y)


# --------------------------------------------------------------------------- inputs and outputs


@pytest.mark.parametrize("form", FORMS)
def test_items_of_every_form(form, model):
    documents, test = [[[FORMS[form](i) for i in x] for x in data] for data in (X, TEST)]
    before = copy.deepcopy(Y)
    other = Clusterer(epochs=4, seed=1).fit(documents, Y)
    assert before == Y
    predicted = other.predict(test)
    assert all(ids == by_first(ids) for ids in predicted)
    if form in ("strings", "numbers"):
        assert list(other.task_.encoder_.kinds) == ["position", "value"]
        assert partition_scores(GOLD, predicted).conll > 60
    else:
        assert predicted == model.predict(TEST)
        assert other.score(test, GOLD) > 0.8
        assert other.score(test, GOLD) == partition_scores(GOLD, predicted).conll / 100


def test_a_data_frame_is_a_document():
    class Frame:
        """What a table of pandas has."""

        columns = ("name", "year")

        def __init__(self, items: list[dict[str, Any]]) -> None:
            self.items = items

        def to_dict(self, how: str) -> list[dict[str, Any]]:
            assert how == "records"
            return self.items

    frames = [Frame([{**i, "year": i["year"] or float("nan")} for i in x]) for x in X]
    assert weights(Clusterer(epochs=2).fit(frames, Y)) == weights(Clusterer(epochs=2).fit(X, Y))


def test_ids_may_be_anything_that_can_be_compared(model):
    names = [[f"person {k}" for k in ids] for ids in Y]
    mixed = [[(k, "x") if k % 2 else k for k in ids] for ids in Y]
    arrays = [np.array(ids) for ids in Y]
    for y in (names, mixed, arrays):
        assert weights(Clusterer(epochs=4, seed=1).fit(X, y)) == weights(model)


@pytest.mark.parametrize("unknown", [None, float("nan"), np.nan])
def test_some_ids_may_be_unknown(unknown):
    random = np.random.default_rng(0)
    y = [[k if random.random() < 0.6 else unknown for k in ids] for ids in Y]
    partly = Clusterer(epochs=4).fit(X, y)
    assert partly.score(TEST, GOLD) > 0.75
    hidden = [[None if i % 2 else k for i, k in enumerate(ids)] for ids in GOLD]
    assert 0 < partly.score(TEST, hidden) < 1
    assert partly.reliability(TEST, hidden).error >= 0
    nothing = [[None] * len(ids) for ids in Y]
    assert not weights(Clusterer(epochs=1).fit(X, nothing))  # nothing known contradicts anything


def test_short_documents(model):
    assert model.predict([]) == []
    assert model.predict([[], TEST[0][:1]]) == [[], [0]]
    assert model.predict_nbest([[]], 3) == [[(0.0, [])]]
    assert model.predict_links([[], TEST[0][:1]]) == [[], []]
    assert model.predict_confidence([[]])[0].parts == []
    few = Clusterer(epochs=1).fit([[], ["a"], ["a", "a"]], [[], [0], [0, 0]])
    assert few.predict([[], ["b"]]) == [[], [0]]


def test_one_by_one_or_in_threads_is_the_same(model):
    many = TEST * 40
    found = model.predict(many)
    assert [model.predict_single(x) for x in TEST] == found[: len(TEST)]
    assert model.predict(many[::-1]) == found[::-1]
    threaded = copy.copy(model).set_params(threads=3)
    assert threaded.predict(many) == found


def test_documents_in_components_are_searched_as_a_whole_would_be():
    parted = Clusterer(epochs=2, queue=1, blocking=["year"], seed=3).fit(X, Y)
    _, dataset = parted.encoded(TEST)
    parts = parted.task_.components(dataset)
    assert parts is not None
    assert len(parts.dataset.starts) > len(dataset.starts)
    steps, ends, _ = parted.decoder(dataset).decode(dataset, threads=1)
    assert parted.task_.decode_all([None] * len(TEST), steps, ends) == parted.predict(TEST)
    for items, ids in zip(TEST, parted.predict(TEST), strict=True):
        for i, item in enumerate(items):  # whoever shares a cluster shares a key
            assert all(items[j]["year"] == item["year"] for j in range(i) if ids[j] == ids[i])


# --------------------------------------------------------------------------- n-best, confidence


def test_the_n_best_are_distinct_and_fall(model):
    for ranked, best in zip(model.predict_nbest(TEST, 4), model.predict(TEST), strict=True):
        scores, outputs = zip(*ranked, strict=True)
        assert list(scores) == sorted(scores, reverse=True)
        assert len({tuple(ids) for ids in outputs}) == len(outputs) == 4
        assert outputs[0] == best
        assert all(ids == by_first(ids) for ids in outputs)


def test_confidence_and_links_are_shares_of_the_beam(model):
    calibrated = pickle.loads(pickle.dumps(model))
    calibrated.calibrate(TEST, GOLD)
    assert 0 <= calibrated.reliability(TEST, GOLD).error < 0.1
    nbest = calibrated.predict_nbest(TEST, 1000)
    temperature = calibrated.metadata_["temperature"]
    confidences, links = calibrated.predict_confidence(TEST), calibrated.predict_links(TEST)
    for ranked, told, joined in zip(nbest, confidences, links, strict=True):
        scores = np.array([score for score, _ in ranked])
        shares = np.exp((scores - scores.max()) / temperature)
        shares /= shares.sum()
        outputs = [ids for _, ids in ranked]
        best = told.output
        assert told.probability == pytest.approx(shares[0], abs=1e-6)
        firsts = [[ids.index(k) for k in ids] for ids in outputs]
        for i, part in enumerate(told.parts):
            assert (part.start, part.end) == (i, i + 1)
            assert part.label == ("new" if firsts[0][i] == i else str(firsts[0][i]))
            same = sum(s for s, f in zip(shares, firsts, strict=True) if f[i] == firsts[0][i])
            assert part.probability == pytest.approx(same, abs=1e-6)
        expected = {
            i: max(j for j in range(i) if best[j] == best[i])
            for i in range(len(best))
            if best[i] in best[:i]
        }
        assert {link.item: link.other for link in joined} == expected
        for i, j, probability in joined:
            together = sum(s for s, ids in zip(shares, outputs, strict=True) if ids[i] == ids[j])
            assert probability == pytest.approx(together, abs=1e-6)


# --------------------------------------------------------------------------- forced


def test_known_ids_are_kept(model):
    for x, gold in zip(TEST[:3], GOLD[:3], strict=True):
        assert model.predict_forced([x], known=[gold]) == [by_first(gold)]
        half = [k if i % 2 else None for i, k in enumerate(gold)]
        [ids] = model.predict_forced([x], known=[half])
        odd = range(1, len(x), 2)
        assert all((ids[i] == ids[j]) == (gold[i] == gold[j]) for i in odd for j in odd)
    assert model.predict_forced(TEST) == model.predict(TEST)
    nothing = [[None] * len(x) for x in TEST]
    assert model.predict_forced(TEST, known=nothing) == model.predict(TEST)


def test_links_and_bans_are_kept(model):
    x, [best] = TEST[0], model.predict(TEST[:1])
    pairs = [(i, j) for i in range(len(x)) for j in range(i)]
    for i, j in pairs[::4]:
        for together in (True, False):
            [ids] = model.predict_forced([x], known=[[(i, j, together)]])
            assert (ids[i] == ids[j]) == together
            if (best[i] == best[j]) == together:
                assert ids == best
    several = [(0, 5, True), (7, 5, True), (3, 0, False), (6, 7, False), (3, 6, True)]
    [ids] = model.predict_forced([x], known=[several])
    assert ids[0] == ids[5] == ids[7] != ids[3] == ids[6]
    banned: list[list[str]] = [[] for _ in x]
    banned[4] = ["new"]
    [ids] = model.predict_forced([x], banned=[banned])
    assert ids[4] in ids[:4]
    [ids] = model.predict_forced([x], known=[[(4, 0, False)]], banned=[banned])
    assert ids[4] in ids[1:4]
    assert ids[4] != ids[0]


def test_an_item_that_is_compared_with_some_members_is_kept_from_all():
    """Item 2 is compared with item 0 only, whose cluster item 1 may have joined."""
    lists = [[], [0], [0]]
    few = Clusterer(epochs=2, candidates=lambda items: lists[: len(items)])
    few.fit([["a", "a", "a"]] * 2, [[0, 0, 0]] * 2)
    assert few.predict([["a", "a", "a"]]) == [[0, 0, 0]]
    assert few.predict_forced([["a", "a", "a"]], known=[[(2, 1, False)]])[0][2] != 0


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"known": [[0]]}, BadData, "found 1 known ids for 9 items"),
        ({"known": [[[0]] * 9]}, BadData, "as an id, expected text or a number"),
        ({"known": [[(0, 9, True)]]}, BadData, "expected .* numbers from 0 to 8"),
        ({"known": [[(0, 1)]]}, BadData, "found the link"),
        ({"known": [[(0, 1, True), (1, 0, False)]]}, SearchFailed, "fits what is known"),
        ({"banned": [["new"]]}, SearchFailed, "fits what is known"),
        ({"banned": [[[]]]}, BadData, "found banned labels for 1 tokens, expected 9"),
        ({"known": [None, None]}, BadData, "found what is known of 2 inputs, expected 1"),
    ],
)
def test_what_cannot_be_forced_is_told(model, given, error, message):
    with pytest.raises(error, match=message):
        model.predict_forced(TEST[:1], **given)


# --------------------------------------------------------------------------- explanations


def test_explanations_say_who_joined_whom_and_why(model):
    x, [best] = TEST[0], model.predict(TEST[:1])
    shown = explained(model, x, features=10**6)
    assert shown["output"] == best
    assert shown["tokens"] == [item["name"] for item in x]
    total = 0.0
    for i, decision in enumerate(shown["decisions"]):
        parts = sum(each["weight"] * each["value"] for each in decision["features"])
        assert parts == pytest.approx(decision["score"], rel=1e-4, abs=1e-3)
        total += decision["score"]
        if best[i] in best[:i]:
            members = [x[j]["name"] for j in range(i) if best[j] == best[i]]
            assert decision["text"] == f"{x[i]['name']} joins {', '.join(members)}"
            assert any(each["name"].startswith("name.") for each in decision["features"])
        else:
            assert decision["text"] == f"{x[i]['name']} begins a cluster"
        assert not any(each["name"].startswith("#") for each in decision["features"])
    assert total == pytest.approx(shown["score"], rel=1e-4, abs=1e-3)
    assert " joins " in as_text(shown)
    assert model.explain(x)["output"] == best


def test_long_clusters_are_shown_in_part():
    alike = Clusterer(epochs=2).fit([["a"] * 12], [[0] * 12])
    last = alike.explain(["a"] * 12)["decisions"][-1]["text"]
    assert last == f"a joins ..., {', '.join('a' * 8)}"


def test_the_trace_names_steps(model):
    events = traced(model, TEST[0], GOLD[0])
    steps = {event["step"] for event in events} - {None}
    assert "new" in steps
    assert {step.split()[0] for step in steps} == {"new", "join"}


def test_inspection(model):
    shown = inspected(model, data=TEST)
    assert shown["labels"] == ["join", "new"]
    names = [name for name, _ in shown["top"]["join"]["for"]]
    assert any(name.startswith(("name", "year")) for name in names)
    assert "join" in as_text(shown)


# --------------------------------------------------------------------------- fields and functions


def initials(a: dict[str, Any], b: dict[str, Any]) -> bool | None:
    return None if a["year"] is None else a["name"][0] == b["name"][0]


def test_functions_of_two_items(tmp_path):
    how: Any = {
        "comparisons": {"initials": initials},
        "features": ["bias", "initials.outcome[any]"],
    }
    made = Clusterer(epochs=3, **how).fit(X, Y)
    assert made.task_.encoder_.outcomes == {"initials": ["True", "False"]} or made.predict(TEST)
    shown = made.explain(TEST[0])["decisions"]
    names = {each["name"] for decision in shown for each in decision["features"]}
    assert names & {"initials.outcome[any]=True", "initials.outcome[any]=False"}
    made.save(tmp_path / "model")
    with pytest.raises(BadModel, match=r"a function that files never have; .*task=ClusteringTask"):
        load_model(tmp_path / "model")
    task = ClusteringTask(comparisons={"initials": initials})
    again: Any = load_model(tmp_path / "model", task=task)
    assert again.predict(TEST) == made.predict(TEST)
    assert weights(again.fit(X, Y)) == weights(made)


def test_fields_can_be_chosen_and_have_kinds():
    made = Clusterer(epochs=1, fields={"year": "category", "name": "text"}).fit(X, Y)
    assert made.task_.encoder_.kinds == {"position": "number", "year": "category", "name": "text"}
    only = Clusterer(epochs=1, fields=["name"]).fit(X, Y)
    assert list(only.task_.encoder_.kinds) == ["position", "name"]
    assert only.predict([[{"name": "Ann Lee"}]]) == [[0]]  # a field may be missing later


def sourced(source: str) -> dict[str, Any]:
    return {"name": "Ann", "source": None if source == "?" else source}


def test_items_of_one_source_stay_apart():
    items = [[{**item, "source": "ab"[i % 2]} for i, item in enumerate(x)] for x in TEST]
    train = [[{**item, "source": i} for i, item in enumerate(x)] for x in X]
    made = Clusterer(epochs=2, different="source", fields=["name", "year"]).fit(train, Y)
    for x, ids in zip(items, made.predict(items), strict=True):
        pairs = [(item["source"], k) for item, k in zip(x, ids, strict=True)]
        assert len({*pairs}) == len(pairs)
    with pytest.raises(BadData, match=r"sentence 1: found items 0 and 2, .* 'source'"):
        Clusterer(different="source").fit([[*map(sourced, "a?a")]], [[0] * 3])


WRONG: list[tuple[dict[str, Any], Any, Any, type[Exception], str]] = [
    ({}, "abc", [[0]], BadData, "found 'abc' for X, expected a list of inputs"),
    ({}, ["abc"], [[0]], BadData, "sentence 1: found 'abc', expected a list of items"),
    ({}, [["a"], None], [[0], [0]], BadData, "sentence 2: found None, expected a list of items"),
    ({}, [["a", "b"]], [[0]], BadData, "sentence 1: found 1 ids for 2 items"),
    ({}, [["a", "b"]], [[0, 1], [0]], BadData, "found 2 outputs for 1 inputs"),
    ({}, [["a", "b"]], ["ab"], BadData, "found 'ab', expected an id for each item"),
    ({}, [["a", "b"]], None, BadData, "expected y beside X"),
    ({}, [["a", "b"]], [[0, []]], BadData, r"sentence 1, token 2: found \[\] as an id"),
    ({}, [], [], BadData, "found no example"),
    ({}, [[]], [[]], BadData, "found no item to learn from"),
    ({}, [[None, None]], [[0, 0]], BadData, "found no field with a value"),
    ({}, [[b"a"]], [[0]], BadData, "as an item, expected a table or tuple of fields"),
    ({"queue": exact()}, X, Y, ValueError, "cannot search exactly, since its features look at"),
    ({"window": 0}, X, Y, ValueError, "window must be from 1"),
    ({"preset": "names"}, X, Y, ValueError, "preset must be one of None, coreference"),
    ({"preset": []}, X, Y, ValueError, "preset must be"),
    ({"dropout": 0.2}, X, Y, ValueError, "dropout needs a problem with blocks"),
    ({"class_weight": {"joining": 2.0}}, X, Y, ValueError, "expected one of join, new"),
    ({"fields": "name"}, X, Y, ValueError, "fields must be a list or a mapping"),
    ({"fields": ["nme"]}, X, Y, BadData, "found no field 'nme', expected one of name, year"),
    ({"fields": {"name": "txt"}}, X, Y, BadData, "found the kind 'txt' of 'name', expected text"),
    ({"fields": {"name": "number"}}, X, Y, BadData, "token 1: found '.*' in the field 'name'"),
    ({"different": "source"}, X, Y, BadData, "found no field 'source', which different names"),
    ({"different": 3}, X, Y, ValueError, "different must be the name of a field"),
    ({"blocking": "name"}, X, Y, ValueError, "blocking must be a list of fields"),
    ({"blocking": ["nme"]}, X, Y, BadData, "found no field 'nme', which blocking names"),
    ({"blocking": [lambda item: {}]}, X, Y, BadData, "found the key {} of blocking"),
    ({"candidates": 3}, X, Y, ValueError, "candidates must be a function"),
    ({"candidates": lambda items: 3}, X, Y, BadData, "found the candidates 3"),
    ({"comparisons": {"a b": max}}, X, Y, ValueError, "comparisons must be functions"),
    ({"comparisons": {"ab": 3}}, X, Y, ValueError, "comparisons must be functions"),
    ({"comparisons": {"name": max}}, X, Y, BadData, "'name' as a field and as a comparison"),
    ({"comparisons": {"f": lambda a, b: 0.5}}, X, Y, BadData, "found 0.5 as the outcome of .*'f'"),
    ({"features": ["nme[item]"]}, X, Y, ValueError, "found no field 'nme', expected position"),
    ({"features": ["name.same[any]"]}, X, Y, ValueError, "'same' of a field of the kind text"),
    ({"features": ["name.equal[some]"]}, X, Y, ValueError, "one of the places last, first, any"),
    ({"features": ["name[last-3]"]}, X, Y, ValueError, "expected 1 or 2"),
    ({"features": ["name[any]"]}, X, Y, ValueError, "expected item, last, last-1, last-2"),
    ({"features": ["size[any]"]}, X, Y, ValueError, "expected all"),
    ({"features": ["a: name[item]"]}, X, Y, ValueError, "found a name, expected none here"),
    ({"features": [3]}, X, Y, ValueError, "found the template 3, expected a string"),
]


@pytest.mark.parametrize(("how", "x", "y", "error", "message"), WRONG, ids=[w[-1] for w in WRONG])
def test_what_is_wrong_is_told(how, x, y, error, message):
    with pytest.raises(error, match=message):
        Clusterer(epochs=1, **how).fit(x, y)


@pytest.mark.parametrize("x", ["abc", ["abc"], [[object()]], [3], 3])
def test_what_cannot_be_predicted_is_told(model, x):
    with pytest.raises(BadData):
        model.predict(x)
