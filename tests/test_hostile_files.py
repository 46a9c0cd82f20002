"""Model files that hang, reach out or take too much: each is refused, at once, with BadModel."""

import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from laso import (
    CRF,
    BadData,
    BadModel,
    BadTemplate,
    Chunker,
    JointTagger,
    OutOfMemory,
    Parser,
    Tagger,
    load_model,
)
from laso.features.templates import parse_templates
from laso.features.vocabulary import Vocabulary
from laso.files.container import read_file, write_file
from laso.files.limits import memory_of
from laso.files.opening import open_input, open_regular
from laso.files.weight_tensors import pack_weights
from tests.test_model_format import GOLDEN, digested, with_header

X = [["the", "kettle", "boiled"], ["a", "dog", "slept"], ["dogs", "slept"]]
Y = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"]]


def rewritten(path, change, of=GOLDEN):
    """A copy of a model file whose header and tensors someone has changed, digests mended."""
    header, tensors = read_file(of)
    change(header, tensors)
    for name in ("digest", "compressed", "library", "arrays", "format"):
        header.pop(name, None)
    write_file(path, header, tensors)
    return path


def refused(path, match, **options):
    begun = time.process_time()
    with pytest.raises(BadModel, match=match) as error:
        load_model(path, **options)
    assert time.process_time() - begun < 5.0
    assert str(path) in str(error.value)
    assert len(str(error.value)) < 3000


# --------------------------------------------------------------------------- lists


@pytest.fixture
def rivers(tmp_path):
    path = tmp_path / "rivers.txt"
    path.write_text("Rhine\nRio Grande\n", encoding="utf-8")
    features = ["w[0]", f'w.list("{path}")[0]', "label[-1]"]
    words = [["the", "Rhine"], ["the", "cat"], ["a", "Rio"], ["a", "dog"]]
    tags = [["D", "R"], ["D", "N"], ["D", "R"], ["D", "N"]]
    return path, Tagger(features=features, epochs=5).fit(words, tags)


def test_a_word_list_travels_in_the_file(rivers, tmp_path):
    path, tagger = rivers
    unseen = [["the", "Grande"], ["the", "house"]]
    wanted = tagger.predict(unseen)
    assert wanted == [["D", "R"], ["D", "N"]]
    tagger.save(tmp_path / "model", training=True)
    path.unlink()
    again = load_model(tmp_path / "model")
    assert again.predict(unseen) == wanted
    assert again.save(tmp_path / "again", training=True) == (tmp_path / "model").stat().st_size
    assert load_model(tmp_path / "again").predict(unseen) == wanted
    again.partial_fit([["the", "Grande"]], [["D", "R"]])
    again.fit([["the", "Rhine"], ["the", "cat"]], [["D", "R"], ["D", "N"]])  # reads no file either
    assert again.predict([["the", "Grande"]]) == [["D", "R"]]


def test_a_file_of_a_chunker_has_its_lists_too(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("Ann\nBob\n", encoding="utf-8")
    data = [[("Ann", "B-PER"), ("saw", "O")], [("Bob", "B-PER"), ("ran", "O")]] * 3
    model = Chunker(features="paper", resources=[str(path)], epochs=3).fit(data)
    model.save(tmp_path / "model")
    path.unlink()
    assert load_model(tmp_path / "model").predict([["Bob", "saw"]]) == model.predict(
        [["Bob", "saw"]]
    )


@pytest.mark.parametrize("name", ["/dev/zero", "/etc/passwd", "fifo", "/dev/stdin", "none.txt"])
def test_a_file_names_no_other_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")

    def change(header, tensors):
        header["learned"]["templates"][1] = f'w.list("{name}")[0]'

    refused(rewritten(tmp_path / "model", change), "expected its words in the model file")


def test_a_new_fit_of_a_loaded_model_reads_none_of_the_paths_in_it(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("kettle\n", encoding="utf-8")

    def change(header, tensors):
        header["parameters"]["features"] = ["w[0]", f'w.list("{secret}")[0]']

    model = load_model(rewritten(tmp_path / "model", change))
    with pytest.raises(BadModel, match="expected its words in the model file"):
        model.fit(X, Y)


def test_lists_and_models_are_regular_files(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, "/dev/zero"):
        begun = time.perf_counter()
        with pytest.raises(BadData, match="expected a regular file"):
            open_regular(path)
        with pytest.raises(BadModel, match="expected a regular file"):
            load_model(path)
        with pytest.raises(BadData, match="expected a regular file"):
            Tagger(features=[f'w.list("{path}")[0]']).fit(X, Y)
        assert time.perf_counter() - begun < 2.0
    with pytest.raises(BadData, match="found a device, expected a file or a pipe"):
        open_input("/dev/zero")
    with pytest.raises(BadData, match="found a device"):
        Tagger().fit("/dev/zero")
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none")


def test_data_may_come_through_a_pipe(tmp_path):
    code = "import sys; from laso.data import read_columns; print(len(read_columns(sys.argv[1])))"
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = subprocess.Popen(
        [sys.executable, "-c", code, str(fifo)], stdout=subprocess.PIPE, text=True
    )
    fifo.write_text("a X\n\nb Y\n", encoding="utf-8")
    assert reader.communicate(timeout=60)[0] == "2\n"


# --------------------------------------------------------------------------- patterns and windows


def test_a_pattern_of_a_file_runs_in_linear_time(tmp_path):
    tagger = Tagger(features=['w.test("^(a+)+$")[0]', "w[0]"], epochs=2)
    tagger.fit([["aaa", "b"]], [["A", "B"]]).save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    begun = time.perf_counter()
    assert model.predict([["a" * 30_000 + "!", "a" * 40]]) == [["B", "A"]]
    assert time.perf_counter() - begun < 3.0

    def change(header, tensors):
        header["learned"]["templates"][0] = r'w.test("^(a+)+\1$")[0]'

    refused(
        rewritten(tmp_path / "other", change, tmp_path / "model"), r"invalid escape sequence: \\1"
    )


def test_windows_are_not_without_bound():
    for text in ("w[-500..500]|w[-500..500]", "w[-9..9]|w[-9..9]|w[-9..9]|w[-9..9]"):
        with pytest.raises(BadTemplate, match="at most 5000 templates"):
            parse_templates([text])
    with pytest.raises(BadTemplate, match="found 5005 templates, expected at most 5000"):
        parse_templates([f"n{i}: w[-500..500]" for i in range(5)])
    with pytest.raises(BadTemplate, match="found 60 regular expressions, expected at most 50"):
        parse_templates([f'w.test("{i}")[0]' for i in range(60)])
    assert len(parse_templates(["w[-20..20]|w[-20..20]"])) == 41 * 41


# --------------------------------------------------------------------------- time and memory


def weights(n_keys, step, n_labels=3):
    """Tensors of weights for keys that are multiples of a step, one weight each."""
    matrix = np.zeros((n_keys, n_labels), "<f4")
    matrix[:, 0] = 1.0
    return {"keys": np.full(n_keys, step, "<u8"), "weights": matrix.ravel()}


@pytest.mark.parametrize("n", [40_000, 1_000_000])
def test_keys_that_collide_do_not_take_quadratic_time(tmp_path, n):
    path = rewritten(
        tmp_path / "model", lambda header, tensors: tensors.update(weights(n, 1 << 40))
    )
    assert path.stat().st_size < 70_000
    refused(path, "feature keys collide too often")


def test_usual_keys_are_placed_as_before(tmp_path):
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, 1 << 63, 200_000, dtype=np.uint64))

    def change(header, tensors):
        tensors.update(weights(len(keys), 1))
        tensors["keys"] = np.diff(keys, prepend=np.uint64(0)).astype("<u8")

    model = load_model(rewritten(tmp_path / "model", change))
    assert len(model.weights_.v) == len(keys)
    assert np.cumsum(pack_weights(model.weights_)["keys"])[-1] == keys[-1]


def wide(header, tensors):
    """A file of few bytes with weights for many labels."""
    labels = [f"L{i}" for i in range(1200)]
    header["learned"]["labels"], header["labels"] = labels, len(labels)
    tensors.update(weights(70_000, 0x9E3779B97F4A7C15 >> 20, 1200))


def test_a_small_file_does_not_unfold_to_gigabytes(tmp_path):
    path = rewritten(tmp_path / "model", wide)
    assert path.stat().st_size < 200_000
    refused(path, r"takes about 3\d\d\.\d MB of memory, which is more than the .* limit=")
    with pytest.raises(BadModel, match=r"more than the 100\.0 MB"):
        load_model(path, limit=1e8)


def test_the_limit_can_be_set(tmp_path, monkeypatch):
    header, _ = read_file(GOLDEN)
    needed = memory_of(header)
    assert 0 < needed < 1_000_000
    refused(GOLDEN, "more than", limit=needed - 1)
    assert load_model(GOLDEN, limit=needed).predict(X) == Y
    assert Tagger.load(GOLDEN, limit=float("inf")).predict(X) == Y
    path = rewritten(tmp_path / "model", many_labels)
    refused(path, "limit=")
    monkeypatch.setenv("LASO_LOAD_LIMIT", "2e9")
    assert len(load_model(path).classes_) == 2000
    monkeypatch.setenv("LASO_LOAD_LIMIT", "much")
    refused(path, "LASO_LOAD_LIMIT must be a number")


def many_labels(header, tensors):
    labels = [f"L{i}" for i in range(2000)]
    header["learned"]["labels"], header["labels"] = labels, len(labels)
    tensors.update(weights(40_000, 0x9E3779B97F4A7C15 >> 20, 2000))


def test_values_and_base_features_do_not_multiply(tmp_path):
    """Many values of a column, and many base features of each."""
    values = Vocabulary(map(str, range(300_000))).pack()

    def change(header, tensors):
        chains = [f"w.{'lower.' * i}suffix2[0]" for i in range(1, 40)]
        header["learned"]["templates"] = ["w[0]", *chains, "label[-1]"]
        tensors |= {f"task.values.0.{name}": tensor for name, tensor in values.items()}

    refused(rewritten(tmp_path / "model", change), "of memory, which is more")


def test_no_limit_stands_in_the_way_of_usual_models(tmp_path):
    """What a model takes is far from the limit, by the same estimate."""
    from laso.data import load_bundled

    train, _ = load_bundled()
    for model in (Tagger(epochs=1), Chunker(epochs=1)):
        size = model.fit(train).save(tmp_path / "model", training=True)
        header, _ = read_file(tmp_path / "model")
        assert memory_of(header) < 64 * size / 2


def test_rows_of_many_labels_count_by_their_weights(tmp_path):
    """A model of a thousand labels has short rows, also in memory."""
    words = [[f"w{i}" for i in range(1000)]]
    model = Tagger(features=["w[0]", "w[-1]"], epochs=1, queue=1).fit(words * 3, words * 3)
    size = model.save(tmp_path / "model", training=True)
    header, _ = read_file(tmp_path / "model")
    assert memory_of(header) < 64 * size / 2
    assert load_model(tmp_path / "model").predict(words) == model.predict(words)


@pytest.mark.parametrize("part", ["", "learning."])
def test_a_row_has_each_label_once(tmp_path, monkeypatch, part):
    def change(header, tensors):
        row = int(np.argmax(tensors[f"{part}lengths"] > 1))
        first = int(tensors[f"{part}lengths"][:row].sum())
        tensors[f"{part}labels"] = tensors[f"{part}labels"].copy()
        tensors[f"{part}labels"][first + 1] = tensors[f"{part}labels"][first]

    monkeypatch.setattr("laso.estimators.search.MANY_LABELS", 2)
    source = tmp_path / "source"
    Tagger(features=["w[0]", "label[-1]"], epochs=2).fit(X, Y).save(source, training=True)
    refused(rewritten(tmp_path / "model", change, of=source), "found a label twice")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
@pytest.mark.parametrize("name", ["step_length", "score"])
def test_numbers_of_a_file_are_finite(tmp_path, name, number):
    header, _ = read_file(GOLDEN)
    header["learned" if name == "step_length" else "metadata"][name] = 123456.25
    made = with_header(GOLDEN.read_bytes(), header)
    assert b"123456.25" in made
    path = tmp_path / "model"
    path.write_bytes(digested(made.replace(b"123456.25", number.encode().rjust(9))))
    refused(path, "expected a finite number")


@pytest.mark.parametrize("value", [0, -1.0, "1", [1.0], True, None, 1e-400])
def test_the_length_of_a_step_is_above_zero(tmp_path, value):
    def change(header, tensors):
        header["learned"]["step_length"] = value

    refused(rewritten(tmp_path / "model", change), "length of a step")


def test_no_file_decides_where_to_write_or_how_many_work(tmp_path):
    """What belongs to a run is the reader's own, whatever the file says."""
    target, source = tmp_path / "target", tmp_path / "source"
    target.write_text("mine", encoding="utf-8")
    attributes = [[{"w": word} for word in sentence] for sentence in X]
    CRF("ap", max_iterations=1).fit(attributes, Y).save(source)

    def change(header, tensors):
        header["parameters"] |= {"model_filename": str(target), "verbose": True, "n_jobs": 500_000}

    model: Any = load_model(rewritten(tmp_path / "model", change, of=source))
    assert (model.model_filename, model.verbose, model.n_jobs) == (None, False, None)
    model.fit(attributes, Y)
    assert target.read_text(encoding="utf-8") == "mine"


@pytest.fixture(scope="module")
def parser(tmp_path_factory):
    path = tmp_path_factory.mktemp("parser") / "parser"
    trees = [[(2, "det"), (3, "nsubj"), (0, "root")]] * 2
    how: Any = {"system": "arc-hybrid", "queue": 2}
    Parser(epochs=1, **how).fit(X[:2], trees).save(path, training=True)
    return path


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels", ["left det", "left nsubj", "root root", "shift", "reduce"]),
        ("labels", ["left det", "left nsubj", "root root", "shift ", "x"]),
        ("labels", ["left", "left nsubj", "root root", "shift"]),
        ("labels", ["left det", "left nsubj", "root root", "right"]),
        ("state", {"single_root": 1, "coverage": [0, 0, 0, 0]}),
        ("state", {"single_root": True, "coverage": [0, 0]}),
        ("state", {"single_root": True, "coverage": [0, 0, 0, "x"]}),
        ("state", {"single_root": True, "coverage": 5}),
        ("state", {}),
    ],
)
def test_the_file_of_a_parser_has_operators_and_a_state(tmp_path, parser, name, value):
    def change(header, tensors):
        header["learned"][name] = value
        header["labels"] = len(header["learned"]["labels"])

    refused(rewritten(tmp_path / "model", change, of=parser), "found the (operators|state)")


SETTINGS: dict[str, tuple[Any, str]] = {
    "queue": ({"value": "beam(1000000000)"}, "width of a beam"),
    "threads": (1_000_000, "threads must be"),
    "epochs": (10**12, "epochs must be"),
    "shards": (10**9, "shards must be"),
    "mixing": ("odd", "mixing must be"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_a_file_are_checked_as_in_a_constructor(tmp_path, name):
    value, message = SETTINGS[name]

    def change(header, tensors):
        header["parameters"][name] = value

    refused(rewritten(tmp_path / "model", change), message)


@pytest.mark.parametrize("width", ["-1", "0", "1.5", "True", "'5'", "None", "10**9"])
def test_widths_of_beams_that_make_no_sense(tmp_path, width):
    def change(header, tensors):
        header["parameters"]["queue"] = {"value": f"beam({width})"}

    refused(rewritten(tmp_path / "model", change), "beam|none of these")


@pytest.mark.parametrize("name", ["lbfgs(memory=1000000000)", "sgd(batch=-1)"])
def test_updates_that_make_no_sense(tmp_path, name):
    def change(header, tensors):
        header["parameters"]["update"] = {"value": name}
        header["parameters"]["queue"] = {"value": "exact()"}
        header["parameters"]["strategy"] = {"value": "standard"}

    refused(rewritten(tmp_path / "model", change), "cannot be loaded")


def test_nan_in_the_notes_of_a_file(tmp_path):
    path = tmp_path / "model"
    header, _ = read_file(GOLDEN)
    header["metadata"]["score"] = float("nan")
    path.write_bytes(with_header(GOLDEN.read_bytes(), header))
    refused(path, "found NaN in its header")


# --------------------------------------------------------------------------- numbers and texts


def with_part(*places, value):
    """A change of a header at a place."""

    def change(header, tensors):
        part = header
        for name in places[:-1]:
            part = part[name]
        part[places[-1]] = value

    return change


@pytest.mark.parametrize(
    ("places", "value", "match"),
    [
        (("bits",), 2**31, "expected a number from 0 to 62"),
        (("bits",), 2**62, "expected a number from 0 to 62"),
        (("metadata", "temperature"), 1e-320, "found the temperature 1e-320, expected 0.001 to"),
        (("metadata", "note"), "\ud800", "surrogates not allowed"),
        (("history", "epoch"), 10**30, "expected a number from 0 to"),
    ],
)
def test_numbers_and_texts_out_of_range(tmp_path, monkeypatch, places, value, match):
    monkeypatch.setattr("laso.files.container.check_text", lambda *_: None)
    path = rewritten(tmp_path / "model", with_part(*places, value=value))
    monkeypatch.undo()
    refused(path, match)


def test_weights_whose_sums_overflow(tmp_path):
    def change(header, tensors):
        tensors["weights"] = np.full_like(tensors["weights"], 1e38)

    refused(rewritten(tmp_path / "model", change), "found a weight of 1e.38, with which scores")


def test_a_training_without_a_scale(tmp_path):
    Tagger(epochs=1).fit(X, Y).save(tmp_path / "whole", training=True)

    def change(header, tensors):
        tensors["learning.reals"] = tensors["learning.reals"].copy()
        tensors["learning.reals"][0] = 0.0

    path = rewritten(tmp_path / "model", change, tmp_path / "whole")
    refused(path, "the scales of its training are out of range")


def test_constraints_on_many_labels_take_memory(tmp_path):
    labels = [f"B-{i}" for i in range(5000)]
    words = [[str(i) for i in range(5000)]]
    model = Tagger(features=["w[0]"], epochs=1, queue=1).fit(words, [labels])
    model.constraints = model.task_.constraints = "BIO"
    model.save(tmp_path / "model")
    refused(tmp_path / "model", "it takes about 1.0 GB of memory")
    assert load_model(tmp_path / "model", limit=2e9).classes_.size == 5000


def test_labels_that_no_file_can_have():
    for y in ([["\ud800", "A"]], [["B-\udfff", "O"]]):
        with pytest.raises(
            BadData, match=r"found the label '.*', which cannot be written as UTF-8"
        ):
            Tagger(epochs=1).fit([["a", "b"]], y)
    model = Tagger(epochs=1).fit(X, Y)
    with pytest.raises(BadData, match="which cannot be written as UTF"):
        model.partial_fit([["a"]], [["\ud800"]])
    model.metadata_["note"] = "\ud800"
    with pytest.raises(BadData, match=r"what a model file cannot have: .* surrogates not allowed"):
        model.file_size()


def test_combinations_of_labels_are_counted_before_they_are_made():
    words = [[str(i) for i in range(10)]]
    layers = [f"l{i}" for i in range(9)]
    model = JointTagger(layers=layers, features=["w[0]"], epochs=1)
    begun = time.process_time()
    with pytest.raises(OutOfMemory, match="found 100,000,000 combinations of the labels of all"):
        model.fit(words, [[(str(i),) * 9 for i in range(10)]])
    assert time.process_time() - begun < 5.0


def test_a_bias_needs_a_feature_of_every_step():
    model = Tagger(features=["w[0]"], epochs=1).fit(X, Y)
    with pytest.raises(BadTemplate, match="expected 'bias' or"):
        model.biased({"D": 1.0})
