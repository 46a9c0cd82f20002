"""Parser: trees from text, with all that an estimator does."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from laso import BadData, BadModel, Parser, Tagger, early, load_model, perceptron, worst
from laso.data import write_columns
from laso.engine import layout as at
from laso.engine.kernels.weight_table import most_entries
from laso.engine.thresholds import PACKED_SLOTS_PER_ITEM
from laso.engine.weights.bloom import with_filter
from laso.engine.weights.compact import keys_and_rows
from laso.engine.weights.packed_rows import is_packed, packed
from laso.engine.weights.row_layouts import dense_rows, n_labels
from laso.estimators import search
from laso.metrics.trees import tree_scores
from studies.corpus import CONLLU, read_conllu
from studies.paper import parsing
from tests.commands import Laso

TEXT = """\
# sent_id = 1
# text = The dogs don't bark loudly
1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2\tdogs\tdog\tNOUN\tNNS\t_\t5\tnsubj\t_\t_
3-4\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
3\tdo\tdo\tAUX\tVBP\t_\t5\taux\t_\t_
4\tn't\tnot\tPART\tRB\t_\t5\tadvmod\t_\t_
5\tbark\tbark\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
5.1\tit\tit\tPRON\tPRP\t_\t_\t_\t5:dep\t_
6\tloudly\tloudly\tADV\tRB\t_\t5\tadvmod\t_\t_

# sent_id = 2
1\tA\ta\tDET\tDT\t_\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\tNN\t_\t3\tnsubj\t_\t_
3\tsleeps\tsleep\tVERB\tVBZ\t_\t0\troot\t_\t_

# sent_id = 3
1\tSleep\tsleep\tVERB\tVB\t_\t0\troot\t_\t_
2\tthe\tthe\tDET\tDT\t_\t4\tdet\t_\t_
3\told\told\tADJ\tJJ\t_\t4\tamod\t_\t_
4\tcat\tcat\tNOUN\tNN\t_\t1\tobj\t_\t_

"""
X = [
    [("The", "DET"), ("dogs", "NOUN"), ("bark", "VERB"), ("loudly", "ADV")],
    [("A", "DET"), ("cat", "NOUN"), ("sleeps", "VERB")],
    [("Sleep", "VERB"), ("the", "DET"), ("old", "ADJ"), ("cat", "NOUN")],
    [("bark", "VERB")],
]
Y = [
    [(2, "det"), (3, "nsubj"), (0, "root"), (3, "advmod")],
    [(2, "det"), (3, "nsubj"), (0, "root")],
    [(0, "root"), (4, "det"), (4, "amod"), (1, "obj")],
    [(0, "root")],
]


@cache
def fitted() -> Parser:
    return Parser(epochs=10).fit(X, Y)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_it_learns_its_trees():
    assert fitted().predict(X) == Y
    assert fitted().score(X, Y) == 1.0
    assert fitted().predict([[], [("cat", "NOUN")]]) == [[], [(0, "root")]]
    assert fitted().task_.state_["coverage"] == [4, 4, 12, 0]


def test_files_and_lists_are_the_same(file):
    of_file = Parser(epochs=5, columns=["w", "pos", "xpos"]).fit(file)
    rows = [line.split("\t") for line in TEXT.splitlines() if "\t" in line]
    rows = [row for row in rows if row[0].isdigit()]
    sentences: list[Any] = []
    trees: list[Any] = []
    for row in rows:
        if row[0] == "1":
            sentences.append([])
            trees.append([])
        sentences[-1].append((row[1], row[3], row[4]))
        trees[-1].append((int(row[6]), row[7]))
    of_lists = Parser(epochs=5).fit(sentences, trees)
    assert of_file.predict(file) == of_lists.predict(sentences) == trees
    assert of_file.score(file) == 1.0


def test_column_files(tmp_path):
    path = tmp_path / "trees.txt"
    rows = [
        [(*token, str(head), label) for token, (head, label) in zip(*pair, strict=True)]
        for pair in zip(X, Y, strict=True)
    ]
    write_columns(path, rows)
    model = Parser(epochs=10).fit(path)
    assert _weights(model) == _weights(fitted())
    assert model.predict(path) == fitted().predict(rows) == Y
    found = parsing.scores_of(model, path)
    assert (found["uas"], found["las"], found["exact"]) == (100, 100, 100)


def test_the_report_of_the_experiment(tmp_path):
    (path,) = parsing.write([], {}, tmp_path)
    assert "# Dependency trees" in path.read_text(encoding="utf-8")


def test_the_report_has_the_beams_of_training_and_of_decoding(tmp_path):
    pytest.importorskip("matplotlib")
    how: Any = {"system": parsing.FIRST, "update": perceptron(weighting=worst)}
    model = Parser(queue=4, epochs=3, **how).fit(X, Y)
    path = tmp_path / "trees.txt"
    write_columns(
        path,
        [
            [(*token, str(head), label) for token, (head, label) in zip(*pair, strict=True)]
            for pair in zip(X, Y, strict=True)
        ],
    )
    parts = parsing.evaluate(model, path)["parts"]
    assert [part["decode_beam"] for part in parts] == [1, 4, 8, 16]
    assert model.queue == 4
    other = Parser(queue=4, epochs=3, strategy=early).fit(X, Y)
    assert [part["decode_beam"] for part in parsing.evaluate(other, path)["parts"]] == [4]
    same = {"row": "LaSO at beam 4", "features": "default", "resources": [], "corpus": "some"}
    more = {"epochs": 3, "cpu_s": 1.0, "peak_mb": 1.0, "seed": 0, "machine": {}, "jobs": 1}
    more["versions"] = {"laso": "1"}
    text, *pictures = parsing.write([{**same, **more, **part} for part in parts], {}, tmp_path)
    assert "Table 3 for trees" in text.read_text(encoding="utf-8")
    assert [path.name for path in pictures] == ["parsing-heat.svg", "parsing-beams.svg"]


def test_the_corpus_of_the_experiment_has_trees(file):
    sentences = read_conllu(file, CONLLU["ud_ewt_trees"])
    assert sentences[1][2] == ("sleeps", "VERB", "VBZ", "0", "root")


def test_it_is_saved_with_all_it_knows(tmp_path):
    path = tmp_path / "parser.laso"
    fitted().save(path)
    loaded = load_model(path)
    assert isinstance(loaded, Parser)
    assert loaded.predict(X) == Y
    with pytest.raises(BadModel, match="expected Tagger"):
        Tagger.load(path)


def test_training_goes_on(tmp_path):
    path = tmp_path / "parser.laso"
    Parser(epochs=2).fit(X, Y).save(path, training=True)
    resumed = Parser.load(path).resume(X, Y, epochs=10)
    assert resumed.n_iter_ == fitted().n_iter_
    assert _weights(resumed) == _weights(fitted())


def _weights(model: Parser) -> dict[int, list[float]]:
    keys, rows = keys_and_rows(model.weights_)
    return dict(zip(keys.tolist(), dense_rows(model.weights_, rows).tolist(), strict=True))


def test_sparse_rows_are_the_same_model(monkeypatch, tmp_path):
    monkeypatch.setattr(search, "MANY_LABELS", 1)
    sparse = Parser(epochs=10).fit(X, Y)
    assert len(sparse.weights_.heads)
    assert not len(fitted().weights_.heads)
    assert _weights(sparse) == _weights(fitted())
    paths = tmp_path / "a.laso", tmp_path / "b.laso"
    for model, path in zip((sparse, Parser(epochs=10).fit(X, Y)), paths, strict=True):
        model.save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    sparse.save(paths[0], training=True)
    monkeypatch.undo()
    fitted().save(paths[1], training=True)
    dense = Parser.load(paths[1]).resume(X, Y, epochs=12)
    monkeypatch.setattr(search, "MANY_LABELS", 1)
    loaded = Parser.load(paths[0])
    assert len(loaded.weights_.heads)
    assert _weights(loaded) == _weights(sparse)
    further = loaded.resume(X, Y, epochs=12)
    assert _weights(further) == _weights(dense)
    assert sparse.explain(X[1])["score"] == fitted().explain(X[1])["score"]
    assert sparse.inspect()["size"]["weights"] == fitted().inspect()["size"]["weights"]
    assert sparse.biased({"shift": 0.5}).predict(X) == fitted().biased({"shift": 0.5}).predict(X)


def test_rows_with_many_weights_are_full_and_come_first(monkeypatch):
    monkeypatch.setattr(search, "MANY_LABELS", 1)
    model = Parser(epochs=10).fit(X, Y)
    table = model.weights_
    labels = n_labels(table)
    full = table.heads[:, at.HEAD_LENGTH] == labels
    n = np.count_nonzero(full)
    assert 0 < n < len(full)
    assert full.tolist() == [True] * n + [False] * (len(full) - n)
    lengths = np.count_nonzero(dense_rows(table, np.arange(len(full))), axis=1)
    assert (full == (lengths > most_entries(labels))).all()
    inputs, dataset = model.encoded(X)
    faster = with_filter(table)
    assert model.decode(inputs, dataset, faster) == model.decode(inputs, dataset, table) == Y
    assert model.decode(inputs, dataset, packed(table)) == Y
    # Rows are packed when the calls so far pay for it; the model stays as it is.
    enough, before = len(table.slots) // PACKED_SLOTS_PER_ITEM, _weights(model)
    calls = 0
    while not is_packed(model.decoder(dataset).table_for(0)):
        assert model.predict(X) == Y
        calls += 1
    assert (calls - 1) * len(dataset.items) < enough
    assert model.predict(X) == Y
    assert _weights(model) == before


def test_the_weights_of_an_epoch_stay_as_they_were(monkeypatch):
    monkeypatch.setattr(search, "MANY_LABELS", 1)
    kept: list[Any] = []

    def after(training, weights):
        table = weights()
        kept.append((table, _rows(table)))

    Parser(epochs=10).fit(X, Y, after_epoch=after)
    assert len(kept) > 2
    assert all(_rows(table) == rows for table, rows in kept)
    # With a score that falls, the first epoch is the best, and is that of dense rows.
    wrong = [[(len(tree) - 1, "punct"), *tree[1:]] for tree in Y[:1]]
    models = []
    for labels in (1, 1000):
        monkeypatch.setattr(search, "MANY_LABELS", labels)
        models.append(Parser(epochs=10).fit([*X, X[0]], [*Y, Y[0]], dev=(X[:1], wrong)))
    assert models[0].best_epoch_ == models[1].best_epoch_
    assert _weights(models[0]) == _weights(models[1])


def _rows(table: Any) -> dict[int, list[float]]:
    keys, rows = keys_and_rows(table)
    return dict(zip(keys.tolist(), dense_rows(table, rows).tolist(), strict=True))


def test_nbest_and_confidence():
    model = fitted()
    found = model.predict_nbest(X, 3)
    assert [outputs[0][1] for outputs in found] == Y
    assert all(a >= b for outputs in found for (a, _), (b, _) in pairwise(outputs))
    for confidence, tree in zip(model.predict_confidence(X), Y, strict=True):
        assert confidence.output == tree
        assert [(part.label, part.start) for part in confidence.parts] == [
            (f"{head} {label}", i) for i, (head, label) in enumerate(tree)
        ]
        assert all(confidence.probability <= part.probability + 1e-9 for part in confidence.parts)
    model.calibrate(X, Y)
    assert model.reliability(X, Y).error < 0.5


def test_known_and_banned_arcs():
    model = fitted()
    known: list[Any] = [None, (4, None), None, None]
    tree = model.predict_forced(X[2:3], known=[known])[0]
    assert tree[1][0] == 4
    known = [(2, "amod"), None, None]
    assert model.predict_forced(X[1:2], known=[known])[0][0] == (2, "amod")
    with pytest.raises(BadData, match="left obj"):
        model.predict_forced(X[1:2], known=[[(2, "obj"), None, None]])
    free = model.predict_forced(X, known=None)
    assert free == Y
    banned = model.predict_forced(X[1:2], banned=[["nsubj"]])[0]
    assert "nsubj" not in [label for _, label in banned]
    banned = model.predict_forced(X[1:2], banned=[[[2], [], []]])[0]
    assert banned[0][0] != 2
    banned = model.predict_forced(X[1:2], banned=[[[(2, "det")], [], []]])[0]
    assert banned[0] != (2, "det")
    with pytest.raises(BadData, match="2 known arcs for 3 tokens"):
        model.predict_forced(X[1:2], known=[[None, None]])


def test_an_explanation_names_the_word_and_the_features():
    decisions = fitted().explain(X[1], features=1000)["decisions"]
    arcs = [(d["first"], d["label"]) for d in decisions if d["label"] != "shift"]
    assert sorted(arcs) == [(0, "left det"), (1, "left nsubj"), (2, "root root")]
    names = {feature["name"] for d in decisions for feature in d["features"]}
    assert any(name.startswith("w[s0]=A") for name in names)
    assert not any(name.startswith("mix") for name in names)


@pytest.mark.parametrize("oracle", ["dynamic", "static"])
def test_partial_trees(oracle):
    partial = [[arc if i % 2 else None for i, arc in enumerate(tree)] for tree in Y]
    model = Parser(epochs=5, oracle=oracle).fit(X * 2, [*Y, *partial])
    assert model.score(X, partial) == 1.0


def test_long_sentences(file):
    words = [("old", "ADJ")] * 1000 + [("cat", "NOUN")]
    tree = fitted().predict([words])[0]
    assert sum(head == 0 for head, _ in tree) == 1
    assert len(tree) == 1001


def test_bad_parameters_and_data():
    with pytest.raises(ValueError, match="system"):
        Parser(system="arc-lazy").fit(X, Y)
    with pytest.raises(ValueError, match="oracle"):
        Parser(oracle="none").fit(X, Y)
    with pytest.raises(BadData, match="found the head 9"):
        Parser().fit(X[1:2], [[(9, "det"), (3, "nsubj"), (0, "root")]])
    with pytest.raises(BadData, match="training has not seen"):
        fitted().trace(X[3], [(0, "other")])


# --------------------------------------------------------------------------- scores


def test_scores_by_hand():
    # Subtypes do not count, punctuation does; two of four content words are right.
    gold = [
        [(2, "nsubj:pass"), (0, "root"), (2, "obl"), (2, "punct")],
        [(2, "case"), (0, "root")],
    ]
    found = [
        [(2, "nsubj"), (0, "root"), (1, "obl"), (2, "punct")],
        [(2, "obj"), (0, "root")],
    ]
    scores = tree_scores(gold, found)
    assert scores.uas == pytest.approx(100 * 5 / 6)
    assert scores.las == pytest.approx(100 * 4 / 6)
    # Content words: 4 in gold (nsubj, root, obl, root), 5 predicted (obj too), 3 right.
    assert scores.clas == pytest.approx(100 * 2 * 3 / (4 + 5))
    assert scores.exact == 0.0
    assert scores.labels["nsubj"].f == 100.0
    assert scores.labels["case"].recall == 0.0
    assert scores.lengths == {"1 to 10": (6, scores.uas, scores.las)}


def test_unknown_gold_arcs_do_not_count():
    gold = [[(None, None), (0, None)]]
    scores = tree_scores(gold, [[(2, "det"), (0, "root")]])
    assert (scores.words, scores.uas, scores.las) == (1, 100.0, 0.0)


def test_trees_of_other_sizes_are_refused():
    with pytest.raises(BadData, match="a predicted tree of 1 words, expected 2"):
        tree_scores([Y[1][:2]], [[(0, "root")]])


# --------------------------------------------------------------------------- command line


def test_the_command_line_keeps_all_of_conllu(file, tmp_path, monkeypatch, capsysbinary):
    laso = Laso(monkeypatch, capsysbinary)
    model = tmp_path / "trees.laso"
    trained = laso("train", str(file), "--task", "parse", "--epochs", "5", "--model", str(model))
    assert "learned trees from" in trained.out
    tagged = laso("tag", str(model), str(file))
    assert tagged.out == TEXT
    blank = tmp_path / "blank.conllu"
    lines = [
        "\t".join([*line.split("\t")[:6], "_", "_", *line.split("\t")[8:]])
        if line[:1].isdigit() and line.split("\t")[0].isdigit()
        else line
        for line in TEXT.split("\n")
    ]
    blank.write_text("\n".join(lines), encoding="utf-8")
    assert laso("tag", str(model), str(blank)).out == TEXT
    assert "LAS 100.00" in laso("eval", str(model), str(file)).out
