import json
import math
from collections import Counter
from pathlib import Path

import pytest

from laso.data import Sentence, load_bundled, read_columns
from studies import corpus
from studies.__main__ import main
from studies.measure import Grid, Row, Trials, coordinate_search
from studies.peers import growth, joint, likelihood, report, template
from studies.peers.systems import SYSTEMS, absent, many_templates
from studies.peers.tagging import MEASURES, Bench, medians

SENTENCE = [("He", "PRP", "B-NP"), ("ran", "VBD", "B-VP"), ("11:30|x", "CD", "B-NP")]
MACHINE = {"system": "Linux", "cores": 2}
# One configuration of each system that is quick to measure.
CASES = [("python-crfsuite", "ap"), ("vowpalwabbit", "sequence"), ("laso", "beam 1")]


def row(system, config, f, times, *, speed=1000.0, peak=100.0, size=1_000_000, **more):
    read, features, train = times
    return {
        "system": system,
        "config": config,
        "corpus": "toy",
        "versions": {system: "1.0"},
        "machine": MACHINE,
        "read_s": read,
        "features_s": features,
        "train_s": train,
        "tokens_per_s": speed,
        "peak_mb": peak,
        "model_bytes": size,
        "f": f,
        "runs": [{}, {}, {}],
        "chosen_on_held_out": config != "beam 1",
        **more,
    }


GOLDEN = [
    row("python-crfsuite", "ap", 93.0, (0.5, 1.5, 8.0), peak=200.0, size=4_000_000),
    row("python-crfsuite", "pa", 93.2, (0.5, 1.5, 18.0), peak=220.0, size=5_000_000),
    row("python-crfsuite", "lbfgs", 94.0, (0.5, 1.5, 98.0), speed=1200.0),
    row("vowpalwabbit", "sequence", 92.0, (0.5, 1.0, 0.5), speed=20_000.0),
    row("laso", "beam 1", 92.5, (0.1, 0.0, 0.9), first_call_s=21.0, later_process_s=1.0),
    row(
        "laso",
        "beam 5",
        93.5,
        (0.1, 0.0, 1.5),
        speed=12_000.0,
        size=2_000_001,
        first_call_s=15.0,
        later_process_s=1.25,
    ),
]


def test_the_template_is_crfsuites_nineteen_features():
    second = template.as_lists(SENTENCE)[1]
    assert second == [
        "w[-2]=__BOS1__",
        "w[-1]=He",
        "w[0]=ran",
        "w[1]=11:30|x",
        "w[2]=__EOS1__",
        "w[-1]|w[0]=He|ran",
        "w[0]|w[1]=ran|11:30|x",
        "pos[-2]=__BOS1__",
        "pos[-1]=PRP",
        "pos[0]=VBD",
        "pos[1]=CD",
        "pos[2]=__EOS1__",
        "pos[-2]|pos[-1]=__BOS1__|PRP",
        "pos[-1]|pos[0]=PRP|VBD",
        "pos[0]|pos[1]=VBD|CD",
        "pos[1]|pos[2]=CD|__EOS1__",
        "pos[-2]|pos[-1]|pos[0]=__BOS1__|PRP|VBD",
        "pos[-1]|pos[0]|pos[1]=PRP|VBD|CD",
        "pos[0]|pos[1]|pos[2]=VBD|CD|__EOS1__",
    ]


def test_both_forms_have_the_same_features():
    for sentence in load_bundled()[0][:20]:
        lists, lines = template.as_lists(sentence), template.as_text(sentence)
        for names, line in zip(lists, lines, strict=True):
            bar, *features = line.split(" ")
            assert bar == "|x"
            assert len(features) == len(names) == len(set(features)) == 19
            assert not {"|", ":"} & set("".join(features))
            values = [name.split("=", 1)[1] for name in names]
            for feature, value in zip(features, values, strict=True):
                if not {"|", ":", "/"} & set(value):
                    assert feature.split("=", 1)[1] == value


def test_held_out_data_are_a_tenth_of_the_training_data_alone(tmp_path):
    train, _ = load_bundled()
    given = corpus.write_files(tmp_path, "given", train[:57], train[:1])
    given.test.unlink()  # so that a look at the test data would be an error
    rest, held_out = (read_columns(path) for path in corpus.held_out(given, tmp_path))
    assert len(held_out) == 5
    assert Counter(map(tuple, rest + held_out)) == Counter(map(tuple, train[:57]))


def test_plain_reading_equals_our_reader(tmp_path):
    train, test = load_bundled()
    files = corpus.write_files(tmp_path, "x", train, test)
    for path, sentences in zip(files, (train, test), strict=True):
        assert corpus.plain_read(path) == read_columns(path) == sentences


def test_corpora_of_other_sizes():
    train, _ = load_bundled()
    assert corpus.times(train, 4) == train * 4
    assert corpus.times(train, 0.25) == train[: round(len(train) / 4)]
    joined = corpus.rejoined(train, 70)
    assert {len(sentence) for sentence in joined} == {70}
    assert len(joined) == sum(map(len, train)) // 70
    other = corpus.relabelled(train, 10)
    assert {token[2] for sentence in other for token in sentence} == {f"L{n}" for n in range(10)}
    assert [[token[:2] for token in s] for s in other] == [[t[:2] for t in s] for s in train]


def test_the_slope_is_the_exponent():
    assert growth.slope([(x, 3 * x**1.5) for x in (1, 4, 10, 50)]) == pytest.approx(1.5)
    rows = [
        {"curve": "beam", "system": "s", "config": "c", "x": x}
        | {"train_s": 2.0 * x, "decode_s": 5.0, "peak_mb": 1.0 / x}
        for x in (1, 2, 4)
    ]
    [line] = growth.exponents(rows)
    assert line["points"] == 3
    assert [line[name] for name in growth.MEASURES] == pytest.approx([1.0, 0.0, -1.0])
    assert growth.exponents(rows[:1]) == []


def test_settings_are_chosen_one_after_the_other_and_ties_take_the_first():
    tried = []

    def score(settings):
        tried.append(dict(settings))
        return -abs(settings["a"] - 2) + (settings["a"] == 2) * (settings["b"] == "y")

    start = {"a": 9, "b": "x", "kept": 1}
    grid: Grid = {"a": [1, 2, 3], "b": ["x", "y"]}
    best = coordinate_search(start, grid, score)
    assert best == {"a": 2, "b": "y", "kept": 1}
    assert [settings["a"] for settings in tried] == [1, 2, 3, 2, 2]
    assert coordinate_search({"a": 0}, {"a": [3, 1, 2]}, lambda _: 1.0) == {"a": 3}


def test_trials_are_not_repeated():
    done = [{"settings": {"a": 1}, "f": 50.0}]
    kept: list[Row] = []
    trials = Trials(done, lambda settings: {"f": 60.0 + settings["a"]}, kept.append)
    assert [trials({"a": a}) for a in (1, 2, 2)] == [50.0, 62.0, 62.0]
    assert kept == done[1:] == [{"settings": {"a": 2}, "f": 62.0}]


def test_a_measurement_that_fails_is_told_and_the_next_one_begins(tmp_path):
    said: list[str] = []
    bench = Bench(tmp_path, tmp_path, said.append)
    with bench.failures.collect("first"):
        bench.job(SYSTEMS["laso"], "nonesuch")
    with bench.failures.collect("second"):
        pass
    assert bench.failures == ["first"]
    assert "no attribute 'nonesuch'" in said[0]


def test_medians():
    runs = [{"f": 1.0, "x": None}, {"f": 5.0, "x": None}, {"f": 2.0, "x": None}]
    assert medians(runs, ["f", "x", "y"]) == {"f": 2.0, "x": None, "y": None}


def test_the_report_comes_from_the_figures_alone():
    chosen: dict[str, Row] = {
        "python-crfsuite/forms": {"lists": 1.0},
        "laso/beam 5": {"settings": {"epochs": 8}, "held_out_f": 93.1, "trials": [{}, {}]},
    }
    lines = [
        {"curve": "beam", "system": "laso", "config": "beam", "x": x}
        | {"train_s": 1.0 * x, "decode_s": 2.0, "peak_mb": 3.0}
        for x in (1, 2)
    ]
    expected = Path(__file__).with_name("benchmarks_report.md").read_text(encoding="utf-8")
    assert report.report(GOLDEN, lines, chosen) == expected


def test_nothing_is_claimed_without_a_measurement():
    assert {bar.reached for bar in report.bars([])} == {None}
    assert {bar.measured for bar in report.bars(GOLDEN[:3])} == {"not measured"}
    assert report.report([], [], {}).count("|") == 0
    text = report.report(GOLDEN[4:], [], {})
    assert "8 of 10 comparisons have no measurement. To measure: `python -m studies peers`." in text
    assert "not measured |" not in text
    assert "| first labels in a later process |" in text
    assert "8 of 10 comparisons have no measurement" in report.summary(GOLDEN[4:])


def test_without_a_model_as_good_no_bar_is_reached():
    rows = [*GOLDEN[:4], GOLDEN[4] | {"f": 91.0, "first_call_s": 1.0}]
    reached = {bar.what: bar.reached for bar in report.bars(rows)}
    assert reached["first call ever, compilation included"] is True
    assert reached["first labels in a later process"] is True
    assert [value for value in reached.values() if value] == [True, True]


@pytest.mark.parametrize(("name", "config"), CASES)
def test_a_quick_run_measures_everything_once(name, config, tmp_path, capsys):
    missing = absent(SYSTEMS[name].module)
    if missing:
        pytest.skip(missing)
    arguments = ["peers", "--quick", "--corpus", "bundled", "--results", str(tmp_path)]
    arguments += ["--systems", name, "--configs", config]
    assert main(arguments) == 0
    text = (tmp_path / "peers.json").read_text(encoding="utf-8")
    [found] = json.loads(text)
    assert (found["system"], found["config"]) == (name, config)
    for measure in MEASURES:
        value = found[measure]
        if measure in ("first_call_s", "later_process_s"):
            assert value is None or (name == "laso" and value > 0)
        else:
            assert isinstance(value, int | float)
            assert math.isfinite(value)
            assert value >= 0
    assert found["tokens_per_s"] > 0
    assert 60 < found["f"] <= 100
    assert len(found["runs"]) == 1
    assert found["versions"]["python"]
    assert set(found["machine"]) == {"system", "architecture", "cpu", "cores", "memory_gb"}
    capsys.readouterr()
    assert main(arguments) == 0
    assert "run 1 of 1" not in capsys.readouterr().err
    assert (tmp_path / "peers.json").read_text(encoding="utf-8") == text
    assert main(["report", "--results", str(tmp_path)]) == 0
    assert f"| {name} | {config} | {found['f']:.2f} |" in (tmp_path / "report.md").read_text()


def test_a_quick_choice_is_used_by_the_run(tmp_path):
    missing = absent("pycrfsuite")
    if missing:
        pytest.skip(missing)
    options = ["--quick", "--corpus", "bundled", "--results", str(tmp_path)]
    options += ["--systems", "python-crfsuite", "--configs", "ap"]
    assert main(["tune", *options]) == 0
    chosen = json.loads((tmp_path / "chosen.json").read_text())["python-crfsuite/ap"]
    best = max(chosen["trials"], key=lambda trial: trial["f"])
    assert chosen["settings"] == best["settings"]
    assert main(["peers", *options]) == 0
    [found] = json.loads((tmp_path / "peers.json").read_text())
    assert found["settings"] == chosen["settings"]
    assert found["chosen_on_held_out"] is True


def test_quick_growth(tmp_path, monkeypatch):
    missing = absent("pycrfsuite")
    if missing:
        pytest.skip(missing)
    monkeypatch.setattr(growth, "FACTORS", (0.5, 1.0))
    monkeypatch.setattr(growth, "LABELS", (10, 200))
    monkeypatch.setattr(growth, "LENGTHS", (10,))
    monkeypatch.setattr(growth, "SPELLINGS", (2,))
    options = ["--quick", "--corpus", "bundled", "--results", str(tmp_path)]
    assert main(["growth", *options, "--systems", "python-crfsuite"]) == 0
    rows = json.loads((tmp_path / "growth.json").read_text())
    points = [(row["curve"], row["x"]) for row in rows]
    assert points[:-1] == [("sentences", 50), ("sentences", 100), ("labels", 10), ("length", 10)]
    assert points[-1][0] == "words"
    assert all(row["train_s"] > 0 and row["decode_s"] > 0 for row in rows)


def test_points_of_templates_and_of_words():
    sentences: list[Sentence] = [
        [("a", "X", "O"), ("a", "X", "O")],
        [("a", "Y", "O"), ("b", "Y", "O")],
    ]
    spelled = corpus.respelled(sentences, 2)
    assert [[token[1:] for token in s] for s in spelled] == [[t[1:] for t in s] for s in sentences]
    assert len({token[0] for sentence in spelled for token in sentence}) == 3
    found = growth.points(sentences, sentences, quick=False)
    numbers = {point.curve: point.templates for point in found if point.templates}
    assert numbers == {"templates": growth.TEMPLATES[-1]}
    templates = many_templates()
    assert len({*templates}) == len(templates) >= growth.TEMPLATES[-1]


def test_unknown_names_are_refused(tmp_path, capsys):
    for option in ("--systems", "--configs"):
        assert main(["peers", option, "nonesuch", "--results", str(tmp_path)]) == 2
        assert "nonesuch" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_two_layers_against_crfsuite(tmp_path, capsys, monkeypatch):
    pytest.importorskip("pycrfsuite")
    monkeypatch.setattr(joint, "chosen_epochs", lambda: joint.EPOCHS)  # whatever was chosen since
    given = ["--quick", "--corpus", "bundled", "--results", str(tmp_path)]
    assert main(["joint", *given]) == 0
    rows = json.loads((tmp_path / "joint.json").read_text())
    assert [row["system"] for row in rows] == list(joint.SYSTEMS)
    for row in rows:
        assert 50 < row["joint_acc"] <= min(row["tag_acc"], row["chunk_acc"])
        assert row["model_bytes"] > 1000
    text = (tmp_path / "joint.md").read_text()
    assert f"| {joint.LASO} | {joint.EPOCHS} |" in text
    assert "| 1.0 |" in text


def test_shapes_of_words():
    words = ["McDonald's", "U.S.", "1,000", "word", ""]
    assert [joint.shape(word) for word in words] == ["AaAa'a", "A.A.", "0,0", "a", ""]


def test_the_second_of_two_taggers_sees_the_tags_around():
    features = joint.tag_features(["DT", "NN"])[0]
    assert "pos[1]=NN" in features
    assert "pos[-1..1]=__BOS1__|DT|NN" in features
    assert len(features) == 12


def test_at_equal_settings_the_optimum_is_that_of_crfsuite(tmp_path, monkeypatch):
    pytest.importorskip("pycrfsuite")
    monkeypatch.setattr(likelihood, "PRIORS", ((0.1, 0.1),))
    train, test = load_bundled()
    files = corpus.write_files(tmp_path, "few", train[:20], test[:20])
    said: list[str] = []
    for _ in range(2):  # the second time, nothing is left to do
        written = likelihood.run(files, tmp_path, tmp_path, said.append)
    ours, theirs = json.loads((tmp_path / "likelihood.json").read_text())
    assert [row["system"] for row in (ours, theirs)] == ["laso", "python-crfsuite"]
    assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
    assert ours["f"] == pytest.approx(theirs["f"], abs=0.5)
    assert ours["weights"] == pytest.approx(theirs["weights"], rel=0.01)
    assert len(said) == 2
    assert written.read_text().count("| 0.1 | 0.1 |") == 2
