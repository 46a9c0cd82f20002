"""``laso train``, ``laso tag`` and ``laso eval`` as a new user meets them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from laso import Tagger, alma, load_model
from laso.cli.report import EARLY, FREQUENT, advice
from laso.data import load_bundled, write_columns
from laso.metrics.evaluation import evaluated

TRAIN, TEST = load_bundled()
SMALL = TRAIN[:60]
FAST = ("--task", "tag", "--epochs", "3")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tagger of parts of speech from words alone, made by the command line."""
    here = tmp_path_factory.mktemp("model")
    write_columns(here / "pos.txt", [[(w, p) for w, p, _ in s] for s in SMALL])
    code = "from laso.cli import main; main()"
    arguments = ["train", str(here / "pos.txt"), "--epochs", "3"]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True)
    return here / "pos.laso"


def words(sentence):
    return [token[0] for token in sentence]


# a file name alone


def test_a_file_name_is_enough(laso, folder):
    shown = laso("train", "train.txt", "--json")
    assert (shown.code, shown.err) == (0, "")
    result = json.loads(shown.out)
    assert result["task"] == "tag"
    assert (result["inputs"], result["label"]) == (["1", "2"], ["3"])
    assert result["sentences"] + result["held out"] == len(SMALL)
    assert result["held out"] == 6
    assert result["best_epoch"] <= result["epochs"] <= 30
    best = max(result["scores"])
    assert result["evaluation"]["chunks"]["f"] == pytest.approx(100 * best)
    assert not list(folder.glob("*.checkpoint"))
    model = Tagger.load("train.laso")
    assert model.constraints == "BIO"  # as all labels are
    predicted = model.predict(TEST[:20])
    shown = laso("eval", "train.laso", "test.txt", "--json")
    gold = [[tag for *_, tag in s] for s in TEST[:20]]
    assert json.loads(shown.out) == json.loads(json.dumps(evaluated(gold, predicted).as_json()))


def test_the_report_for_people_says_what_was_done(laso, folder):
    shown = laso("train", "train.txt", *FAST)
    assert "learned tags from 54 sentences" in shown.out
    assert "columns 1, 2 are the inputs, 3 the label" in shown.out
    assert "all chunks" in shown.out
    assert "laso tag train.laso FILE" in shown.out


def test_few_sentences_are_all_learned_from(laso, folder):
    write_columns("few.txt", SMALL[:5])
    result = json.loads(laso("train", "few.txt", "--task", "tag", "--json").out)
    assert (result["sentences"], result["held out"], result["evaluation"]) == (5, 0, None)


def test_refit_learns_from_all_as_long_as_was_chosen(laso, folder):
    result = json.loads(laso("train", "train.txt", "--task", "tag", "--refit", "--json").out)
    model = Tagger.load("train.laso")
    assert result["refit"]
    assert model.n_iter_ == model.metadata_["chosen"]["epoch"]
    again = Tagger(epochs=model.n_iter_, constraints="BIO").fit(SMALL)
    assert again.predict(TEST[:20]) == model.predict(TEST[:20])


def test_a_file_to_choose_by(laso, folder):
    shown = laso("train", "train.txt", *FAST, "--dev", "test.txt", "--json")
    result = json.loads(shown.out)
    assert (result["sentences"], result["held out"]) == (60, 20)
    score = Tagger.load("train.laso").score(TEST[:20])
    assert max(result["scores"]) == pytest.approx(score)


# formats


def as_text(sentences, separator, end="\n", before=""):
    rows = ("".join(separator.join(t) + end for t in s) for s in sentences)
    return before + (end.join(rows))


FORMS = {
    "crlf": as_text(SMALL, " ", "\r\n"),
    "old mac": as_text(SMALL, " ", "\r"),
    "tabs": as_text(SMALL, "\t"),
    "semicolons": as_text([[t for t in s if t[0] != ";"] for s in SMALL], ";"),
    "bom": as_text(SMALL, " ", before="\ufeff"),
    "comments": as_text(SMALL, "\t", before="# sent_id = 1\n"),
    "jsonl": "".join(
        json.dumps({"tokens": words(s), "pos": [t[1] for t in s], "labels": [t[2] for t in s]})
        + "\n"
        for s in SMALL
    ),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_formats_are_recognised(text, laso, folder):
    shown = laso("train", "-", *FAST, "--json", stdin=text)
    assert (shown.code, shown.err) == (0, "")
    result = json.loads(shown.out)
    assert (len(result["inputs"]), result["sentences"]) == (2, 54)
    assert (folder / "model.laso").exists()
    if "\n" in text:
        labelled = laso("tag", "model.laso", stdin=text)
        assert labelled.err == ""
        assert len(labelled.out.splitlines()) >= len(text.splitlines()) - 1


CONLLU = (
    "# sent_id = {n}\n"
    "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_\n"
    "2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_\n"
    "3\tpanic\tpanic\tVERB\tVB\t_\t0\troot\t_\t_\n"
    "3.1\tnow\tnow\tADV\tRB\t_\t_\t_\t_\t_\n\n"
)


def test_conllu_is_learned_from_and_filled_in(laso, folder):
    (folder / "a.conllu").write_text("".join(CONLLU.format(n=n) for n in range(5)))
    result = json.loads(laso("train", "a.conllu", "--json").out)
    assert (result["inputs"], result["label"], result["task"]) == (["form"], ["upos"], "tag")
    blank = CONLLU.format(n=9).replace("AUX", "_").replace("PART", "_").replace("VERB", "_")
    assert laso("tag", "a.laso", stdin=blank).out == CONLLU.format(n=9)
    assert laso("eval", "a.laso", "a.conllu", "--json").code == 0
    xpos = json.loads(laso("train", "a.conllu", "--label", "xpos", "--json").out)
    assert (xpos["label"], xpos["labels"]) == (["xpos"], 2)


def test_tagging_adds_a_column_and_keeps_the_rest(laso, folder, model):
    found = load_model(model).predict([["The", "kettle", "boiled"]])[0]
    lines = [f"{w} {label}" for w, label in zip(("The", "kettle", "boiled"), found, strict=True)]
    assert laso("tag", model, stdin="The\nkettle\nboiled\n").out == "\n".join([*lines, "", ""])
    text = "The kettle boiled."
    with_tabs = laso("tag", model, stdin=text).out.splitlines()
    assert [line.split("\t")[0] for line in with_tabs[:4]] == ["The", "kettle", "boiled", "."]
    (record,) = map(json.loads, laso("tag", model, "--json", stdin=text).out.splitlines())
    assert record["tokens"] == ["The", "kettle", "boiled", "."]
    assert len(record["labels"]) == 4
    given = json.dumps({"id": 7, "text": text})
    record = json.loads(laso("tag", model, stdin=given).out)
    assert (record["id"], record["tokens"]) == (7, ["The", "kettle", "boiled", "."])


def test_a_labelled_file_keeps_its_labels_beside_those_found(laso, folder, model):
    write_columns("pos.txt", [[(w, p) for w, p, _ in s] for s in TEST[:5]])
    laso("tag", model, "pos.txt", "--output", "out.txt")
    rows = [line.split() for line in (folder / "out.txt").read_text().splitlines() if line]
    assert [row[:2] for row in rows] == [[w, p] for s in TEST[:5] for w, p, _ in s]
    compared = json.loads(laso("eval", "--compare", "out.txt", "--json").out)
    assert compared == json.loads(laso("eval", model, "pos.txt", "--json").out)


def test_long_input_is_labelled_part_by_part(laso, folder, model, monkeypatch):
    text = "\n\n".join("\n".join(words(s)) for s in TEST) + "\n"
    whole = laso("tag", model, stdin=text).out
    monkeypatch.setattr("laso.cli.tag.BATCH", 50)
    assert laso("tag", model, stdin=text).out == whole


def test_nothing_to_label_is_labelled(laso, folder, model):
    shown = laso("tag", model, stdin="")
    assert (shown.code, shown.out, shown.err) == (0, "", "")


# errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "<stdin>:1: found no token"),
        ("a X\nb\n" * 9, "<stdin>:2: found 1 column in 'b', expected 2 as in line 1"),
        ("a\nb\n", "<stdin>:1: found one column, expected inputs and a label behind them"),
        ('{"tokens": 3}\n', "<stdin>:1: found 3 for tokens, expected a list"),
        (
            '{"tokens": ["a"], "labels": []}\n',
            "<stdin>:1: found a list of 0 for labels, exp",
        ),
        ('{"tokens": ["a"], "labels": ["X"]}\n{"a": 1}\n', "<stdin>:2: found the keys a"),
        ('{"tokens": ["a"], "labels": ["X"]}\n{"tokens": ["a"]}', "<stdin>:2: found the columns"),
        ('{"tokens": ["a"], \n', '<stdin>:1: found \'{"tokens": ["a"], \', expected a JSON'),
        (b"a X\nb \xff\n", "<stdin>:2: found the byte 0xff at byte 6"),
        ('{"tokens": ["a", 3], "labels": ["X", "Y"]}', "<stdin>:1: found the token 3"),
    ],
)
def test_bad_data_is_named_by_file_and_line(text, message, laso, folder):
    shown = laso("train", "-", "--task", "tag", stdin=text)
    assert (shown.code, shown.out) == (3, "")
    assert message in shown.err
    assert len(shown.err.splitlines()) == 1


@pytest.mark.parametrize("how", [(), ("--store", "store")])
def test_errors_name_the_file_that_they_are_about(laso, folder, how):
    bad: list[Any] = [*SMALL[:3], [("good", "NN", "O"), ("bad", "NN", "X-y")]]
    write_columns("bad.txt", bad)
    line = sum(len(sentence) + 1 for sentence in SMALL[:3]) + 2
    place = f"laso: bad.txt:{line}: found the tag 'X-y'"
    task = ("--task", "chunk", "--epochs", "1", *how)
    for files in (
        ("train.txt", "bad.txt", "--held-out", "0"),  # a second file
        ("train.txt", "--dev", "bad.txt"),
        ("train.txt", "bad.txt", "test.txt"),  # held out, or not
    ):
        shown = laso("train", *files, *task)
        assert (shown.code, shown.out) == (3, "")
        assert shown.err.startswith(place)


def test_a_tag_that_is_none_is_named_by_file_and_line(laso, folder):
    (folder / "bad.txt").write_text("a B-X\nb I-X\n\nc Q-X\n")
    shown = laso("train", "train.txt", "bad.txt", "--task", "chunk", "--inputs", "1")
    assert (shown.code, shown.err.startswith("laso: bad.txt:1: found the columns")) == (3, True)
    shown = laso("train", "bad.txt", "--task", "chunk")
    assert shown.err.startswith("laso: bad.txt:4: found the tag 'Q-X'")


def test_other_errors_have_other_codes(laso, folder, model):
    assert laso("train", "none.txt").code == 5
    assert laso("tag", "none.laso").code == 5
    assert laso("tag", "train.txt").code == 4
    assert laso("eval", model).code == 2
    for wrong in (
        ["--task", "what"],
        ["--format", "what"],
        ["--label", "7"],
        ["--set", "nothing"],
        ["--set", "queue=open('x')"],
        ["--set", "queue=beam(0)"],
        ["--set", "unknown=1"],
        ["--held-out", "2"],
        ["--separator", ""],
    ):
        shown = laso("train", "train.txt", *wrong)
        assert (shown.code, shown.out) == (2, "")
        assert "Error" in shown.err
    shown = laso("tag", model, "--format", "columns", stdin="a b c d\n")
    assert shown.code == 3
    assert "<stdin>:1: found 4 columns" in shown.err
    assert not list(folder.glob("*.laso"))


# settings


def test_a_file_says_what_options_say_and_the_model_remembers(laso, folder):
    (folder / "a.toml").write_text(
        'task = "tag"\nlabel = "2"\ninputs = ["1"]\nepochs = 2\nheld-out = 0.2\n'
        '[set]\nqueue = 1\nupdate = "alma(alpha=0.8)"\n'
    )
    shown = laso("train", "train.txt", "--config", "a.toml", "--epochs", "1", "--json")
    result = json.loads(shown.out)
    assert (result["epochs"], result["held out"], result["inputs"]) == (1, 12, ["1"])
    model = Tagger.load("train.laso")
    assert (model.queue, model.update) == (1, alma(alpha=0.8))
    remembered = model.metadata_["configuration"]
    assert remembered["set"] == {"queue": 1, "update": "alma(alpha=0.8)"}
    assert (remembered["label"], remembered["epochs"]) == (["2"], 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs = ", "a.toml: found no TOML"),
        ("epoch = 1", "a.toml: found the key 'epoch', expected one of task, format"),
        ("epochs = 'x'", "a.toml: found 'x' for epochs, expected int"),
        ("refit = 1", "a.toml: found 1 for refit, expected bool"),
    ],
)
def test_wrong_settings_in_a_file_are_named(text, message, laso, folder):
    (folder / "a.toml").write_text(text)
    shown = laso("train", "train.txt", "--config", "a.toml")
    assert shown.code == 3
    assert message in shown.err


def test_templates_of_a_file_and_named_columns(laso, folder):
    (folder / "t.txt").write_text("word[0]\nlabel[-1]\n")
    options = ("--columns", "word,tag,chunk", "--inputs", "word", "--label", "tag")
    shown = laso("train", "train.txt", *options, "--templates", "t.txt", *FAST)
    assert (shown.code, shown.err) == (0, "")
    model = Tagger.load("train.laso")
    assert model.features == ["word[0]", "label[-1]"]
    assert model.task_.encoder_.names == ("word",)
    scores = json.loads(laso("eval", "train.laso", "test.txt", "--json").out)
    assert "NN" in scores["labels"]  # the same columns, by number
    assert laso("tag", "train.laso", stdin="The\nkettle\n").out.split()[::2] == ["The", "kettle"]
    assert laso("train", "train.txt", "--columns", "a,b b,c").code == 2


@pytest.mark.parametrize("task", ["tag", "chunk", "joint"])
def test_labels_may_be_missing(laso, folder, task):
    label = "pos,labels" if task == "joint" else "labels"
    with open("some.jsonl", "w", encoding="utf-8") as file:
        for sentence in SMALL:
            words, tags, chunks = zip(*sentence, strict=True)
            some = [None if i % 4 == 1 else chunk for i, chunk in enumerate(chunks)]
            print(json.dumps({"tokens": words, "pos": tags, "labels": some}), file=file)
    options = ("--epochs", "2", "--label", label, "--task", task)
    shown = laso("train", "some.jsonl", *options, "--json")
    assert shown.code == 0
    result = json.loads(shown.out)
    assert result["task"] == task
    assert result["evaluation"]["accuracy"] > 50
    assert load_model("some.laso").metadata_["configuration"]["set"] == {
        "strategy": "max_violation"
    }


def test_messages_name_what_is_wrong_in_plain_words(laso, folder):
    for words in (
        ("train", "nothere.txt"),
        ("train", "train.txt", "--dev", "nothere.txt"),
        ("tag", "nothere.txt"),
    ):
        shown = laso(*words)
        assert (shown.code, shown.err) == (5, "laso: nothere.txt: no such file or directory\n")
    shown = laso("train", "train.txt", "--set", "queue=foo")
    assert "malformed" not in shown.err
    assert "found 'foo', expected a number or a call of one of beam" in shown.err
    shown = laso("train", "train.txt", "--set", "nope=3")
    assert "it has features, resources, columns" in shown.err
    assert "in train.txt:1: there is 1, 2, 3" in laso("train", "train.txt", "--label", "7").err
    write_columns("same.txt", [[("a", "X"), ("b", "X")]] * 3)
    assert "there was nothing to learn" in laso("train", "same.txt").out


@pytest.mark.parametrize("task", ["tag", "chunk"])
def test_what_is_streamed_is_the_same_model(laso, folder, task):
    options = ("--task", task, "--epochs", "2", "--json")
    laso("train", "train.txt", *options, "--model", "memory.laso")
    shown = laso("train", "train.txt", *options, "--model", "streamed.laso", "--store", "encoded")
    assert shown.code == 0
    assert (folder / "streamed.laso").read_bytes() == (folder / "memory.laso").read_bytes()
    assert (folder / "encoded").is_dir()
    both = ("train", "train.txt", "train.txt", *options, "--refit")
    laso(*both, "--model", "memory.laso")
    laso(*both, "--model", "streamed.laso", "--store", "encoded")
    assert (folder / "streamed.laso").read_bytes() == (folder / "memory.laso").read_bytes()


def test_errors_of_a_stream_name_file_and_line(laso, folder, monkeypatch):
    monkeypatch.setattr("laso.estimators.learning.streaming.EXAMPLES_AT_A_TIME", 2)
    assert laso("train", "-", "--store", "encoded").code == 2
    write_columns("odd.txt", [*SMALL[:3], [("a", "b", "X-y")]])
    line = sum(len(s) + 1 for s in SMALL[:3]) + 1
    for part in ("0", "0.3"):  # the sentences that are learned from are others then
        for where in ((), ("--store", "encoded")):
            shown = laso("train", "odd.txt", "--task", "chunk", *where, "--held-out", part)
            assert shown.code == 3
            assert shown.err.startswith(f"laso: odd.txt:{line}: found the tag 'X-y'")
    shown = laso("train", "train.txt", "--model", "nowhere/m.laso")
    assert (shown.code, shown.err) == (5, "laso: nowhere: no such file or directory\n")


def test_class_weights_are_options(laso, folder):
    laso("train", "train.txt", *FAST, "--class-weight", "O=0.5", "--class-weight", "B-NP=2")
    assert load_model("train.laso").class_weight_ == {"O": 0.5, "B-NP": 2.0}
    laso("train", "train.txt", *FAST, "--class-weight", "balanced")
    assert load_model("train.laso").get_params()["class_weight"] == "balanced"
    assert "LABEL=WEIGHT" in laso("train", "train.txt", *FAST, "--class-weight", "O=x").err
    assert "found a class weight for 'Q'" in laso("train", "train.txt", "--class-weight", "Q=2").err


# advice


def evaluation_of(right, predicted, gold):
    """An evaluation with these counts of chunks."""
    tags = ["B-X"] * right + ["O"] * (gold - right) + ["B-Y"] * (predicted - right)
    golds = ["B-X"] * gold + ["O"] * (predicted - right)
    return evaluated([golds], [tags])


@pytest.mark.parametrize(
    ("counts", "weights", "expected"),
    [
        ((50, 60, 100), None, "33 points below precision: train with --class-weight O=0.5 to"),
        ((50, 60, 100), {"O": 0.5}, "--class-weight O=0.25 to predict more chunks"),
        ((80, 90, 100), None, None),  # 89 and 80
        ((50, 100, 60), None, None),
    ],
)
def test_recall_far_below_precision_names_the_option_that_helps(counts, weights, expected):
    model = Tagger()
    model.class_weight_ = weights
    text = advice(evaluation_of(*counts), model)
    assert (text is None) == (expected is None)
    assert expected is None or expected in str(text)
    assert advice(evaluated([["A", "B"]], [["A", "A"]]), model) is None


def test_the_report_gives_advice(laso, folder, monkeypatch):
    monkeypatch.setattr("laso.cli.report.GAP", -100)
    assert "--class-weight O=0.5 to predict more chunks\n" in laso("train", "train.txt", *FAST).out


def test_the_option_of_the_advice_helps(laso, folder):
    def recall(*options):
        shown = laso("train", "train.txt", *FAST, "--json", *options)
        return json.loads(shown.out)["evaluation"]["labels"]["O"]["predicted"]

    assert recall("--class-weight", "O=0.05") < recall()


def test_the_report_names_word_lists_where_there_are_none(laso, folder):
    sentences = [(" ".join(FREQUENT), "x"), ("der Hund bellt", "y")]
    for text, label in sentences:
        lines = "".join(f"{word} {label}{i}\n" for i, word in enumerate(text.split()))
        Path(f"{label}.txt").write_text(f"{lines}\n" * 3)
    Path("own.txt").write_text("Hund\n")
    assert "English word lists and clusters may help" in laso("train", "x.txt", *FAST).out
    rare = "".join(f"ord{i} y\n" for i in range(EARLY))  # a few English words in another language
    Path("z.txt").write_text(f"{rare}\n" + Path("x.txt").read_text())
    assert "word lists of this language" in laso("train", "z.txt", *FAST, "--held-out", "0").out
    shown = laso("train", "y.txt", *FAST).out
    assert "word lists of this language may help" in shown
    option = shown.partition("--set '")[2].partition("'")[0].replace("FILE", "own.txt")
    again = laso("train", "y.txt", *FAST, "--set", option)
    assert again.code == 0
    assert "may help" not in again.out
    assert load_model("y.laso").get_params()["resources"] == ["own.txt"]
    assert "may help" not in laso("train", "y.txt", *FAST, "--set", 'features=["0[0]"]').out


def test_errors_of_templates_are_errors_about_data(laso, folder):
    Path("t.txt").write_text("word[0\n")
    for options in (("--templates", "t.txt"), ("--set", 'features=["word[0"]')):
        shown = laso("train", "train.txt", *FAST, *options)
        assert shown.code == 3, shown.err
