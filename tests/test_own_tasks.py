"""A user's own problem and task have everything that the built-in ones have."""

import inspect
import json
import pickle
from collections import Counter
from itertools import pairwise

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from laso import (
    BadData,
    BadModel,
    BadProblem,
    Checkpoint,
    CompiledProblem,
    SearchEstimator,
    Task,
    Unreachable,
    adagrad,
    alma,
    average_models,
    beam,
    early,
    exact,
    lbfgs,
    load_model,
    max_violation,
    passive_aggressive,
    standard,
)
from laso.engine.machine import as_names
from laso.estimators.capabilities.confidence import gold_decisions, softmax
from laso.estimators.capabilities.nbest import nbest_paths
from laso.estimators.capabilities.render import as_text
from laso.estimators.learning import streaming
from laso.examples import segmentation
from laso.examples.segmentation import LINES, Segmentation
from tests.own_problem import Tags

Y = [line.split() for line in LINES] + [["a", "cat", "is", "a", "cat"], ["the", "dog", "sat"]]
X = ["".join(words) for words in Y]
NEW = ["thedogisonamat", "acatsat"]


class Tagging(Task):
    """Strings in, strings out; the labels are those of the data."""

    name = "own tagging"
    problem = Tags

    def __init__(self, lower=False):
        self.lower = lower

    def constants(self):
        return [0]

    def items(self, x):
        return [word.lower() if self.lower else word for word in x]

    def gold(self, x, y):
        return y

    def decode(self, x, steps):
        return [self.classes[label] for _, label in steps]

    def bias_keys(self):
        return [3]

    def describe_feature(self, numbers, items):
        return {1: "word", 2: "label before", 3: "bias"}[numbers[0]]

    def state(self):
        return {"lower": self.lower}

    def restore(self, state):
        self.lower = bool(state["lower"])


WORDS = [["the", "cat", "sat"], ["a", "dog", "sat"], ["the", "dog", "is", "a", "cat"]]
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["D", "N", "V", "D", "N"]]


def segmenter(**given):
    return SearchEstimator(Segmentation(), **{"epochs": 6, "threads": 1, **given})


def tagger(**given):
    return SearchEstimator(Tagging(), **{"epochs": 6, "threads": 1, **given})


CASES = {
    "segmentation": (segmenter, X, Y, NEW),
    "tagging": (tagger, WORDS, TAGS, [["the", "cat", "is"], ["a", "mouse"]]),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(scope="module", params=CASES)
def fitted(request):
    make, inputs, outputs, new = CASES[request.param]
    return make().fit(inputs, outputs), inputs, outputs, new


def weights(model):
    return as_names(model.weights_)


def test_the_example_is_short():
    lines = inspect.getsource(segmentation.Words), inspect.getsource(segmentation.Segmentation)
    assert sum(source.count("\n") for source in lines) < 80


def test_outputs_and_scores(fitted):
    model, inputs, outputs, new = fitted
    assert model.predict(inputs) == outputs
    assert model.score(inputs, outputs) == 1.0
    assert model.predict_single(new[0]) == model.predict(new)[0]
    assert model.predict([]) == []
    with pytest.raises(BadData, match="found 1 outputs for 2 inputs"):
        model.score(inputs[:2], outputs[:1])


@pytest.mark.parametrize(
    "given",
    [
        {"queue": 1},
        {"queue": beam(3)},
        {"queue": exact()},
        {"queue": exact(), "strategy": standard},
        {"queue": exact(), "update": adagrad()},
        {"queue": exact(), "update": lbfgs()},
        {"strategy": early, "update": alma()},
        {"strategy": max_violation, "update": passive_aggressive()},
        {"hash_bits": 16, "dtype": "float64", "average": False},
    ],
    ids=str,
)
def test_queues_updates_and_strategies(case, given):
    make, inputs, outputs, _ = case
    assert make(**{"epochs": 30, **given}).fit(inputs, outputs).score(inputs, outputs) == 1.0


def test_n_best_and_confidence(fitted):
    model, inputs, outputs, new = fitted
    for paths, best in zip(model.predict_nbest(new, 3), model.predict(new), strict=True):
        assert paths[0][1] == best
        assert len(paths) > 1
        assert [score for score, _ in paths] == sorted((s for s, _ in paths), reverse=True)
    before = model.predict_confidence(new)
    for found, best in zip(before, model.predict(new), strict=True):
        assert found.output == best
        assert 0 < found.probability <= 1
        assert [part.start for part in found.parts] == [0, *(p.end for p in found.parts[:-1])]
    assert model.reliability(inputs, outputs).error < 0.5
    copy = model.with_weights(model.weights_).calibrate(inputs, outputs)
    assert copy.metadata_["temperature"] != 1.0
    assert "temperature" not in model.metadata_


def test_marginals_of_exact_search(case):
    make, inputs, outputs, new = case
    model = make(queue=exact(), update=adagrad()).fit(inputs, outputs)
    (steps,) = model.predict_marginals(new[:1], least=0.0)
    n = len(new[0])
    for i in range(n):  # every item is covered by exactly one step
        covered = sum(p for (_, start, end), p in steps.items() if start <= i < end)
        assert covered == pytest.approx(1.0, abs=1e-6)
    (found,) = model.predict_confidence(new[:1])
    for part in found.parts:
        assert part.probability == pytest.approx(steps[part[:3]], abs=1e-6)
    with pytest.raises(ValueError, match=r"predict_marginals needs exact search"):
        make().fit(inputs, outputs).predict_marginals(new)


class ByDepth(segmentation.Words):
    """The same search, whose rounds count words instead of letters."""

    key = staticmethod(CompiledProblem.key)

    @staticmethod
    def signature(x, state, group, label):
        return state[0] * 100 + group


class Counted(Segmentation):
    problem = ByDepth


class Backwards(Counted):
    """Decides about letters counted from the end, and nothing about single letters."""

    def path_decisions(self, steps):
        decided = super().path_decisions(steps)
        return [d and (None if d[2] - d[1] == 1 else (d[0].upper(), -d[2], -d[1])) for d in decided]


class Unnamed(Counted):
    describe = Task.describe  # each step is about one item


def same_as_all_paths(model, x):
    """Whether probabilities of exact search are those of all paths, enumerated."""
    dataset = model.task_.encode([x])
    paths = nbest_paths(model, dataset, 10_000)
    shares = softmax(paths.scores)
    sums: Counter[tuple[str, int, int]] = Counter()
    for (begin, end), share in zip(pairwise([0, *paths.ends.tolist()]), shares, strict=True):
        for decision in model.task_.path_decisions(list(map(tuple, paths.steps[begin:end]))):
            if decision is not None:
                sums[decision] += share
    (found,) = model.predict_marginals([x], least=0.0)
    assert found == pytest.approx(dict(sums), abs=1e-5)
    (sure,) = model.predict_confidence([x])
    assert sure.parts
    for part in sure.parts:
        assert part.probability == pytest.approx(sums[part[:3]], abs=1e-5)


@pytest.mark.parametrize("task", [Segmentation, Counted, Backwards, Unnamed])
def test_decisions_of_exact_search_are_those_of_its_paths(task):
    model = SearchEstimator(task(), queue=exact(), update=adagrad(), epochs=1).fit(X, Y)
    same_as_all_paths(model, "acatsat")
    assert 0 < model.reliability(X, Y).error < 1
    judged = gold_decisions(model, X[:1], Y[:1])
    assert judged == [set(predicted_of(model, X[0], Y[0]))]


def predicted_of(model, x, y):
    steps = [(len(word), 0) for word in y]
    return [each for each in model.task_.path_decisions(steps) if each is not None]


class Lost(Segmentation):
    """The third output promises a word of 99 letters."""

    def gold(self, x, y):
        return [*super().gold(x, y)[:3], *[99] * (len(x) - 3)] if x == X[2] else super().gold(x, y)


@pytest.mark.parametrize("queue", [1, 5, exact()], ids=str)
def test_an_output_out_of_reach_is_named_with_its_example_and_state(queue):
    model = SearchEstimator(Lost(), queue=queue, epochs=1)
    expected = r"example 3: the output \[3, 0, 0, 99.* state \(3, 0\) leads to it, but none of its"
    with pytest.raises(Unreachable, match=expected):
        model.fit(X, Y)


class Coarse(segmentation.Words):
    key = staticmethod(CompiledProblem.key)

    @staticmethod
    def signature(x, state, group, label):
        return 0


class Joined(Segmentation):
    problem = Coarse


def test_a_signature_that_is_too_coarse_is_named():
    with pytest.raises(Unreachable, match="states of equal signature and key must have the same"):
        SearchEstimator(Joined(), queue=exact(), epochs=1).fit(X, Y)


class Falling(segmentation.Words):
    @staticmethod
    def key(x, state, group, label):
        end, n = state[0] + group, x.items.shape[0]
        return n if end < n else 1


class Fallen(Segmentation):
    problem = Falling


def test_a_key_without_room_to_rise_is_told_both_bounds():
    with pytest.raises(
        BadProblem, match=r"input \d: the key must rise.* at least \d+, but at most"
    ):
        SearchEstimator(Fallen(), queue=5, epochs=1).fit(X, Y)


def test_forced_and_banned():
    model = segmenter().fit(X, Y)
    assert model.predict_forced(["thecat"], known=[[("word", 0, 1)]])[0][0] == "t"
    labels = tagger().fit(WORDS, TAGS)
    assert labels.predict_forced([["the", "cat"]], known=[["N", None]])[0][0] == "N"
    assert "N" not in labels.predict_forced([["the", "cat"]], banned=[["N"]])[0]
    assert labels.predict_forced([["the", "cat"]]) == labels.predict([["the", "cat"]])


def test_partial_outputs():
    some = [[label if i % 2 else None for i, label in enumerate(tags)] for tags in TAGS]
    model = tagger(strategy=max_violation).fit(WORDS, some)
    assert model.predict(WORDS[:1])[0][1] == "N"


def test_explanations_and_traces(fitted):
    model, inputs, outputs, new = fitted
    shown = model.explain(new[0])
    assert shown["output"] == model.predict_single(new[0])
    assert shown["score"] == pytest.approx(sum(d["score"] for d in shown["decisions"]), abs=1e-4)
    json.dumps(shown)
    events = model.trace(inputs[0], outputs[0])
    assert all(event["good"] is not None for event in events)
    assert events[-1]["goal"]
    assert model.trace(new[0])[0]["good"] is None
    assert model.inspect(data=new)["task"] == model.task_.name


class Letters(Tagging):
    """An input is one text, whose items are its words."""

    def items(self, x):
        return x.split()

    def gold(self, x, y):
        return y.split()


def test_explanations_show_the_words_of_the_task():
    texts = [" ".join(words) for words in WORDS]
    tags = [" ".join(labels) for labels in TAGS]
    model = SearchEstimator(Letters(), epochs=3).fit(texts, tags)
    assert as_text(model.explain("the cat")).startswith("the cat\n")
    short = ("the", "cat")  # shorter than the items
    vars(model.task_)["items"] = lambda x: [*x, "the"]
    assert model.explain(short)["tokens"] == ["the", "cat", "the"]
    assert as_text(model.explain(short)).startswith("the cat the\n")
    vars(model.task_)["words"] = lambda x: [word.upper() for word in x]  # fewer than the items
    assert as_text(model.explain(short)).startswith("THE CAT\n")
    assert all(event["step"] != "" for event in model.trace(short))


def test_names_of_features_are_the_tasks():
    model = tagger().fit(WORDS, TAGS)
    names = {f["name"] for d in model.explain(WORDS[0])["decisions"] for f in d["features"]}
    assert names <= {"word", "label before", "bias"}
    assert "word" in names


def test_class_weights_and_bias():
    # The first errors are about the first words, which are all D.
    heavy = tagger(class_weight={"D": 20.0}, epochs=1).fit(WORDS, TAGS)
    assert weights(heavy) != weights(tagger(epochs=1).fit(WORDS, TAGS))
    assert tagger(class_weight="balanced").fit(WORDS, TAGS).score(WORDS, TAGS) == 1.0
    model = tagger().fit(WORDS, TAGS)
    assert model.biased({"V": 50.0}).predict([["the", "cat"]]) == [["V", "V"]]
    with pytest.raises(
        ValueError, match="Words has none: expected a loss that reads them by cost_of"
    ):
        segmenter(class_weight={"word": 2.0}).fit(X, Y)
    with pytest.raises(ValueError, match=r"or bias_keys\(\) of a task of your own"):
        segmenter().fit(X, Y).biased({"word": 1.0})


def test_files(case, tmp_path):
    make, inputs, outputs, new = case
    model = make().fit(inputs, outputs)
    path = tmp_path / "model"
    assert model.save(path) == path.stat().st_size
    task = type(model.task)()
    again = load_model(path, task=task)
    assert again.predict(new) == model.predict(new)
    assert type(again.task_) is type(task)
    assert SearchEstimator.load(path, task=task).predict(new) == model.predict(new)
    with pytest.raises(BadModel, match=r"which is not built in: .* load_model\(path, task="):
        load_model(path)
    other = Tagging() if isinstance(task, Segmentation) else Segmentation()
    with pytest.raises(BadModel, match=f"expected '{other.name}'"):
        load_model(path, task=other)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(BadModel, match="cut short"):
        load_model(path, task=task)


def test_state_of_a_task_is_in_the_file(tmp_path):
    model = SearchEstimator(Tagging(lower=True), epochs=3, threads=1).fit(WORDS, TAGS)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model", task=Tagging())
    assert again.predict([["THE", "CAT"]]) == model.predict([["the", "cat"]])


def test_held_out_data_checkpoints_and_resuming(case, tmp_path):
    make, inputs, outputs, _ = case
    model = make(held_out=0.3, patience=2).fit(inputs, outputs)
    assert len(model.scores_) == model.n_iter_
    path = tmp_path / "checkpoint"
    make(epochs=1).fit(
        inputs, outputs, dev=(inputs, outputs), checkpoint=Checkpoint(path, seconds=0)
    )
    resumed = load_model(path, task=type(model.task)())
    resumed.resume(inputs, outputs, epochs=3, dev=(inputs, outputs))
    whole = make(epochs=3).fit(inputs, outputs, dev=(inputs, outputs))
    assert weights(resumed) == weights(whole)


def test_streams_and_later_data(case, tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "EXAMPLES_AT_A_TIME", 2)
    make, inputs, outputs, _ = case
    memory = make().fit(inputs, outputs)
    streamed = make().fit_stream(lambda: zip(inputs, outputs, strict=True), store=tmp_path / "s")
    assert weights(streamed) == weights(memory)
    assert streamed.predict(inputs) == outputs
    later = make(epochs=2)
    for _ in range(memory.n_iter_):  # training ends with an epoch without an update
        later.partial_fit(inputs, outputs)
    assert weights(later) == weights(memory)


def test_later_labels():
    model = tagger()
    model.partial_fit(WORDS, TAGS)
    for _ in range(8):
        model.partial_fit([["cats", "sleep"]], [["PL", "V"]])
    assert list(model.classes_) == ["D", "N", "V", "PL"]
    assert model.predict([["cats", "sleep"]]) == [["PL", "V"]]
    with pytest.raises(BadData, match="found the label 'X', which training has not seen"):
        model.task_.encode([["cats"]], [["X"]])


def test_averages(case):
    make, inputs, outputs, _ = case
    models = [make(seed=seed, epochs=2).fit(inputs, outputs) for seed in (0, 1)]
    assert average_models(models).score(inputs, outputs) > 0.5
    with pytest.raises(BadModel, match="model 2 has other words"):
        average_models([models[0], make().fit(inputs[1:] + inputs[:1], outputs[1:] + outputs[:1])])


def test_a_copy_shares_nothing_with_the_original():
    model = tagger().fit(WORDS, TAGS)
    copy = model.biased({"N": 1.0})
    copy.calibrate(WORDS, TAGS)
    assert model.metadata_ == {}
    before = copy.predict(WORDS)
    model.partial_fit([["cats"]], [["PL"]])
    assert copy.predict(WORDS) == before
    assert "PL" not in copy.classes_
    assert copy.task_ is not model.task_


def test_mistakes_in_a_task():
    class Unfinished(Task):
        problem = Tags

    with pytest.raises(NotImplementedError, match=r"Unfinished needs a method gold\(x, y\)"):
        SearchEstimator(Unfinished()).fit(WORDS, TAGS)
    with pytest.raises(ValueError, match=r"task must be a laso.Task, found None"):
        SearchEstimator().fit(WORDS, TAGS)
    with pytest.raises(BadData, match="sentence 2, token 1: found 2 columns, expected 1"):
        tagger().fit([["a"], [("b", "c")]], [["D"], ["D"]])
    with pytest.raises(BadData, match=r"found 1\.5, expected a string or an integer"):
        tagger().fit([[1.5]], [["D"]])


def test_scikit_learn_takes_it(case):
    make, inputs, outputs, new = case
    model = make().fit(inputs, outputs)
    again = clone(model)
    assert not hasattr(again, "weights_")
    assert again.fit(inputs, outputs).predict(new) == model.predict(new)
    search = GridSearchCV(make(), {"queue": [1, 3]}, cv=2, error_score="raise")
    assert search.fit(inputs, outputs).best_params_["queue"] in (1, 3)
    assert pickle.loads(pickle.dumps(model)).predict(new) == model.predict(new)


def test_features_without_names_show_what_they_were_mixed_from():
    shown = segmenter().fit(X, Y).explain(NEW[0])
    names = [feature["name"] for d in shown["decisions"] for feature in d["features"]]
    assert any(name.startswith("mix(1, ") for name in names)
    assert all(name.startswith("mix(") for name in names)
