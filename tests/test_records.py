"""Record linkage: tables in all forms, pairs of tables, candidates, components, and mistakes."""

from __future__ import annotations

import datetime
import random
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso import BadData, Clusterer, SearchEstimator, load_model
from laso.tasks.clustering import clusters_from_pairs
from laso.tasks.clustering import problem as p
from laso.tasks.clustering.components import components_of
from laso.tasks.clustering.records import Table
from laso.tasks.clustering.similar import Pairs, bounded, similar_pairs, with_cosines
from laso.tasks.clustering.tables import columns_of, labels_of
from tests.clustering_inputs import drawn

FIRST = [
    "ada",
    "ben",
    "cleo",
    "dora",
    "emil",
    "finn",
    "gita",
    "hugo",
    "ida",
    "jan",
    "kim",
    "lara",
    "mona",
    "nils",
    "olga",
    "paul",
]
LAST = [
    "archer",
    "baker",
    "carter",
    "dyer",
    "fisher",
    "gardner",
    "hunter",
    "joiner",
    "mason",
    "miller",
    "porter",
    "taylor",
]
STREETS = ["elm", "oak", "ash", "lime", "pine", "cedar", "birch", "maple", "rowan", "willow"]


def people(n: int, seed: int = 0) -> tuple[list[dict[str, Any]], list[int]]:
    """Rows of n persons, most of them twice with a mistake, in any order, and their ids."""
    draw = random.Random(seed)
    rows = []
    for person in range(n):
        row = {
            "first": draw.choice(FIRST),
            "last": draw.choice(LAST),
            "street": f"{draw.randrange(1, 90)} {draw.choice(STREETS)} street",
            "zip": draw.randrange(1000, 9999),
            "born": str(datetime.date(1920, 1, 1) + datetime.timedelta(draw.randrange(28_000))),
        }
        rows.append((row, person))
        if draw.random() < 0.7:
            rows.append((misspelt(row, draw), person))
    draw.shuffle(rows)
    return [row for row, _ in rows], [person for _, person in rows]


def misspelt(row: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    name = draw.choice(["first", "last", "street", "born"])
    text, at = row[name], draw.randrange(len(row[name]) - 1)
    changed = text[:at] + draw.choice("abcdefgh") + text[at + 1 :]
    return row | draw.choice(
        [{name: changed}, {name: None}, {"first": row["last"], "last": row["first"]}]
    )


def in_columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row.get(name) for row in rows] for name in rows[0]}


def as_pair(rows, ids):
    """Two tables: the first record of each person is in the left one."""
    first = {each: ids.index(each) for each in ids}
    left = [i for i, each in enumerate(ids) if first[each] == i]
    right = [i for i in range(len(ids)) if i not in left]
    tables = [rows[i] for i in left], [rows[i] for i in right]
    return tables, [ids[i] for i in [*left, *right]]


def partition(ids):
    return {frozenset(i for i, each in enumerate(ids) if each == one) for one in ids}


@pytest.fixture(scope="module")
def model():
    rows, ids = people(120)
    return Clusterer(preset="records").fit([rows], [ids])


@pytest.fixture(scope="module")
def linker():
    tables, ids = as_pair(*people(120))
    return Clusterer(preset="records").fit([tables], [ids])


# --------------------------------------------------------------------------- tables


def test_records_of_a_person_are_found(model):
    rows, ids = people(100, seed=1)
    assert model.score([rows], [ids]) > 0.98
    assert model.task_.blocking_recall_ > 0.98


def test_every_form_of_a_table_gives_the_same(model):
    rows, ids = people(40, seed=2)
    expected = model.predict([rows])
    assert model.predict([in_columns(rows)]) == expected
    assert model.predict([{name: np.array(c) for name, c in in_columns(rows).items()}]) == expected
    again = Clusterer(preset="records", epochs=2).fit([in_columns(rows)], [np.array(ids)])
    assert again.predict([rows]) == Clusterer(preset="records", epochs=2).fit(
        [rows], [ids]
    ).predict([rows])


def test_data_frames(model):
    pandas = pytest.importorskip("pandas")
    rows, ids = people(40, seed=2)
    frame = pandas.DataFrame(rows, index=[f"r{i}" for i in range(len(rows))])
    assert model.predict([frame]) == model.predict([rows])
    pairs = model.predict_pairs([frame])[0]
    numbers = model.predict_pairs([rows])[0]
    assert [(f"r{a}", f"r{b}", each) for a, b, each in numbers] == pairs
    dates = frame.assign(born=pandas.to_datetime(frame["born"], errors="coerce"))
    assert columns_of(dates)["born"][:3] == [
        None if pandas.isna(each) else each.date().isoformat() for each in dates["born"][:3]
    ]
    fitted = Clusterer(preset="records", epochs=2).fit([frame.assign(who=ids)], "who")
    assert fitted.score([frame], [ids]) > 0.9


def test_missing_values_numbers_and_dates():
    table = [{"a": float("nan"), "b": 4011.0, "c": datetime.date(1908, 12, 9), "d": " ", "e": 1.5}]
    assert columns_of(table) == {
        "a": [None],
        "b": [4011],
        "c": ["1908-12-09"],
        "d": [None],
        "e": [1.5],
    }
    rows, ids = people(30)
    model = Clusterer(preset="records", epochs=2).fit([rows], [ids])
    assert model.task_.encoder_.kinds["zip"] == "text"
    assert model.predict([[{"first": None}, {}, rows[0]]]) == [[0, 1, 2]]
    assert model.predict([[], rows[:1]]) == [[], [0]]


def test_kinds_that_the_user_gives():
    rows, ids = people(30)
    model = Clusterer(preset="records", fields={"zip": "number", "last": "text"}, epochs=2)
    kinds = model.fit([rows], [ids]).task_.encoder_.kinds
    assert (kinds["zip"], kinds["last"]) == ("number", "text")
    assert "first" not in kinds
    changed = [row | {"first": "x"} for row in rows]
    assert model.predict([rows]) == model.predict([changed])


def test_a_column_with_the_ids_is_no_field(model):
    rows, ids = people(120)
    labelled = [row | {"person": f"p{each}"} for row, each in zip(rows, ids, strict=True)]
    fitted = Clusterer(preset="records").fit([labelled], "person")
    assert "person" not in fitted.task_.encoder_.kinds
    assert fitted.predict([labelled]) == fitted.predict([rows]) == model.predict([rows])


# --------------------------------------------------------------------------- pairs of tables


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 40))
def test_records_of_one_table_of_a_pair_are_never_together(linker, seed, n):
    rows, _ = people(40, seed % 7)
    draw = random.Random(seed)
    draw.shuffle(rows)
    left, right = rows[:n], rows[n:]
    clusters = linker.predict([(left, right)])[0]
    for side in (clusters[:n], clusters[n:]):
        assert len({*side}) == len(side)
    for a, b, _ in linker.predict_pairs([(left, right)])[0]:
        assert clusters[a] == clusters[n + b]


def test_a_pair_is_linked(linker):
    tables, ids = as_pair(*people(100, seed=3))
    assert linker.score([tables], [ids]) > 0.98
    pandas = pytest.importorskip("pandas")
    frames = tuple(pandas.DataFrame(side) for side in tables)
    frames[1].index = [f"right {i}" for i in range(len(frames[1]))]
    pairs = linker.predict_pairs([frames])[0]
    assert all(isinstance(a, int) and b.startswith("right") for a, b, _ in pairs)


def test_an_entity_twice_in_a_table_of_a_pair_is_told():
    rows, _ = people(20)
    twice = [*rows, rows[0]], [rows[1]]
    with pytest.raises(BadData, match="twice in the left table"):
        Clusterer(preset="records").fit([twice], [[*range(len(rows)), 0, 1]])


# --------------------------------------------------------------------------- candidates


WORDS = st.lists(st.sets(st.sampled_from("abcdefg"), max_size=4), max_size=12)


def cosine_by_hand(words, a, b):
    n = len(words)
    rarity = {w: np.log((n + 1) / sum(w in each for each in words)) for each in words for w in each}
    length = [np.sqrt(sum(rarity[w] ** 2 for w in each)) for each in words]
    common = sum(rarity[w] ** 2 for w in words[a] & words[b])
    return common / (length[a] * length[b]) if common else 0.0


@given(WORDS, st.sampled_from([0.01, 0.3, 0.7]), st.integers(1, 12))
def test_similar_pairs_are_those_by_hand(words, least, most):
    cosines = {(a, b): cosine_by_hand(words, a, b) for b, a in combinations(range(len(words)), 2)}
    found = similar_pairs(words, least, most)
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert pairs == sorted(pairs)
    assert np.allclose(found.cosine, [cosines[pair] for pair in pairs])
    assert np.allclose(with_cosines(words, found.first, found.second).cosine, found.cosine)
    enough = {pair for pair, cosine in cosines.items() if cosine > least + 1e-9}
    if most >= len(words):
        assert enough <= {*pairs} <= {pair for pair, c in cosines.items() if c > least - 1e-9}
    for record in range(len(words)):
        of_record = sorted((cosines[pair] for pair in enough if record in pair), reverse=True)
        found_of = sorted((cosines[pair] for pair in pairs if record in pair), reverse=True)
        assert np.allclose(found_of[: min(most, len(of_record))], of_record[:most])


@given(
    st.integers(2, 10).flatmap(
        lambda n: st.tuples(
            st.just(n), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))
        )
    ),
    st.integers(1, 10),
    st.randoms(),
)
def test_no_more_records_are_connected_than_wanted(graph, most, draw):
    n, edges = graph
    pairs = sorted((max(e), min(e)) for e in edges if e[0] != e[1])
    first, second = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    given_pairs = Pairs(first, second, np.array([draw.random() for _ in pairs]))
    kept = bounded(given_pairs, n, most)
    ids = clusters_from_pairs(zip(kept.first, kept.second, strict=True), n)
    assert max(map(len, partition(ids))) <= most
    before = clusters_from_pairs(pairs, n)
    small = [i for i in range(n) if before.count(before[i]) <= most]
    assert [pair for pair in pairs if pair[0] in small] == [
        pair for pair in zip(kept.first, kept.second, strict=True) if pair[0] in small
    ]


def test_blocking_of_the_user():
    rows, ids = people(60)
    keys: list[list[Any]] = [["zip"], [lambda row: row["zip"], "born"]]
    for blocking in keys:
        model = Clusterer(preset="records", blocking=blocking, epochs=3).fit([rows], [ids])
        assert model.score([rows], [ids]) > 0.95
    tables, linked = as_pair(rows, ids)
    pair = Clusterer(preset="records", blocking=["zip"], epochs=3).fit([tables], [linked])
    counts, others = pair.task_.encoder_.candidates.of(Table(tables).with_words(["zip"]))
    assert counts[: len(tables[0])].sum() == 0
    assert (others < len(tables[0])).all()


def test_links_that_blocking_loses_are_told():
    rows, ids = people(60)
    with pytest.warns(UserWarning, match="choose other blocking"):
        model = Clusterer(preset="records", blocking=["first"], epochs=1).fit([rows], [ids])
    task: Any = model.task_
    assert 0 < task.blocking_recall_ < 0.98
    with pytest.warns(UserWarning, match="choose a larger window"):
        Clusterer(preset="records", window=3, epochs=1).fit([rows[:1] * 5], [[0] * 5])


# --------------------------------------------------------------------------- components


@settings(max_examples=100, deadline=None)
@given(drawn(most=6))
def test_components_have_the_same_items_candidates_and_gold(corpus):
    parts = components_of(corpus.dataset)
    if parts is None:
        return
    dataset, width = parts.dataset, 1 + corpus.dataset.spec[p.WORDS]
    divided = parts.divided(corpus.gold)
    assert sum(map(len, divided)) == sum(map(len, corpus.gold))
    for k, ids in enumerate(divided):
        begin, n = dataset.starts[k], len(ids)
        output = dataset.outputs[dataset.output_starts[k] :][: 2 * n]
        for i in range(n):
            row = dataset.items[begin + i]
            places = row[p.AT] + width * (1 + np.arange(row[p.CANDIDATES]))
            others = dataset.pool[places].tolist()
            assert others == sorted({*others})
            assert all(0 <= each < i for each in others)
            same = [each for each in others if ids[each] is not None and ids[each] == ids[i]]
            assert output[n + i] == max(same, default=-1) + 1
            assert i <= row[p.LAST_USE] < n
    begins = [(i, p.NEW) for each in divided for i in range(len(each))]
    steps, ends = parts.joined(np.array(begins, np.int32).reshape(-1, 2))
    numbers = [i for document in corpus.documents for i in range(len(document))]
    assert steps[:, 0].tolist() == numbers
    assert ends.tolist() == np.cumsum([len(each) for each in corpus.documents]).tolist()


def test_searching_components_is_searching_the_document():
    draw = random.Random(0)
    X = [
        [{"k": draw.choice("abc"), "n": draw.choice("xyz") * 3} for _ in range(6)]
        for _ in range(40)
    ]
    y = [[item["k"] + item["n"] for item in x] for x in X]
    model = Clusterer(blocking=["k"], queue=300, epochs=2).fit(X, y)
    inputs, dataset = model.encoded(X)
    assert model.task_.components(dataset) is not None
    assert model.predict(X) == SearchEstimator.decode(model, inputs, dataset)
    held = Clusterer(blocking=["k"], held_out=0.2, epochs=2).fit(X, y)
    assert len(held.scores_) == 2
    assert held.partial_fit(X, y).score(X, y) > 0.5


# --------------------------------------------------------------------------- what is told of links


def test_pairs_and_links_agree_with_the_clusters(model):
    rows, _ = people(50, seed=4)
    clusters = model.predict([rows])[0]
    expected = [(a, b) for a, b in combinations(range(len(rows)), 2) if clusters[a] == clusters[b]]
    pairs = model.predict_pairs([rows])[0]
    assert [(a, b) for a, b, _ in pairs] == expected
    assert all(0 < each.probability <= 1 for each in pairs)
    assert {(b, a, each) for a, b, each in model.predict_links([rows])[0]} <= {*pairs}


def test_links_that_are_known(model):
    rows, _ = people(50, seed=4)
    (first, second, _), *others = model.predict_pairs([rows])[0]
    apart = model.predict_forced([rows], known=[[(first, second, False)]])[0]
    assert apart[first] != apart[second]
    assert all(apart[a] == apart[b] for a, b, _ in others if first not in (a, b))
    again = model.predict_forced([rows], known=[[(second, first, True)]])
    assert again == model.predict([rows])
    ids: list[Any] = [None] * len(rows)
    ids[first], ids[second] = "a", "b"
    by_ids = model.predict_forced([rows], known=[ids])[0]
    assert by_ids[first] != by_ids[second]
    only_new = model.predict_forced([rows], banned=[[[str(first)]] * len(rows)])[0]
    assert only_new[first] != only_new[second]


def test_a_link_of_records_that_are_not_compared_is_told(model):
    rows = [{"first": "ada", "last": "mason"}, {"first": "xu", "last": "li"}]
    with pytest.raises(BadData, match=r"found the link \(1, 0\), expected items that are compared"):
        model.predict_forced([rows], known=[[(0, 1, True)]])


def test_precision_against_recall(model):
    rows, _ = people(80, seed=5)
    numbers = [
        len(model.biased({"join": amount}).predict_pairs([rows])[0]) for amount in (-1e5, 0, 1e5)
    ]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[1] < numbers[2]


def test_probabilities_can_be_calibrated(model):
    rows, ids = people(60, seed=6)
    calibrated = load_copy(model).calibrate([rows], [ids])
    assert calibrated.predict([rows]) == model.predict([rows])
    assert "probability" in str(calibrated.reliability([rows], [ids]))


def load_copy(model):
    return model.with_weights(model.weights_)


def test_two_records_are_explained(model):
    rows, ids = people(30, seed=7)
    a, b, _ = model.predict_pairs([rows])[0][0]
    decision = model.explain([rows[a], rows[b]])["decisions"][1]
    assert " joins " in decision["text"]
    assert any("[any]" in each["name"] for each in decision["features"])
    assert ids[a] == ids[b]


def test_saving_and_loading(model, tmp_path):
    rows, _ = people(50, seed=8)
    model.save(tmp_path / "records.laso")
    loaded = load_model(tmp_path / "records.laso")
    assert isinstance(loaded, Clusterer)
    assert loaded.preset == "records"
    assert loaded.predict([rows]) == model.predict([rows])
    assert loaded.predict_pairs([rows]) == model.predict_pairs([rows])


# --------------------------------------------------------------------------- labelled pairs


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8))
def test_clusters_of_pairs_are_the_transitive_closure(pairs):
    reach = np.eye(7, dtype=bool)
    for a, b in pairs:
        reach[a, b] = reach[b, a] = True
    for _ in range(7):
        reach = reach @ reach
    ids = clusters_from_pairs(pairs, 7)
    assert [[a == b for b in ids] for a in ids] == reach.tolist()
    assert list(dict.fromkeys(ids)) == list(range(len({*ids})))


def test_clusters_of_pairs_of_labels():
    tables = {"name": ["a", "b"]}, {"name": ["c", "d"]}
    assert clusters_from_pairs([(1, 0)], tables) == [0, 1, 1, 2]
    assert labels_of(tables[0]) == [0, 1]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"name": list("abc")}, index=["x", "y", "z"])
    assert clusters_from_pairs([("x", "z")], frame) == [0, 1, 0]
    with pytest.raises(BadData, match="no record 'w'"):
        clusters_from_pairs([("x", "w")], frame)
    with pytest.raises(BadData, match="expected a pair of two records"):
        clusters_from_pairs([("x", "y", "z")], frame)
    with pytest.raises(BadData, match="label that occurs twice"):
        clusters_from_pairs([], pandas.DataFrame({"name": list("ab")}, index=["x", "x"]))


# --------------------------------------------------------------------------- mistakes

ROWS, IDS = people(20)
COLUMNS = in_columns(ROWS)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (ROWS, IDS, r"found a table as X, expected a list of such inputs: \[table\], and \[y\]"),
        (COLUMNS, IDS, "found a table as X"),
        ((ROWS, ROWS), IDS, r"found a pair of tables as X.*\[\(left, right\)\]"),
        ([(ROWS, ROWS, ROWS)], [IDS], "found 3 tables, expected one, or a pair"),
        ([ROWS], [IDS[:-1]], "ids for"),
        ([ROWS], IDS, "outputs for 1 inputs"),
        ([ROWS], "person", "found no column 'person' with ids"),
        ([COLUMNS | {"last": ["x"]}], [IDS], "found 1 values in the column 'last'"),
        ([COLUMNS | {"last": 5}], [IDS], "found 5 as the column 'last'"),
        ([5], [IDS], "found 5, expected a table"),
        (["abc"], [IDS], "found 'abc', expected a table"),
        ([[{"all_fields": "x"}]], [[0]], "found the field 'all_fields', whose name is taken"),
        ([[{"a b": "x"}]], [[0]], "found the field 'a b'"),
        ([[{"a": None}]], [[0]], "found no field with a value"),
        ([[]], [[]], "found no item to learn from"),
    ],
)
def test_mistakes_are_told(X, y, message):
    with pytest.raises(BadData, match=message):
        Clusterer(preset="records").fit(X, y)


def test_mistakes_of_parameters_are_told():
    with pytest.raises(BadData, match="found no field 'surname'"):
        Clusterer(preset="records", fields=["surname"]).fit([ROWS], [IDS])
    with pytest.raises(BadData, match="beside different='zip'"):
        Clusterer(preset="records", different="zip").fit([(ROWS, ROWS)], [[*IDS, *IDS]])
    with pytest.raises(ValueError, match="preset"):
        Clusterer(preset="record").fit([ROWS], [IDS])
