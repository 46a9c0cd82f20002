"""JointTagger: the same as one tagger on products, constraints, templates, files, errors."""

import random
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import laso
from laso import (
    BadData,
    BadModel,
    BadTemplate,
    JointTagger,
    Tagger,
    beam,
    exact,
    load_model,
    max_violation,
    perceptron,
    worst,
)
from laso.data import load_bundled, read_columns, write_columns
from laso.engine import layout as at
from laso.engine.kernels.upper_bounds import LEVELS, choose_caps
from laso.engine.kernels.weight_table import add_entry_to_row, entry_of
from laso.engine.machine import as_names, grown_table, new_table
from laso.engine.weights.hash_table import placed
from laso.engine.weights.row_layouts import dense_rows
from laso.tasks.joint.encoder import JointEncoder, layer_labels, row_labels
from laso.tasks.joint.feature_sets import rich_features
from laso.tasks.joint.layers import Layers, Pair

LAYERS = ("pos", "chunk")
SIMPLE = ["w[-1..1]", "w.suffix2[0]", "label[-1]", "pos[0]|chunk[0]", "pos[0]|chunk[0]|chunk[-1]"]


def corpus(n=60):
    return load_bundled()[0][:n]


def words(sentences):
    return [[token[0] for token in sentence] for sentence in sentences]


def labels(sentences):
    return [[tuple(token[1:]) for token in sentence] for sentence in sentences]


def tagger(**given):
    usual = {"layers": LAYERS, "features": SIMPLE, "queue": 3, "epochs": 3, "threads": 1}
    return JointTagger(**{**usual, **given})


def random_sentences(seed, n=25, kinds=("a", "b", "c", "d")):
    rng = random.Random(seed)
    return [
        [
            (rng.choice(kinds), rng.choice("xyz"), rng.choice(("O", "B-k", "B-j")))
            for _ in range(rng.randint(1, 6))
        ]
        for _ in range(n)
    ]


# --------------------------------------------------------------------------- what it learns


@pytest.mark.parametrize("queue", [1, 4])
@pytest.mark.parametrize("strategy", ["laso", "max_violation"])
def test_features_on_all_layers_are_those_of_a_tagger_on_products(queue, strategy):
    data = random_sentences(queue)
    strategy = max_violation if strategy == "max_violation" else tagger().strategy
    given = {"queue": queue, "strategy": strategy, "epochs": 3, "dtype": "float64"}
    rule = perceptron(weighting=worst, margin=1.0)
    mine = tagger(
        features=["pos[0]|chunk[0]|w[-1..1]", "pos[0]|chunk[0]|pos[-1]|chunk[-1]"],
        update=rule,
        **given,
    ).fit(data)
    # Sorted, these are in the order in which the joint search meets them: by group, then by label.
    joined = [[(w, f"{chunk}/{pos}") for w, pos, chunk in sentence] for sentence in data]
    other = Tagger(features=["w[-1..1]", "label[-1]"], update=rule, dropout=0.0, **given)
    other.fit(joined)
    found = [[f"{chunk}/{pos}" for pos, chunk in tags] for tags in mine.predict(words(data))]
    wanted = other.predict(words(data))
    assert found == wanted


def test_it_learns_the_bundled_corpus_and_more_with_a_wider_beam():
    train, test = load_bundled()
    scores = [tagger(queue=b, epochs=5).fit(train).score(test) for b in (1, 5)]
    assert min(scores) > 0.8


def test_three_layers_with_pairs_of_them():
    data = [[(w, p, p.lower(), c) for w, p, c in s] for s in random_sentences(3)]
    for sentence in data:  # the third layer follows from the second
        assert all(second == third.upper() or second == third for _, second, third, _ in sentence)
    found = JointTagger(
        layers=("a", "b", "c"),
        features=["w[0]", "a[0]|b[0]", "b[0]|c[0]|w[0]", "a[-1]|c[-1]"],
        epochs=8,
        threads=1,
    ).fit(data)
    assert all(a == b for tags in found.predict(words(data)) for a, b, _ in tags)


# --------------------------------------------------------------------------- constraints


def test_constraints_within_and_between_layers_hold():
    data = corpus()
    allowed = {"NN": ["B-NP", "I-NP"], "DT": ["B-NP"]}
    kept = [s for s in data if all(tag not in allowed or c in allowed[tag] for _, tag, c in s)]
    model = tagger(
        constraints={"chunk": "BIO"}, pairs={"pos": {"chunk": allowed}}, queue=2, epochs=1
    ).fit(kept[:20])
    for tags in model.predict(words(data)):
        for (_, before), (pos, after) in zip([("", "O"), *tags], tags, strict=False):
            assert pos not in allowed or after in allowed[pos]
            if after.startswith("I-"):
                assert before[2:] == after[2:]


@pytest.mark.parametrize("layers", [("a", "b", "c"), ("c", "a", "b")])
def test_only_labels_seen_together_are_given_together(layers, tmp_path):
    rng = random.Random(1)
    triples = [("x", "1", "p"), ("x", "2", "p"), ("y", "2", "q"), ("z", "1", "q"), ("z", "3", "r")]
    data = [[(rng.choice("stuv"), *rng.choice(triples)) for _ in range(4)] for _ in range(30)]
    usual = {"layers": layers, "features": ["w[0]", "label[-1]"], "epochs": 1, "threads": 1}
    free = JointTagger(**usual).fit(data)
    model = JointTagger(**usual, pairs="observed").fit(data)

    def pairs(tokens):
        return {(i, j, t[i], t[j]) for t in tokens for i in range(3) for j in range(i)}

    unseen = [[(rng.choice("stuvw"),) for _ in range(6)] for _ in range(50)]
    known = pairs([token[1:] for sentence in data for token in sentence])
    assert not pairs([t for tags in free.predict(unseen) for t in tags]) <= known
    assert pairs([t for tags in model.predict(unseen) for t in tags]) <= known
    model.save(tmp_path / "m.laso")
    assert load_model(tmp_path / "m.laso").predict(unseen) == model.predict(unseen)


def test_labels_seen_together_later_may_be_given_together_from_then_on():
    model = tagger(pairs="observed").partial_fit([[("a", "x", "O"), ("b", "y", "B-k")]])
    assert model.task_.state_["pairs"] == {"pos": {"chunk": {"x": ["O"], "y": ["B-k"]}}}
    with pytest.raises(BadData, match=r"token 1: found .* which the constraints forbid"):
        model.resume([[("a", "x", "B-k")]], epochs=9)
    model.partial_fit([[("a", "x", "B-k")]])
    assert model.task_.state_["pairs"] == {"pos": {"chunk": {"x": ["B-k", "O"], "y": ["B-k"]}}}
    for _ in range(9):
        model.partial_fit([[("a", "x", "B-k")]])
    assert model.predict([["a"]]) == [[("x", "B-k")]]


@given(st.data())
def test_prefixes_are_the_combinations_that_pairs_allow(data):
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    chosen = data.draw(st.sets(st.sampled_from(list(combinations(range(len(sizes)), 2)))))
    pairs = []
    for a, b in sorted(chosen):
        flags = st.lists(st.booleans(), min_size=sizes[b], max_size=sizes[b])
        pairs.append(Pair(a, b, np.array([data.draw(flags) for _ in range(sizes[a])])))
    expected = [
        number
        for number, labels in enumerate(product(*map(range, sizes[1:])))
        if all(p.first == 0 or p.table[labels[p.first - 1], labels[p.second - 1]] for p in pairs)
    ]
    assert Layers(sizes, pairs=pairs).prefixes() == expected


def test_data_that_break_constraints_are_refused_with_the_place():
    with pytest.raises(BadData, match="sentence 1, token 2: found the label I-VP after B-NP"):
        tagger(constraints={"chunk": "BIO"}).fit(
            [[("a", "x", "B-NP"), ("b", "y", "I-VP"), ("c", "x", "B-VP")]]
        )
    with pytest.raises(BadData, match=r"token 2: found .*pos y.* which the constraints forbid"):
        tagger(pairs={"pos": {"chunk": {"y": ["B-NP"]}}}).fit(
            [[("a", "x", "B-NP"), ("b", "y", "O")]]
        )


# --------------------------------------------------------------------------- templates


def test_templates_are_for_each_layer_for_one_or_for_several():
    of_layer = {"chunk": ["O", "B"], "pos": ["x", "y", "z"]}
    templates = ["w[0]", "label[-1]", "pos[0]|w[1]", "pos[0]|chunk[0]|pos[-2]"]
    from laso.features import parse_templates

    encoder = JointEncoder(parse_templates(templates), ("w",), tuple(row_labels(of_layer)))
    assert encoder.order == ["pos", "chunk"]  # the widest layer first
    about = [(sorted(t.layers), len(t.atoms), list(t.history)) for t in encoder.joint_program]
    assert about == [
        ([], 1, []),
        ([0], 0, [(0, -1)]),
        ([1], 0, [(1, -1)]),
        ([0], 1, []),
        ([0, 1], 0, [(0, -2)]),
    ]
    assert layer_labels(row_labels(of_layer)) == of_layer


@pytest.mark.parametrize("template", ["pos[1]|w[0]", "chunk.lower[0]", "chunk[0]|pos.prefix1[-1]"])
def test_layers_have_no_future_and_no_base_features(template):
    with pytest.raises(BadTemplate, match="expected a layer without base features"):
        tagger(features=[template]).fit(corpus(3))


def test_the_rich_features_have_what_resources_and_columns_add():
    plain = rich_features(("w",), LAYERS)
    more = rich_features(("w", "x"), LAYERS, ("lexicon", "clusters"))
    assert set(plain) < set(more) | {"pos[0]|chunk[0]|w.suffix3[1]"}
    assert "w.lexicon[-2..2]" in more
    assert "x[-2..2]" in more
    model = tagger(features="rich", epochs=1).fit(corpus(10))
    assert len(model.predict(words(corpus(2)))) == 2


# --------------------------------------------------------------------------- use


def test_files_in_and_out(tmp_path):
    path = tmp_path / "train.txt"
    write_columns(path, corpus(20))
    model = tagger().fit(path)
    assert model.predict(path) == model.predict(words(corpus(20)))
    found = [
        [(w, *tags) for w, tags in zip(sentence, tagged, strict=True)]
        for sentence, tagged in zip(words(corpus(20)), model.predict(path), strict=True)
    ]
    write_columns(tmp_path / "found.txt", found)
    assert labels(read_columns(tmp_path / "found.txt")) == model.predict(path)
    assert model.score(path) == model.score(words(corpus(20)), labels(corpus(20)))


def test_a_saved_model_is_the_same_and_can_go_on(tmp_path):
    data = corpus(30)
    given = {"constraints": {"chunk": "BIO"}, "pairs": {"chunk": {"pos": {"nonesuch": ["RB"]}}}}
    model = tagger(epochs=2, **given).fit(data)
    model.save(tmp_path / "model", training=True)
    same = JointTagger.load(tmp_path / "model")
    assert same.get_params() == {**model.get_params(), "layers": list(LAYERS), "resources": []}
    assert same.predict(words(data)) == model.predict(words(data))
    assert same.task_.encoder_.of_layer == model.task_.encoder_.of_layer
    on = same.resume(data, epochs=4)
    assert on.predict(words(data)) == tagger(epochs=4, **given).fit(data).predict(words(data))
    with pytest.raises(BadModel):
        Tagger.load(tmp_path / "model")


def test_it_learns_bit_by_bit_when_all_labels_are_told():
    data = corpus(30)
    classes = tagger(epochs=1).fit(data).classes_
    model = tagger()
    for sentence in data[:10]:
        model.partial_fit([sentence], classes=classes)
    assert list(model.classes_) == list(classes)
    assert len(model.predict(words(data))) == 30


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"layers": ["pos"]}, "layers must be two or more names"),
        ({"layers": "pos"}, "layers must be two or more names"),
        ({"layers": ["pos", "label"]}, "layers must be two or more names"),
        ({"constraints": {"x": "BIO"}}, "constraints must be"),
        ({"pairs": {"pos": {"pos": {}}}}, "pairs must be"),
        ({"pairs": "often"}, "pairs must be None, 'observed'"),
        ({"features": SIMPLE, "resources": ["lexicon"]}, "are for the features rich only"),
        ({"queue": exact()}, "no signature|several decisions"),
        ({"columns": ["pos"]}, "for a column and for a layer"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        tagger(**wrong).fit(corpus(3))


def test_data_that_make_no_sense_are_refused():
    with pytest.raises(BadData, match="found 2 columns, expected more than 2"):
        tagger().fit([[("a", "x")]])
    with pytest.raises(BadData, match=r"sentence 1, token 1: found \('x',\), expected 2 labels"):
        tagger().fit([["a"]], [[("x",)]])
    with pytest.raises(BadData, match="found no label that is known"):
        tagger().fit([["a", "b"]], [[(None, None), (None, None)]])
    with pytest.raises(BadData, match="found tokens with features of their own"):
        tagger().fit([[{"a": 1.0}]], [[("x", "O")]])


def test_a_beam_by_key_finds_the_same():
    from laso.engine.options import own_key

    data = corpus(20)
    by_depth = tagger(queue=beam(3)).fit(data)
    by_key = tagger(queue=beam(3, key=own_key)).fit(data)
    assert by_depth.predict(words(data)) == by_key.predict(words(data))


def test_what_other_estimators_offer_works_here_too(tmp_path):
    model = tagger().fit(corpus())
    model.save(tmp_path / "model")
    loaded = laso.load_model(tmp_path / "model")
    sentence = [token[0] for token in corpus()[0]]
    (found,) = loaded.predict([sentence])
    assert [found] == model.predict([sentence])
    other = next(pair for pair in labels(corpus())[1] if pair != found[0])
    (forced,) = loaded.predict_forced([sentence], known=[[other, *[None] * (len(sentence) - 1)]])
    assert forced[0] == other
    ((_, again), *_) = loaded.predict_nbest([sentence], 3)[0]
    assert again == found
    (sure,) = loaded.predict_confidence([sentence])
    assert sure


# --------------------------------------------------------------------------- a faster search


def three_layers(seed, n=80):
    """Sentences with three layers, of which pairs go together; many states of a beam are equal."""
    rng = random.Random(seed)
    triples = [(a, b, c) for a in "xyz" for b in "123" for c in "pq" if (a < "z") | (b < "3")]
    kinds = {w: rng.sample(triples, 5) for w in "stuvw"}
    return [
        [(w, *rng.choice(kinds[w])) for w in rng.choices("stuvw", k=rng.randint(1, 9))]
        for _ in range(n)
    ]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("pairs", [None, "observed"])
@pytest.mark.parametrize("queue", [1, 6])
def test_upper_bounds_and_noted_steps_change_nothing(queue, pairs, sparse, monkeypatch):
    """The plain search scores every group of every node; whole weights make equal scores."""
    data = three_layers(queue)
    monkeypatch.setattr(
        "laso.engine.thresholds.FILTER_SLOTS_PER_ITEM", 1 << 30
    )  # caps come with a filter
    if sparse:
        monkeypatch.setattr("laso.estimators.search.MANY_LABELS", 1)
    given = {"layers": ("a", "b", "c"), "features": "rich", "pairs": pairs, "queue": queue}
    rule = perceptron(weighting=worst, margin=2.0)

    def learnt():
        model = JointTagger(**given, update=rule, epochs=3, threads=1, average=False).fit(data)
        steps = model.decode(*model.encoded(words(data)))
        return as_names(model.weights_), steps

    weights, steps = learnt()
    monkeypatch.setattr("laso.engine.workspace.has_caps", lambda *_: False)
    monkeypatch.setattr("laso.engine.layout.MOST_NOTED", 0)
    plain_weights, plain_steps = learnt()
    assert weights == plain_weights
    assert steps == plain_steps


@pytest.mark.parametrize("sparse", [False, True])
def test_no_weight_exceeds_its_cap(sparse):
    random = np.random.default_rng(0)
    table = new_table(90, sparse=sparse)
    rows, n = 200, 90
    table.ints[at.ROWS] = rows
    keys = random.integers(1, 1 << 60, size=rows)
    table = table._replace(slots=placed(np.stack([keys, np.arange(rows) + 1], axis=1), 1 << 12))
    table = grown_table(table, 0, moves=rows)
    weights = random.standard_normal((rows, n)) * np.exp2(random.integers(-30, 10, size=(rows, 1)))
    weights *= random.random((rows, n)) < random.choice([0.02, 0.5], size=(rows, 1))
    for row, label in zip(*np.nonzero(weights), strict=True):
        if sparse:
            add_entry_to_row(table, row, label)
            table.v[entry_of(table, row, label), 0] = weights[row, label]
        else:
            table.v[row, label] = weights[row, label]
    run = SimpleNamespace(caps=np.zeros(64, np.uint8), meta=[9] * 99)
    choose_caps(table, run)
    most = np.maximum(dense_rows(table, np.arange(rows)).max(axis=1), 0)
    for c in range(64):  # several keys share a cap
        weight, cap = most[keys & 63 == c].max(initial=0), LEVELS[run.caps[c]]
        assert weight <= cap <= max(1.1 * weight, LEVELS[1] * (weight > 0))
