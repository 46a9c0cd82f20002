"""Model files without compression: the same outputs, read or mapped, and no array trusted."""

import copy
import os
import pickle
from random import Random
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from laso import BadModel, Parser, SearchEstimator, Tagger, exact, load_model, standard
from laso.cli import app
from laso.data import load_bundled, write_columns
from laso.engine.weights import row_layouts
from laso.engine.weights.compact import keys_and_rows
from laso.examples.segmentation import Segmentation
from laso.features import vocabulary
from laso.features.value_tables import known_values
from laso.features.vocabulary import Vocabulary
from laso.files.container import DIGEST, file_bytes, read_bytes, read_file, write_file
from tests.fuzz.mutants import model_mutant
from tests.fuzz.targets import TARGETS, outcome
from tests.spaces import quick
from tests.test_model_format import by_hand, strings_by_hand

TRAIN, TEST = load_bundled()
WORDS = [[token[:2] for token in s] for s in TEST]
ODD = [[("", "DT"), ("Ünïcode\ud800", "NN")], [("the", "?"), ("cat" * 9, "NN")], []]
TREES = (
    [[("the", "D"), ("dogs", "N"), ("bark", "V")], [("Sleep", "V"), ("the", "D"), ("cat", "N")]],
    [[(2, "det"), (3, "nsubj"), (0, "root")], [(0, "root"), (3, "det"), (1, "obj")]],
)
FEATURES = ["w[-1..1]", "pos[0]", "w.suffix2.lower[0]", "w.shape[0]", "label[-1]"]


@pytest.fixture(scope="module")
def tagger():
    data = [*TRAIN[:100], [("", "X", "O"), ("naïve", "JJ", "O")]]
    return Tagger(features=FEATURES, epochs=2).fit(data)


def parser():
    return Parser(epochs=3).fit(*TREES), TREES[0], {}


def with_taggers():
    X = [[("the", "D"), ("dogs", "N"), ("bark", "V")], [("Sleep", "V"), ("the", "D"), ("cat", "N")]]
    model = Parser(epochs=2, tagger=Tagger(epochs=2), folds=2)
    return model.fit(X, TREES[1]), [["the", "cat"], ["dogs", "bark"]], {}


def own():
    outputs = [line.split() for line in ("the cat sat", "the dog sat on the mat")]
    inputs = ["".join(words) for words in outputs]
    model = SearchEstimator(Segmentation(), epochs=3).fit(inputs, outputs)
    return model, inputs, {"task": Segmentation()}


def dicts():
    X = [[{"w": w, "n": 2.0} for w, *_ in s] for s in TRAIN[:40]]
    y = [[tag for *_, tag in s] for s in TRAIN[:40]]
    return Tagger(epochs=2).fit(X, y), X, {}


def hashed():
    return Tagger(features=FEATURES, epochs=2, hash_bits=10).fit(TRAIN[:40]), WORDS, {}


def weights(model):
    keys, of = keys_and_rows(model.weights_)
    return dict(
        zip(keys.tolist(), map(tuple, row_layouts.dense_rows(model.weights_, of)), strict=True)
    )


def same_everywhere(model, X, folder, **options):
    """All that a model does, from memory, and from its file read and mapped."""
    expected, small = model.predict(X), folder / "small"
    size = model.save(folder / "plain", compress=False)
    assert size == (folder / "plain").stat().st_size
    for mmap in (False, True):
        again = load_model(folder / "plain", mmap=mmap, **options)
        assert [again.predict_single(x) for x in X[:5]] == list(expected[:5])
        assert list(again.predict(X)) == list(expected)
        assert weights(again) == weights(model)
        assert again.save(folder / "again", compress=False) == size
        assert (folder / "again").read_bytes() == (folder / "plain").read_bytes()
        again.save(small)
        assert small.stat().st_size == model.save(folder / "usual")
        assert list(load_model(small, **options).predict(X)) == list(expected)
    return again


def test_a_tagger_labels_alike(tagger, tmp_path):
    again = same_everywhere(tagger, WORDS[:30] + ODD, tmp_path)
    x = WORDS[0]
    assert again.explain(x) == tagger.explain(x)
    assert again.inspect() == tagger.inspect()
    assert isinstance(Tagger.load(tmp_path / "plain", mmap=True), Tagger)
    assert pickle.loads(pickle.dumps(again)).predict(ODD) == tagger.predict(ODD)
    assert copy.deepcopy(again).predict(ODD) == tagger.predict(ODD)
    frozen = load_model(tmp_path / "plain").freeze(WORDS[:30])
    assert frozen.predict(WORDS[:30]) == tagger.predict(WORDS[:30])
    same_everywhere(frozen, WORDS[:30], tmp_path)


@pytest.mark.parametrize("made", [parser, with_taggers, own, dicts, hashed])
def test_other_models_do_so_too(made, tmp_path):
    model, X, options = made()
    same_everywhere(model, X, tmp_path, **options)
    if made is dicts:
        again: Any = load_model(tmp_path / "plain")
        assert again.state_features_ == model.state_features_


def test_sparse_rows_too(monkeypatch, tmp_path):
    monkeypatch.setattr("laso.estimators.search.MANY_LABELS", 2)
    model, X, _ = parser()
    assert row_layouts.is_sparse(model.weights_)
    again = same_everywhere(model, X, tmp_path)
    assert row_layouts.is_sparse(again.weights_)
    tagger = Tagger(features=["w[0]", "label[-1]"], epochs=1).fit(TRAIN[:9])
    monkeypatch.setattr("laso.estimators.search.MANY_LABELS", 80)
    assert row_layouts.is_sparse(load_model(tmp_path / "plain").weights_)  # as the file has them
    tagger.save(tmp_path / "plain", compress=False)

    def exactly(header, tensors):
        header["parameters"] |= {"queue": {"value": "exact()"}, "strategy": {"value": "standard"}}

    with pytest.raises(BadModel, match="its rows are sparse, expected dense ones of"):
        load_model(rewritten(tmp_path / "plain", exactly))
    tagger.set_params(queue=exact(), strategy=standard).save(tmp_path / "plain")
    assert not row_layouts.is_sparse(load_model(tmp_path / "plain").weights_)


# --------------------------------------------------------------------------- strings


def test_values_of_a_file_are_found_as_those_of_training(tagger, tmp_path):
    """Each look-up by dictionary and by compiled code is the same."""
    tagger.save(tmp_path / "plain", compress=False)
    again: Any = load_model(tmp_path / "plain")
    other: Any = load_model(tmp_path / "plain")
    encoder, usual = again.task_.encoder_, tagger.task_.encoder_
    strings = [*usual.vocabularies[0], "none", "", "thé", "\ud800", "cat" * 9]
    for column, known in encoder.vocabularies.items():
        expected = [usual.vocabularies[column].get(s, -1) for s in strings]
        assert known.some(np.arange(len(known))) == list(usual.vocabularies[column])
        assert known.numbers(strings).tolist() == expected
        assert known.numbers([]).tolist() == []
        assert known.numbers([*strings, 7]).tolist() == [*expected, -1]  # nothing but strings
        assert known == usual.vocabularies[column]
    new = ["none", "thé", "\ud800", "cat" * 9]
    for view, like in zip(encoder.views.values(), usual.views.values(), strict=True):
        assert view.of_value.tolist() == like.of_value.tolist()
        assert view.numbers(new).tolist() == like.numbers(new).tolist()
        assert view.ids == like.ids
        assert list(view.ids) == list(like.ids)
        assert view.checksum() == like.checksum()
    lexicons = [known_values(each.task_.encoder_).lexicon for each in (tagger, other)]
    for a, b in zip(*lexicons, strict=True):
        assert np.array_equal(a, b)


def test_compiled_code_makes_no_dictionary(tagger, tmp_path):
    tagger.save(tmp_path / "plain", compress=False)
    again: Any = load_model(tmp_path / "plain")
    known = again.task_.encoder_.vocabularies[0]
    again.predict([[("the", "DT"), ("unknown", "NN")]] * 2)
    assert known._numbers is None
    again.predict_single([("the", "DT"), ("unknown", "NN")])
    assert known._numbers is not None


@quick
@given(st.lists(st.lists(st.text(st.characters(codec=None), max_size=9), max_size=5), max_size=3))
def test_a_vocabulary_is_a_dictionary(parts):
    expected: dict[str, int] = {}
    made = Vocabulary()
    for strings in parts:
        before = made.copy()
        assert made.add(strings).tolist() == [
            expected.setdefault(string, len(expected)) for string in strings
        ]
        again = Vocabulary.unpack(made.pack(), distinct=True)
        for each in (made, made.copy(), again, pickle.loads(pickle.dumps(made))):
            assert len(each) == len(expected)
            assert dict(each) == expected
            assert list(each) == list(expected)
            assert each.some(np.arange(len(each))) == list(expected)
            assert each.numbers([*strings, "x" * 10]).tolist() == [
                *(expected[string] for string in strings),
                -1,
            ]
        assert len(before) <= len(made)


@quick
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9), max_size=12))
def test_equal_hashes_are_found(hashes):
    assert vocabulary._has_twice(np.array(hashes, np.int64)) == (len(set(hashes)) < len(hashes))


def test_strings_with_one_hash_are_not_taken_for_one(monkeypatch):
    monkeypatch.setattr(vocabulary, "text_keys", lambda text, lengths: np.zeros_like(lengths))
    tensors = Vocabulary(["a", "b"]).pack()
    assert list(Vocabulary.unpack(tensors, distinct=True)) == ["a", "b"]
    tensors["text"] = np.frombuffer(b"aa", np.uint8)
    with pytest.raises(BadModel, match="found a string twice"):
        Vocabulary.unpack(tensors, distinct=True)
    with pytest.raises(BadModel, match="found a string twice"):
        list(Vocabulary.unpack(tensors, distinct=False))


def test_base_features_that_come_out_otherwise_are_refused(tagger, tmp_path, monkeypatch):
    tagger.save(tmp_path / "plain", compress=False)
    monkeypatch.setattr("unicodedata.unidata_version", "1.0")
    assert load_model(tmp_path / "plain").predict(ODD) == tagger.predict(ODD)  # computed anew

    def change(header, tensors):
        tensors["task.base.2.numbers"][-1] ^= 1

    def unsaid(header, tensors):
        header["learned"].pop("unicode")

    tagger.save(tmp_path / "unsaid", compress=False)
    assert load_model(rewritten(tmp_path / "unsaid", unsaid)).predict(ODD) == tagger.predict(ODD)
    with pytest.raises(BadModel, match="its base features come out otherwise here"):
        load_model(rewritten(tmp_path / "plain", change))


# --------------------------------------------------------------------------- the file


def test_the_file_is_read_by_hand(tagger, tmp_path):
    """As docs/reference/model-file.md says, with nothing of laso."""
    tagger.save(tmp_path / "plain", compress=False)
    data = (tmp_path / "plain").read_bytes()
    header, arrays = by_hand(data)
    assert header["compressed"] is False
    slots = arrays["slots"].reshape(-1, 2)
    found = {
        int(key): tuple(arrays["weights"].reshape(-1, header["labels"])[row - 1])
        for key, row in slots
        if row
    }
    assert found == weights(tagger)
    words = strings_by_hand(arrays, "task.values.0")
    assert words == list(tagger.task_.encoder_.vocabularies[0])
    bases = strings_by_hand(arrays, "task.base.2")
    of_words = [bases[i] for i in arrays["task.base.2.numbers"]]
    assert of_words == [word[-2:].lower() for word in words]
    assert set(safetensors.numpy.load(data)) == set(arrays)


def test_rounded_weights_and_the_state_of_training_too(tagger, tmp_path):
    tagger.save(tmp_path / "half", precision="float16")
    tagger.save(tmp_path / "plain", precision="float16", compress=False)
    tagger.save(tmp_path / "state", training=True, compress=False)
    again: Any = load_model(tmp_path / "state", mmap=True)
    again.partial_fit(TRAIN[100:110])
    assert weights(again) == weights(copy.deepcopy(tagger).partial_fit(TRAIN[100:110]))
    for mmap in (False, True):
        assert weights(load_model(tmp_path / "plain", mmap=mmap)) == weights(
            load_model(tmp_path / "half")
        )


def test_what_cannot_be_mapped_is_refused(tagger, tmp_path):
    tagger.save(tmp_path / "usual")
    with pytest.raises(BadModel, match=r"compressed, expected a file of save\(path, compress=F"):
        load_model(tmp_path / "usual", mmap=True)
    (tmp_path / "empty").write_bytes(b"")
    for mmap in (False, True):
        with pytest.raises(BadModel, match="it is empty"):
            load_model(tmp_path / "empty", mmap=mmap)


def test_damage_is_found_everywhere(tagger, tmp_path):
    tagger.save(tmp_path / "plain", compress=False)
    data, draw = (tmp_path / "plain").read_bytes(), Random(0)
    for place in [0, 7, 8, len(data) - 1, *(draw.randrange(len(data)) for _ in range(100))]:
        changed = bytearray(data)
        changed[place] ^= 1 << draw.randrange(8)
        (tmp_path / "plain").write_bytes(changed)
        with pytest.raises(BadModel, match="cannot be loaded"):
            load_model(tmp_path / "plain")
    for cut in (0, 5, 100, len(data) // 2, len(data) - 1):
        (tmp_path / "plain").write_bytes(data[:cut])
        for mmap in (False, True):
            with pytest.raises(BadModel, match="cannot be loaded"):
                load_model(tmp_path / "plain", mmap=mmap)


def test_a_mapped_model_stays_when_its_file_is_replaced(tagger, tmp_path):
    path, expected = tmp_path / "plain", tagger.predict(ODD)
    tagger.save(path, compress=False)
    mapped = load_model(path, mmap=True)
    before = path.read_bytes()
    Tagger(features=["w[0]"], epochs=1).fit(TRAIN[:9]).save(path, compress=False)
    assert mapped.predict(ODD) == expected
    mapped.weights_.v[:] = 0  # memory of this model alone
    tagger.save(path, compress=False)
    load_model(path, mmap=True).weights_.v[:] = 0
    assert path.read_bytes() == before
    os.remove(path)


# --------------------------------------------------------------------------- made by hand


def rewritten(path, change):
    """The file with header and tensors that someone has changed, checksums mended."""
    header, tensors = read_file(path)
    change(header, tensors)
    for name in ("digest", "compressed", "library", "arrays", "format"):
        header.pop(name, None)
    write_file(path, header, tensors, compress=False)
    return path


def set_at(name, place, value):
    def change(header, tensors):
        tensors[name][place] = value

    return change


def cut(name):
    def change(header, tensors):
        tensors[name] = tensors[name][:-1]

    return change


def full(header, tensors):
    slots = tensors["slots"].reshape(-1, 2)
    slots[slots[:, 1] == 0, 1] = 1


def twice(header, tensors):
    text = tensors["task.values.1.text"].tobytes().replace(b"VBD", b"VBG")
    tensors["task.values.1.text"] = np.frombuffer(text, np.uint8).copy()


LENGTHS = "task.values.0.lengths"


def turned(name):
    def change(header, tensors):
        tensors[name] = tensors[name][::-1].copy()

    return change


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (set_at("slots", 1, 10**6), "found keys of other rows"),
        (set_at("slots", 1, -1), "found keys of other rows"),
        (full, "expected one for each"),
        (cut("slots"), "expected rows of 2"),
        (cut("weights"), "numbers, expected rows of"),
        (set_at("weights", 0, np.nan), "no finite numbers"),
        (set_at("weights", -1, np.inf), "no finite numbers"),
        (lambda h, t: t.update(weights=t["weights"].astype("<f8")), "found an array of float64"),
        (lambda h, t: t.update(slots=t["slots"][:-6]), "expected a power of two"),
        (lambda h, t: t.update(slots=t["slots"][:0]), "expected a power of two"),
        (lambda h, t: t.pop("slots"), "keys"),
        (set_at("task.values.0.lengths", 3, 2**32 - 1), "beyond their text"),
        (set_at("task.values.0.lengths", -1, 10**9), "beyond their text"),
        (cut("task.values.0.text"), "beyond their text"),
        (set_at("task.values.0.text", 5, 0xFF), "decode"),
        (twice, "found a string twice"),
        (
            lambda h, t: t.update({LENGTHS: t[LENGTHS].astype("<i4")}),
            "as",
        ),
        (set_at("task.base.2.lengths", 3, 99), "beyond their text"),
        (set_at("task.base.2.text", 1, 0xFF), "decode"),
        (set_at("task.base.2.numbers", 0, 10**6), "base features of other strings"),
        (set_at("task.base.2.numbers", 0, -1), "base features of other strings"),
        (turned("task.base.2.numbers"), "its base features come out otherwise here"),
        (cut("task.base.2.numbers"), r"found \d+ base features as"),
        (lambda h, t: t.pop("task.base.2.numbers"), "numbers"),
        (lambda h, t: t.pop("task.base.2.text"), "text"),
        (lambda h, t: t.pop("task.values.0.text"), "text"),
    ],
)
def test_hostile_arrays_are_refused(tagger, tmp_path, change, match):
    tagger.save(tmp_path / "plain", compress=False)
    path = rewritten(tmp_path / "plain", change)
    for mmap in (False, True):
        with pytest.raises(BadModel, match=match):
            load_model(path, mmap=mmap)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (set_at("labels", 0, 2), "in a row of its weights"),
        (set_at("labels", 0, -1), "for other labels"),
        (set_at("labels", 0, 9), "for other labels"),
        (cut("labels"), "do not add up"),
        (cut("weights"), "not equally many"),
        (lambda h, t: t.pop("labels"), "labels"),
        (lambda h, t: t.update(labels=t["labels"].astype("<f4")), "found an array of float32"),
        (set_at("lengths", 0, 2**32 - 1), "too many weights"),
        (set_at("lengths", -1, 0), "do not add up"),
    ],
)
def test_hostile_sparse_rows_are_refused(monkeypatch, tmp_path, change, match):
    monkeypatch.setattr("laso.estimators.search.MANY_LABELS", 2)
    parser()[0].save(tmp_path / "plain", compress=False)
    with pytest.raises(BadModel, match=match):
        load_model(rewritten(tmp_path / "plain", change))


def test_keys_that_nobody_finds_are_not_saved(tagger, tmp_path):
    """A file made by hand may have them: it loads, and they do no harm."""

    def misplaced(header, tensors):
        slots = tensors["slots"].reshape(-1, 2)
        used = np.flatnonzero(slots[:, 1])
        slots[used[0], 0] += 7

    def twice(header, tensors):
        slots = tensors["slots"].reshape(-1, 2)
        where = np.flatnonzero((slots[:-1, 1] != 0) & (slots[1:, 1] != 0))[0]
        slots[where + 1, 0] = slots[where, 0]

    for change in (misplaced, twice):
        tagger.save(tmp_path / "plain", compress=False)
        model = load_model(rewritten(tmp_path / "plain", change))
        model.predict(ODD)
        with pytest.raises(BadModel, match=r"a key that is not in its place|a key twice"):
            model.save(tmp_path / "again")


def test_slots_without_a_free_one_among_many_are_refused():
    from laso.files.weight_tensors import CHECKED_AT_A_TIME as N
    from laso.files.weight_tensors import check_slots

    slots = np.zeros((4 * N, 2), np.int64)
    slots[:N, 1] = np.arange(1, N + 1)
    with pytest.raises(BadModel, match="collide too often"):
        check_slots(slots, N)
    slots[: N // 2, 1] = 0
    slots[N : N + N // 2, 1] = np.arange(1, N // 2 + 1)
    check_slots(slots, N)


def test_mutants_with_mended_checksums_are_answered(tmp_path):
    """A few hundred of them, with what models do; ``python -m tests.fuzz`` makes more."""
    target, draw = TARGETS["model"], Random(5)
    seeds = [data for data in target.seeds() if b'\\"compressed\\":false' in data]
    assert seeds
    kinds = {"ok": 0, "error": 0}
    for _ in range(300):
        kind, text = outcome(target, model_mutant(draw.choice(seeds), draw), tmp_path)
        assert kind in ("ok", "error", "compile"), text
        kinds[kind] = kinds.get(kind, 0) + 1
    assert kinds["error"] > 100


def test_the_bytes_in_memory_are_read_alike(tagger):
    from laso.files.estimator import from_bytes, packed_model

    data = file_bytes(*packed_model(tagger, None, False, compress=False), compress=False)
    assert from_bytes(data).predict(ODD) == tagger.predict(ODD)
    header, tensors = read_bytes(data)
    assert header["compressed"] is False
    assert all(tensor.flags.writeable for tensor in tensors.values())
    assert DIGEST.search(data)


# --------------------------------------------------------------------------- the command line


def test_the_commands(tmp_path):
    run = CliRunner().invoke
    write_columns(tmp_path / "train.txt", TRAIN[:60])
    write_columns(tmp_path / "dev.txt", TEST[:20])
    model, text, plain = (str(tmp_path / name) for name in ("model", "dev.txt", "plain"))
    train = run(app, ["train", str(tmp_path / "train.txt"), "--model", model, "--epochs", "2"])
    assert train.exit_code == 0, train.output
    made = run(app, ["freeze", model, text, "--output", plain, "--no-compress"])
    assert made.exit_code == 0, made.output
    assert load_model(plain, mmap=True).predict(WORDS[:3]) == load_model(plain).predict(WORDS[:3])
    outputs = [run(app, ["tag", each, text]).output for each in (model, plain)]
    assert outputs[0] == outputs[1]
    inspected = run(app, ["inspect", plain])
    assert inspected.exit_code == 0, inspected.output
